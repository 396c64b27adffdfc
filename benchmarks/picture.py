"""Draw the plots of a run of benchmarks as one SVG picture, with the machine and the commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from textwrap import wrap
from typing import Any

from benchmarks.page import BAD, TITLE
from benchmarks.plots import WIDTH, bars, compared
from rewardstack_cli.evaluation.document import COLORS

EDGE, GAP = 20, 40
"""Outer margin, and space between the two columns."""
HEAD, LINE, NAME = 52, 18, 44
"""Heights of the heading, of each line below it, and of a plot's title."""
LONGEST = 130
"""Maximum number of characters in a line."""
LEGEND = "Dashed: 1, as much as what it is compared to. Upright stroke: a bound."
FULL = 2 * (EDGE + WIDTH) + GAP


def picture(report: Mapping[str, Any]) -> str:
    """Return a report as SVG with two columns of plots; each plot goes to the shorter column."""
    head = _head(report)
    columns, parts = [HEAD + LINE * len(head)] * 2, []
    for one in report["runs"]:
        if not compared(one["figures"]):
            continue
        drawing, height = bars(one["figures"])
        at = columns.index(min(columns))
        x, y = EDGE + at * (WIDTH + GAP), columns[at]
        parts.append(
            f'<g transform="translate({x} {y})"><text y="24" font-size="15" font-weight="bold">{escape(_name(one))}'
            f'</text><g transform="translate(0 {NAME - 8})">{drawing}</g></g>'
        )
        columns[at] += NAME + height
    return _svg(head, "".join(parts), max(columns) + EDGE)


def _name(one: Mapping[str, Any]) -> str:
    """Return a benchmark's name; say if it failed or was a small run."""
    remarks = [word for word, holds in (("failed", one["status"]), ("a small run", one["arguments"])) if holds]
    return f"{one['name']} ({', '.join(remarks)})" if remarks else one["name"]


def _head(report: Mapping[str, Any]) -> list[str]:
    """Return lines with the machine, the date and the commit of a run."""
    machine = report["machine"]
    texts = [
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory']}, Python {machine['Python']}, "
        f"Redis {machine['Redis']}, load before {machine['load before']}. {report['note']}",
        f"{report['when']}, commit {report['commit']}. {LEGEND}",
    ]
    return [line for text in texts for line in wrap(text, LONGEST)]


def _svg(head: Sequence[str], drawing: str, height: int) -> str:
    lines = "".join(
        f'<text x="{EDGE}" y="{HEAD + LINE * at}" font-size="12" fill="var(--soft)">{escape(line)}</text>'
        for at, line in enumerate(head)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {FULL} {height}" width="{FULL}" height="{height}" '
        f'role="img" aria-label="{TITLE}" font-family="system-ui, sans-serif" color="var(--ink)" fill="var(--ink)">'
        f"<title>{TITLE}</title><style>{COLORS}{BAD}</style>"
        f'<rect width="{FULL}" height="{height}" fill="var(--paper)"/>'
        f'<text x="{EDGE}" y="30" font-size="18" font-weight="bold">{TITLE}: times what each is compared to</text>'
        f"{lines}{drawing}</svg>\n"
    )
