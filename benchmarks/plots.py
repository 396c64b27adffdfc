"""Draw bar charts of the ratios of figures, as SVG in the colors of the page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from benchmarks.figures import Figure, is_kept
from benchmarks.wording import quantity, rival, times

WIDTH = 416
"""Width of a plot."""
SIDE, ROW, BAR, AXIS = 96, 38, 12, 28
"""Width of the column of ratios, and heights of a row, its bar, and the axis below the rows."""
AGAINST, APART = 22, 12
"""Height of the heading of a group of rows with the same baseline, and space above it."""
LINEAR = (0.2, 4.0)
"""If all ratios of a plot are in this range, its axis is linear and starts at zero; otherwise, it is logarithmic."""
LONGEST = 58
"""Maximum number of characters in a line."""


class Scale(NamedTuple):
    """An axis of ratios.

    Args:
        low: ratio at its left end.
        high: ratio at its right end.
        is_log: whether it is logarithmic; bars then start at 1, else at 0.
    """

    low: float
    high: float
    is_log: bool

    def at(self, ratio: float) -> float:
        """Return the x coordinate of a ratio."""
        low, high, value = (math.log(one) if self.is_log else one for one in (self.low, self.high, ratio))
        return (WIDTH - SIDE) * (value - low) / (high - low)

    def ticks(self) -> list[float]:
        """Return a few round ratios along the axis."""
        if not self.is_log:
            step = 0.25 if self.high <= 1.3 else 0.5 if self.high <= 2.6 else 1.0
            return [step * at for at in range(int(self.high / step + 1e-9) + 1)]
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        every = -(-(last - first) // 5)
        steps = (1, 2, 5) if self.high <= 60 * self.low else (1,)
        found = [step * 10.0**power for power in range(first - first % every, last + 1, every) for step in steps]
        return [tick for tick in found if self.low <= tick <= self.high]


def compared(figures: Sequence[Figure]) -> list[Figure]:
    """Return the figures that have a ratio, grouped by what they are compared to."""
    order = list(dict.fromkeys(one["against"] for one in figures))
    return sorted((one for one in figures if one["ratio"]), key=lambda one: order.index(one["against"]))


def bars(figures: Sequence[Figure]) -> tuple[str, int]:
    """Draw the figures that have a ratio; return the SVG, `WIDTH` wide, and its height."""
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
    """Return a figure's bound as a ratio; None if it has none."""
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
    words = times(ratio) if kept else f"{times(ratio)} missed"
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
