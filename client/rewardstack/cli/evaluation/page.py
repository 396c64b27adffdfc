"""The report as a page that stands alone: no script, nothing fetched, every text of a row escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from rewardstack.cli.evaluation.plots import calibration_plot, roc_plot
from rewardstack.cli.evaluation.terminal import FIGURES, comparison_words, injection_words, number, title

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --soft: #5b6570; --line: #c9d0d7; --mark: #0b62c4;
  --bar: #9cc4ee }
@media (prefers-color-scheme: dark) { :root { --paper: #14181d; --ink: #e6e9ec; --soft: #a3adb8; --line: #3a434d;
  --mark: #6cb0ff; --bar: #2c5a8c } }
body { margin: 0 auto; max-width: 76rem; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 16px/1.45 system-ui, sans-serif }
h1 { font-size: 1.5rem; overflow-wrap: anywhere } h2 { font-size: 1.2rem; margin-top: 2rem; overflow-wrap: anywhere }
.wide { overflow-x: auto } .plots { display: flex; flex-wrap: wrap; gap: 1rem 2rem }
svg { width: 100%; max-width: 26rem; height: auto; color: var(--ink) } figure { margin: 0; flex: 1 1 18rem }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
caption { text-align: left; color: var(--soft); padding-bottom: .3rem }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .7rem .3rem 0; text-align: left; vertical-align: top }
td { overflow-wrap: anywhere } .texts td { min-width: 5rem } .texts td.long { min-width: 14rem; white-space: pre-wrap }
p { max-width: 60rem; overflow-wrap: anywhere }
"""


def page(report: Mapping[str, Any]) -> str:
    """The report's HTML."""
    name = f"Scores against labels: {report['file']}"
    sections = "".join(_section(setting, report) for setting in report["settings"])
    comparison = "" if report["comparison"] is None else _comparison(report)
    words = (
        f"{report['rows']} rows, of which {report['right']} are labelled right by {report['label']}; "
        f"a score of {report['threshold']:g} or more takes a response for right."
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(name)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(name)}</h1>\n<p>{escape(words)}</p>\n{comparison}{sections}</main>\n</body>\n</html>\n"
    )


def _section(setting: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    found = setting["figures"]
    plots = [plot for plot in (calibration_plot(found), roc_plot(found)) if plot]
    parts = [
        f"<section>\n<h2>{escape(title(setting))}</h2>\n",
        _by_group(setting, report["by"]),
        _confusion(found["confusion"]),
        f'<div class="plots">{"".join(f"<figure>{plot}</figure>" for plot in plots)}</div>\n' if plots else "",
        _bins(found["bins"]),
        _without(setting["without"]),
        _injections(setting["injections"]),
        _disagreements(setting),
        "</section>\n",
    ]
    return "".join(parts)


def _by_group(setting: Mapping[str, Any], by: str) -> str:
    whole = {"name": "all", "statuses": setting["statuses"], "figures": setting["figures"]}
    rows = [
        [group["name"], group["figures"]["rows"], group["figures"]["right"],
         group["statuses"]["unscored"] + group["statuses"]["failed"], group["statuses"]["fallback"],
         *(number(group["figures"][name]) for name in FIGURES)]
        for group in (whole, *setting["groups"])
    ]  # fmt: skip
    heads = [by, "rows", "right", "no score", "fallback", *(name.replace("_", " ") for name in FIGURES)]
    return _table("Figures of the rows that have a score; the others are counted apart", heads, rows)


def _confusion(found: Mapping[str, int]) -> str:
    rows = [
        ["right", found["true_positive"], found["false_negative"]],
        ["wrong", found["false_positive"], found["true_negative"]],
    ]
    return _table("Confusion: responses by label and score", ["label", "taken for right", "taken for wrong"], rows)


def _bins(found: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [f"{one['low']:.3g} to {one['high']:.3g}", one["rows"], number(one["mean"]), number(one["right"])]
        for one in found
        if one["rows"]
    ]
    return _table("Calibration: bins that hold scores", ["scores", "rows", "mean score", "share right"], rows)


def _without(found: Sequence[Mapping[str, Any]]) -> str:
    rows = [[one["status"], one["rows"], one["reason"]] for one in found]
    return _table("Rows without a score of their own, the most frequent reasons", ["status", "rows", "reason"], rows)


def _injections(found: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [one[name] for name in ("name", "fooled", "of", "without")] for one in found if one["fooled"] or one["without"]
    ]
    columns = ["injection", "taken for right", "of", "without a score"]
    return _table(f"Injections: {injection_words(found)}", columns, rows, empty=bool(found))


def _disagreements(setting: Mapping[str, Any]) -> str:
    rows = [_text_row(one, [f"{one['value']:.4g}"]) for one in setting["disagreements"]]
    caption = f"Disagreements, the most confident first: {len(rows)} of {setting['all_disagreements']}"
    return _table(caption, ["row", "source", "label", "score", "response", "reference"], rows, long=(4, 5))


def _comparison(report: Mapping[str, Any]) -> str:
    found = report["comparison"]
    heads = ["figure", *(title(setting) for setting in report["settings"])]
    figures = [setting["figures"] for setting in report["settings"]]
    rows = [["rows with a score", *(one["rows"] for one in figures)]]
    rows += [[name.replace("_", " "), *(number(one[name]) for one in figures)] for name in FIGURES]
    pairs = [_text_row(one, [f"{one['value']:.4g}", f"{one['against']:.4g}"]) for one in found["discordant"]]
    names = [setting["name"] for setting in report["settings"]]
    columns = ["row", "source", "label", *names, "response", "reference"]
    return (
        f"<section>\n<h2>Two settings side by side</h2>\n<p>{escape(comparison_words(report))}</p>\n"
        + _table("Figures of both settings", heads, rows)
        + _table("Rows that one setting takes for what they are and the other does not", columns, pairs, long=(5, 6))
        + "</section>\n"
    )


def _text_row(one: Mapping[str, Any], scores: list[str]) -> list[Any]:
    label = "right" if one["right"] else "wrong"
    return [one["row"], one["group"], label, *scores, one["response"], one["reference"]]


def _table(
    caption: str, heads: Sequence[str], rows: Sequence[Sequence[Any]], *, long: Iterable[int] = (), empty: bool = False
) -> str:
    """A table whose first column heads its rows; nothing where there are none, unless `empty`.

    Args:
        caption: what it is of.
        heads: of the columns.
        rows: their cells.
        long: the columns of texts that may be long.
        empty: whether it is shown without rows.
    """
    if not rows and not empty:
        return ""
    if not rows:
        return f"<p>{escape(caption)}</p>\n"
    texts = {*long}
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    body = "".join(f"<tr>{''.join(_cells(row, texts))}</tr>\n" for row in rows)
    kind = ' class="texts"' if texts else ""
    return (
        f'<div class="wide"><table{kind}><caption>{escape(caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )


def _cells(row: Sequence[Any], long: set[int]) -> Iterator[str]:
    for at, cell in enumerate(row):
        text = escape(str(cell))
        kind = ' class="long"' if at in long else ""
        yield f'<th scope="row">{text}</th>' if at == 0 else f"<td{kind}>{text}</td>"
