"""Figures in words: numbers, bounds, and what a figure is compared to."""

from __future__ import annotations

from benchmarks.figures import Figure, is_kept

SPACE, TIMES = "\N{NO-BREAK SPACE}", "\N{MULTIPLICATION SIGN}"
TAKEN = ("ms", "kB")
"""Units of what is better where it is less: time and memory."""


def number(value: float) -> str:
    """With three digits that tell, or all of a whole part."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 2 if abs(value) < 10 else 1
    return f"{value:.{digits}f}" if abs(value) >= 0.1 else f"{value:.2g}"


def quantity(value: float, unit: str) -> str:
    """A number with its unit."""
    return f"{number(value)}{SPACE}{unit}" if unit else number(value)


def times(ratio: float) -> str:
    """A ratio."""
    return f"{number(ratio)}{SPACE}{TIMES}"


def rival(one: Figure) -> str:
    """What a figure is compared to, and whether less of it is better."""
    return f"{one['against']}{', less is better' if one['unit'] in TAKEN else ''}"


def bound(one: Figure) -> str:
    """The bounds of a figure, and whether they are kept; empty where it has none."""
    bounds = [("at least", one["least"]), ("at most", one["most"])]
    said = [f"{word} {quantity(value, one['unit'])}" for word, value in bounds if value is not None]
    if one["least_ratio"] is not None:
        said.append(f"at least {times(one['least_ratio'])}")
    return f"{', '.join(said)}: {'kept' if is_kept(one) else 'not kept'}" if said else ""
