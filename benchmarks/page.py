"""Render the HTML report of a run of benchmarks: a plot and a table for each, failures, and the machine."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from benchmarks.figures import Figure, is_kept
from benchmarks.plots import WIDTH, bars, compared
from benchmarks.wording import bound, quantity, rival, times
from rewardstack_cli.evaluation.document import Html, render_document, render_table

BAD = """
:root { --bad: #b3261e } @media (prefers-color-scheme: dark) { :root { --bad: #ff8a80 } }
"""
"""Color of failures."""
STYLE = f"""{BAD}
.beside {{ display: grid; gap: 0 2.5rem; grid-template-columns: minmax(0, 1fr) }}
@media (min-width: 62rem) {{ .beside:has(figure) {{ grid-template-columns: minmax(0, 26rem) minmax(0, 1fr) }} }}
dl {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(8.5rem, 1fr)); gap: .8rem 1.5rem }}
dt, .soft, small, figcaption {{ color: var(--soft); font-size: .875rem; font-weight: normal }} dd {{ margin: 0 }}
nav {{ border: solid var(--line); border-width: 1px 0; margin: 1.5rem 0 }} nav ul {{ list-style: none; padding: 0 }}
nav li {{ margin: .35rem 0 }} a, summary {{ color: var(--mark) }} summary {{ cursor: pointer }}
section {{ margin-top: 2.5rem }} section h2 {{ margin-bottom: 0 }} section h2 + p {{ margin-top: .3rem }}
figcaption {{ padding: 1rem 0 .6rem }} small {{ display: block }} .beside table {{ width: 100% }}
td {{ overflow-wrap: normal }} code {{ font-size: .9em }} .bad {{ color: var(--bad); font-weight: bold }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; border-left: 3px solid var(--line); padding-left: .8rem }}
.bad + pre {{ border-color: var(--bad) }}
"""
TITLE = "Benchmarks"


def page(report: Mapping[str, Any]) -> str:
    """Return a report as an HTML page."""
    runs = report["runs"]
    facts = {"date": report["when"], "commit": report["commit"], **report["machine"]}
    if report["note"]:
        facts["note"] = report["note"]
    body = [
        f"<p>{escape(summary(runs))}</p>\n",
        f"<dl>{''.join(_fact(*fact) for fact in facts.items())}</dl>\n",
        f'<nav aria-label="Benchmarks"><ul>\n{"".join(map(_link, runs))}</ul></nav>\n',
        *map(_section, runs),
    ]
    return render_document(TITLE, "".join(body), style=STYLE)


def summary(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence with the number of benchmarks, the total time and the outcomes."""
    states = Counter(one["state"] for one in runs)
    seconds = sum(one["seconds"] for one in runs)
    ends = ", ".join(f"{states[state]} {state}" for state in ("done", "failed", "skipped") if states[state])
    return f"{len(runs)} benchmarks in {seconds:,.0f} s: {ends}."


def _fact(name: str, fact: str) -> str:
    return f"<div><dt>{escape(name)}</dt><dd>{escape(fact)}</dd></div>"


def _link(one: Mapping[str, Any]) -> str:
    """Return a link to a benchmark's section, with its state and one ratio, preferably one that has a bound."""
    name, rows = escape(one["name"]), compared(one["figures"])
    first = next((row for row in rows if is_kept(row) is not None), rows[0] if rows else None)
    kind = {"failed": "bad", "skipped": "soft"}.get(one["state"])
    state = f' <span class="{kind}">{one["state"]}</span>' if kind else ""
    summary_text = f"{first['name']}: {times(first['ratio'] or 0)} {rival(first)}" if first else ""
    return f'<li><a href="#{name}">{name}</a>{state} <span class="soft">{escape(summary_text)}</span></li>\n'


def _section(one: Mapping[str, Any]) -> str:
    name = escape(one["name"])
    small = (
        f" Small run ({one['arguments']}): the figures are not meaningful."
        if one["figures"] and one["arguments"]
        else ""
    )
    method = "".join(f"<p>{_code(part)}</p>\n" for part in one["method"])
    return (
        f'<section id="{name}">\n<h2>{name}</h2>\n<p>{_code(one["about"])} '
        f'<span class="soft">It took {quantity(round(one["seconds"]), "s")}.{escape(small)}</span></p>\n{_ending(one)}'
        f'<div class="beside">{_plot(one)}{_table(one["figures"])}</div>\n'
        f"<details><summary>How it is measured</summary>\n{method}</details>\n</section>\n"
    )


def _ending(one: Mapping[str, Any]) -> str:
    """Return why a benchmark failed or was skipped: missed bounds or its last output; empty if it succeeded."""
    if one["state"] == "done":
        return ""
    beyond = ", ".join(dict.fromkeys(row["name"] for row in one["figures"] if is_kept(row) is False))
    if beyond:
        return f'<p class="bad">Failed, missed its bound: {escape(beyond)}.</p>\n'
    output = escape("\n".join(one["said"]))
    if one["state"] == "skipped":
        return f'<p class="soft">Skipped:</p>\n<pre>{output}</pre>\n'
    return f'<p class="bad">Failed with exit status {one["status"]}. Last output:</p>\n<pre>{output}</pre>\n'


def _plot(one: Mapping[str, Any]) -> str:
    if not compared(one["figures"]):
        return ""
    drawing, height = bars(one["figures"])
    return (
        f"<figure><figcaption>Ratios (dashed: 1, upright stroke: a bound)</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Ratios of {escape(one["name"])}">'
        f"{drawing}</svg></figure>"
    )


def _table(figures: Sequence[Figure]) -> str:
    rows = [(_noted(one["name"], one["note"]), _value(one), _ratio(one)) for one in figures]
    return render_table("Figures", ("figure", "value", "ratio"), rows)


def _value(one: Figure) -> Html:
    kept = is_kept(one) is not False
    return _noted(quantity(one["value"], one["unit"]), bound(one), kind="" if kept else ' class="bad"')


def _ratio(one: Figure) -> Html:
    return _noted(times(one["ratio"]), f"to {rival(one)}") if one["ratio"] else Html()


def _noted(words: str, note: str, *, kind: str = "") -> Html:
    """Return a text with a smaller note below it."""
    return Html(escape(words) + (f"<small{kind}>{escape(note)}</small>" if note else ""))


def _code(words: str) -> str:
    """Return the text of a docstring as HTML, with backquoted parts as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(words))
