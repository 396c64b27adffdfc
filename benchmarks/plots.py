"""Bars for what figures are times what they are compared to, as a piece of SVG in the colours of the page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from benchmarks.figures import Figure, is_kept
from benchmarks.wording import quantity, rival, times

WIDTH = 416
"""Units of a plot."""
SIDE, ROW, BAR, AXIS = 96, 38, 12, 28
"""Of the column for ratios, a row, its bar, and the axis below all rows."""
AGAINST, APART = 22, 12
"""Of a line that says what the rows below it are compared to, and above it."""
LINEAR = (0.2, 4.0)
"""Ratios between these are shown on an axis from zero, others on a logarithmic one."""
LONGEST = 58
"""Characters of a line."""


class Scale(NamedTuple):
    """An axis of ratios.

    Args:
        low: at its left end.
        high: at its right end.
        is_log: whether it is logarithmic; then bars begin at 1, else at 0.
    """

    low: float
    high: float
    is_log: bool

    def at(self, ratio: float) -> float:
        """Where a ratio is, in units of the plot."""
        low, high, value = (math.log(one) if self.is_log else one for one in (self.low, self.high, ratio))
        return (WIDTH - SIDE) * (value - low) / (high - low)

    def ticks(self) -> list[float]:
        """Round ratios along it, not too many."""
        if not self.is_log:
            step = 0.25 if self.high <= 1.3 else 0.5 if self.high <= 2.6 else 1.0
            return [step * at for at in range(int(self.high / step + 1e-9) + 1)]
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        every = -(-(last - first) // 5)
        steps = (1, 2, 5) if self.high <= 60 * self.low else (1,)
        found = [step * 10.0**power for power in range(first - first % every, last + 1, every) for step in steps]
        return [tick for tick in found if self.low <= tick <= self.high]


def compared(figures: Sequence[Figure]) -> list[Figure]:
    """Those that have a ratio, those beside each other that are compared to the same."""
    order = list(dict.fromkeys(one["against"] for one in figures))
    return sorted((one for one in figures if one["ratio"]), key=lambda one: order.index(one["against"]))


def bars(figures: Sequence[Figure]) -> tuple[str, int]:
    """The drawing, `WIDTH` wide, and its height; figures without a ratio are not in it."""
    rows = compared(figures)
    scale = _scale(rows)
    parts, top, against = [], 0, None
    for one in rows:
        if one["against"] != against:
            top += AGAINST + (APART if against else 0)
            against = one["against"]
            parts.append(_text(0, top - 6, f"compared to {rival(one)}", "var(--soft)"))
        parts.append("".join(_row(one, scale, top)))
        top += ROW
    return f'<g font-size="13" fill="var(--ink)">{"".join(_axis(scale, top))}{"".join(parts)}</g>', top + AXIS


def _scale(rows: Sequence[Figure]) -> Scale:
    ratios = [one["ratio"] for one in rows if one["ratio"]]
    shown = [1.0, *ratios, *(at for at in map(_bound, rows) if at)]
    if LINEAR[0] <= min(ratios) and max(shown) <= LINEAR[1]:
        return Scale(0.0, 1.05 * max(shown), is_log=False)
    low, high = min(shown), max(shown)
    return Scale(low if low == 1 else low / 1.3, high if high == 1 else high * 1.3, is_log=True)


def _bound(one: Figure) -> float | None:
    """Where a figure's bound stands among ratios."""
    value = one["most"] if one["least"] is None else one["least"]
    if one["least_ratio"] is not None or not value or not one["value"] or one["ratio"] is None:
        return one["least_ratio"]
    return one["ratio"] * value / one["value"]


def _row(one: Figure, scale: Scale, top: int) -> Iterator[str]:
    ratio = one["ratio"] or 1.0
    left, right = sorted((scale.at(1.0 if scale.is_log else 0.0), scale.at(ratio)))
    bar = top + ROW - BAR - 8
    kept = is_kept(one) is not False
    fill = "var(--mark)" if kept else "var(--bad)"
    yield _text(0, bar - 6, f"{one['name']}: {quantity(one['value'], one['unit'])}")
    yield f'<rect x="{left:.1f}" y="{bar}" width="{max(right - left, 1):.1f}" height="{BAR}" fill="{fill}"/>'
    if at := _bound(one):
        yield f'<path d="M{scale.at(at):.1f} {bar - 3}v{BAR + 6}" stroke="var(--ink)" stroke-width="2"/>'
    words = times(ratio) if kept else f"{times(ratio)} not kept"
    yield _text(WIDTH, bar + BAR - 1, words, "currentColor" if kept else fill, anchor="end")


def _axis(scale: Scale, bottom: int) -> Iterator[str]:
    if scale.is_log:
        yield _text(WIDTH, bottom + 16, "logarithmic", "var(--soft)", anchor="end")
    for tick in scale.ticks():
        x = scale.at(tick)
        line = "var(--soft)" if tick == 1 else "var(--line)"
        dashes = ' stroke-dasharray="4 3"' if tick == 1 else ""
        yield f'<path d="M{x:.1f} 0V{bottom}" stroke="{line}"{dashes}/>'
        yield _text(x, bottom + 16, f"{tick:g}", "var(--soft)", anchor="middle" if x > 4 else "start")


def _text(x: float, y: float, words: str, fill: str = "currentColor", *, anchor: str = "start") -> str:
    short = words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}" text-anchor="{anchor}" paint-order="stroke" '
        f'stroke="var(--paper)" stroke-width="4">{escape(short)}</text>'
    )
