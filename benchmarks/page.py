"""The page of a run of benchmarks: of each its plot beside its table, what failed, and on what machine."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from benchmarks.figures import Figure
from benchmarks.plots import WIDTH, bars, compared
from benchmarks.wording import bound, quantity, times
from rewardstack.cli.evaluation.document import document, table

STYLE = """
:root { --bad: #b3261e } @media (prefers-color-scheme: dark) { :root { --bad: #ff8a80 } }
section { border-top: 1px solid var(--line); margin-top: 2rem } section h2 { margin-top: 1rem }
.beside { display: grid; gap: 0 2.5rem; grid-template-columns: minmax(0, 1fr) } .soft { color: var(--soft) }
@media (min-width: 62rem) { .beside:has(figure) { grid-template-columns: minmax(0, 26rem) minmax(0, 1fr) } }
figcaption { color: var(--soft); padding: 1rem 0 .3rem } a { color: var(--mark) }
nav ul { list-style: none; padding: 0; columns: 16rem } summary { cursor: pointer; color: var(--mark) }
.bad { color: var(--bad) } pre { overflow-x: auto; border-left: 3px solid var(--bad); padding-left: .8rem }
"""
TITLE = "Benchmarks"
HEADS = ("figure", "value", "ratio", "compared to", "bound", "note")


def page(report: Mapping[str, Any]) -> str:
    """The report's HTML."""
    runs = report["runs"]
    links = "".join(f'<li><a href="#{escape(one["name"])}">{escape(one["name"])}</a>{_state(one)}</li>' for one in runs)
    rows = [("date", report["when"]), ("commit", report["commit"]), *report["machine"].items()]
    rows += [("beside", report["note"])] if report["note"] else []
    parts = [
        f"<p>{escape(summary(runs))}</p>\n",
        table("On what machine", ("", ""), rows),
        f'<nav aria-label="Benchmarks"><ul>{links}</ul></nav>\n',
        *map(_section, runs),
    ]
    return document(TITLE, "".join(parts), style=STYLE)


def summary(runs: Sequence[Mapping[str, Any]]) -> str:
    """How many ran, and what became of them."""
    states = Counter(one["state"] for one in runs)
    seconds = sum(one["seconds"] for one in runs)
    ends = ", ".join(f"{states[state]} {state}" for state in ("done", "failed", "left out") if states[state])
    return f"{len(runs)} benchmarks in {seconds:,.0f} s: {ends}."


def _state(one: Mapping[str, Any]) -> str:
    return "" if one["state"] == "done" else f' <span class="bad">{escape(one["state"])}</span>'


def _section(one: Mapping[str, Any]) -> str:
    name = escape(one["name"])
    small = f" With {one['arguments']}: figures of a small run." if one["arguments"] else ""
    method = "".join(f"<p>{_code(part)}</p>\n" for part in one["method"])
    return (
        f'<section id="{name}">\n<h2>{name}</h2>\n<p>{_code(one["about"])}</p>\n'
        f'<p class="soft">{one["seconds"]:,.0f} s.{escape(small)}</p>\n{_ending(one)}'
        f'<div class="beside">{_plot(one)}{_table(one["figures"])}</div>\n'
        f"<details><summary>How it is measured</summary>\n{method}</details>\n</section>\n"
    )


def _ending(one: Mapping[str, Any]) -> str:
    """What a benchmark said last that did not end as it should."""
    if one["state"] == "done":
        return ""
    words = f"Exit status {one['status']}; it said last:" if one["state"] == "failed" else "Left out; it said:"
    said = escape("\n".join(one["said"]))
    return f'<p class="bad">{words}</p>\n<pre>{said}</pre>\n'


def _plot(one: Mapping[str, Any]) -> str:
    if not compared(one["figures"]):
        return ""
    drawing, height = bars(one["figures"])
    return (
        f"<figure><figcaption>Times what it is compared to</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Ratios of {escape(one["name"])}">'
        f"{drawing}</svg></figure>"
    )


def _table(figures: Sequence[Figure]) -> str:
    rows = [
        (one["name"], quantity(one["value"], one["unit"]), times(one["ratio"]) if one["ratio"] else "",
         one["against"] or "", bound(one), one["note"])
        for one in figures
    ]  # fmt: skip
    return table("Figures", HEADS, rows)


def _code(words: str) -> str:
    """A text of a docstring: what stands between backquotes is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(words))
