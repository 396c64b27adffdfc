"""The report as a self-contained HTML page: no script, no external resources, and all texts of rows are escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rewardstack_cli.evaluation.document import document, table
from rewardstack_cli.evaluation.plots import calibration_plot, roc_plot
from rewardstack_cli.evaluation.terminal import FIGURES, comparison_words, injection_words, number, title


def page(report: Mapping[str, Any]) -> str:
    """Return the report as an HTML page."""
    name = f"Scores against labels: {report['file']}"
    sections = "".join(_section(setting, report) for setting in report["settings"])
    comparison = "" if report["comparison"] is None else _comparison(report)
    words = (
        f"{report['rows']} rows, of which {report['right']} are labeled right by {report['label']}; "
        f"a response counts as right if its score is at least {report['threshold']:g}."
    )
    return document(name, f"<p>{escape(words)}</p>\n{comparison}{sections}")


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
    return table("Figures of the rows that have a score; rows without one are counted separately", heads, rows)


def _confusion(found: Mapping[str, int]) -> str:
    rows = [
        ["right", found["true_positive"], found["false_negative"]],
        ["wrong", found["false_positive"], found["true_negative"]],
    ]
    return table("Confusion: responses by label and score", ["label", "scored right", "scored wrong"], rows)


def _bins(found: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [f"{one['low']:.3g} to {one['high']:.3g}", one["rows"], number(one["mean"]), number(one["right"])]
        for one in found
        if one["rows"]
    ]
    return table("Calibration: bins that contain scores", ["scores", "rows", "mean score", "share right"], rows)


def _without(found: Sequence[Mapping[str, Any]]) -> str:
    rows = [[one["status"], one["rows"], one["reason"]] for one in found]
    return table("Rows without a score of their own: most frequent reasons", ["status", "rows", "reason"], rows)


def _injections(found: Sequence[Mapping[str, Any]]) -> str:
    listed = [one for one in found if one["fooled"] or one["without"]]
    rows = [[one[name] for name in ("name", "fooled", "of", "without")] for one in listed]
    columns = ["injection", "scored right", "of", "without a score"]
    return table(f"Injections: {injection_words(found)}", columns, rows, empty=bool(found))


def _disagreements(setting: Mapping[str, Any]) -> str:
    rows = [_text_row(one, [f"{one['value']:.4g}"]) for one in setting["disagreements"]]
    caption = f"Disagreements, most confident first: {len(rows)} of {setting['all_disagreements']}"
    return table(caption, ["row", "source", "label", "score", "response", "reference"], rows, long=(4, 5))


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
        f"<section>\n<h2>Comparison of two settings</h2>\n<p>{escape(comparison_words(report))}</p>\n"
        + table("Figures of both settings", heads, rows)
        + table("Rows where only one setting agrees with the label", columns, pairs, long=(5, 6))
        + "</section>\n"
    )


def _text_row(one: Mapping[str, Any], scores: list[str]) -> list[Any]:
    label = "right" if one["right"] else "wrong"
    return [one["row"], one["group"], label, *scores, one["response"], one["reference"]]
