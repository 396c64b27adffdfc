"""Curves as SVG, so that a plot needs no package."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720, 400, 60, 50, 20, 190
COLOURS = ("#4477aa", "#ee6677", "#228833", "#aa3377")
TICKS = 5


def plot(curves: Mapping[str, Mapping[int, float]], across: str, up: str) -> str:
    """An SVG of curves over one pair of axes.

    Args:
        curves: by title, values by step.
        across: what the axis of steps is called.
        up: what that of values is called.
    """
    values = [value for curve in curves.values() for value in curve.values()]
    last = max((step for curve in curves.values() for step in curve), default=1)
    low, high = min([0.0, *values]), max([1.0, *values])

    def x(step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / last

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value - low) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{x(last / 2):.0f}" y="{HEIGHT - 10}" text-anchor="middle">{escape(across)}</text>',
        f'<text x="15" y="{y((low + high) / 2):.0f}" transform="rotate(-90 15 {y((low + high) / 2):.0f})" '
        f'text-anchor="middle">{escape(up)}</text>',
    ]
    for tick in range(TICKS + 1):
        value, step = low + (high - low) * tick / TICKS, last * tick / TICKS
        parts += [
            f'<path d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>',
            f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.1f}</text>',
            f'<text x="{x(step):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{step:.0f}</text>',
        ]
    for at, (title, curve) in enumerate(curves.items()):
        colour = COLOURS[at % len(COLOURS)]
        points = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in curve.items())
        parts += [
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>',
            f'<text x="{WIDTH - RIGHT + 12}" y="{TOP + 20 * at + 12}" fill="{colour}">{escape(title)}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])
