"""Draw the plots of the report as inline SVG, in the colors of the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

SIDE = 300
"""Side of the plotted square in SVG units."""
LEFT, TOP, WIDTH, HEIGHT = 60, 12, 376, 362
"""Left and top margin of the square, and width and height of the plot, in SVG units."""
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""The labeled values of both axes."""


def calibration_plot(figures: Mapping[str, Any]) -> str:
    """Plot the share of right responses over the mean score of each bin; return an empty text if there are no bins."""
    bins = [one for one in figures["bins"] if one["rows"]]
    if not bins:
        return ""
    max_rows = max(one["rows"] for one in bins)
    bars = "".join(
        f'<rect x="{_x(one["low"]):.1f}" y="{_y(one["rows"] / max_rows / 4):.1f}" '
        f'width="{(one["high"] - one["low"]) * SIDE:.1f}" height="{one["rows"] / max_rows / 4 * SIDE:.1f}" '
        f'fill="var(--bar)"/>'
        for one in bins
    )
    points = [(one["mean"], one["right"]) for one in bins]
    description = (
        f"{len(bins)} bins; expected calibration error {figures['calibration_error']:.3f}. Bars: rows in each bin."
    )
    return _svg("Calibration", description, "mean score of the bin", "share of right responses", bars + _line(points))


def roc_plot(figures: Mapping[str, Any]) -> str:
    """Plot the ROC curve; return an empty text if there are no right or no wrong responses."""
    if not figures["roc"]:
        return ""
    description = f"Area under the curve {figures['auc']:.3f}."
    line = _line(figures["roc"])
    return _svg("ROC curve", description, "false positive rate", "true positive rate", line)


def _x(value: float) -> float:
    return LEFT + value * SIDE


def _y(value: float) -> float:
    return TOP + (1 - value) * SIDE


def _line(points: Iterable[tuple[float, float]]) -> str:
    coordinates = [(_x(x), _y(y)) for x, y in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in coordinates)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="var(--mark)"/>' for x, y in coordinates)
    return f'<polyline points="{path}" fill="none" stroke="var(--mark)" stroke-width="2"/>{dots}'


def _svg(title: str, description: str, x_label: str, y_label: str, drawing: str) -> str:
    """Return a caption and an SVG: axes from 0 to 1, a diagonal and the drawing. The arguments are not escaped."""
    name = title.replace(" ", "-").lower()
    ticks = "".join(
        f'<text x="{_x(tick):.1f}" y="{TOP + SIDE + 16}" text-anchor="middle">{tick:g}</text>'
        f'<text x="{LEFT - 6}" y="{_y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
        for tick in TICKS
    )
    return (
        f'<figcaption>{title}. {description}</figcaption><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{title}"><title>{title}</title><desc>{description}</desc>'
        f'<g data-plot="{name}" font-size="12" fill="currentColor">'
        f'<rect x="{LEFT}" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="var(--line)"/>{drawing}'
        f'<line x1="{LEFT}" y1="{TOP + SIDE}" x2="{LEFT + SIDE}" y2="{TOP}" stroke="var(--soft)" '
        f'stroke-dasharray="4 4"/>{ticks}'
        f'<text x="{LEFT + SIDE / 2}" y="{TOP + SIDE + 40}" text-anchor="middle">{x_label}</text>'
        f'<text x="14" y="{TOP + SIDE / 2}" text-anchor="middle" '
        f'transform="rotate(-90 14 {TOP + SIDE / 2})">{y_label}</text></g></svg>'
    )
