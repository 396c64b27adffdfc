"""Render the report as a self-contained HTML page; all texts of rows are escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rewardstack_cli.console import count_rows
from rewardstack_cli.evaluation.document import render_document, render_table
from rewardstack_cli.evaluation.plots import calibration_plot, roc_plot
from rewardstack_cli.evaluation.terminal import (
    FIGURES,
    describe_comparison,
    describe_injections,
    format_figure,
    setting_title,
)


def render_page(report: Mapping[str, Any]) -> str:
    """Return the report as an HTML page."""
    name = f"Scores against labels: {report['file']}"
    sections = "".join(_setting_section(setting, report) for setting in report["settings"])
    comparison = "" if report["comparison"] is None else _comparison_section(report)
    words = (
        f"{count_rows(report['rows'])}; labeled right by {report['label']}: {report['right']}; "
        f"a response counts as right if its score is at least {report['threshold']:g}."
    )
    return render_document(name, f"<p>{escape(words)}</p>\n{comparison}{sections}")


def _setting_section(setting: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    entries = setting["figures"]
    plots = [plot for plot in (calibration_plot(entries), roc_plot(entries)) if plot]
    parts = [
        f"<section>\n<h2>{escape(setting_title(setting))}</h2>\n",
        _figures_table(setting, report["by"]),
        _confusion_table(entries["confusion"]),
        f'<div class="plots">{"".join(f"<figure>{plot}</figure>" for plot in plots)}</div>\n' if plots else "",
        _calibration_table(entries["bins"]),
        _missing_scores(setting["without"]),
        _injections_table(setting["injections"]),
        _disagreements_table(setting),
        "</section>\n",
    ]
    return "".join(parts)


def _figures_table(setting: Mapping[str, Any], by: str) -> str:
    all_rows = {"name": "all", "statuses": setting["statuses"], "figures": setting["figures"]}
    rows = [
        [group["name"], group["figures"]["rows"], group["figures"]["right"],
         group["statuses"]["unscored"] + group["statuses"]["failed"], group["statuses"]["fallback"],
         *(format_figure(group["figures"][name]) for name in FIGURES)]
        for group in (all_rows, *setting["groups"])
    ]  # fmt: skip
    headings = [by, "rows", "right", "no score", "fallback", *(name.replace("_", " ") for name in FIGURES)]
    return render_table(
        "Figures of the rows that have a score; rows without one are counted separately", headings, rows
    )


def _confusion_table(entries: Mapping[str, int]) -> str:
    rows = [
        ["right", entries["true_positive"], entries["false_negative"]],
        ["wrong", entries["false_positive"], entries["true_negative"]],
    ]
    return render_table("Confusion: responses by label and score", ["label", "scored right", "scored wrong"], rows)


def _calibration_table(entries: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [f"{one['low']:.3g} to {one['high']:.3g}", one["rows"], format_figure(one["mean"]), format_figure(one["right"])]
        for one in entries
        if one["rows"]
    ]
    return render_table("Calibration: bins that contain scores", ["scores", "rows", "mean score", "share right"], rows)


def _missing_scores(entries: Sequence[Mapping[str, Any]]) -> str:
    rows = [[one["status"], one["rows"], one["reason"]] for one in entries]
    return render_table(
        "Most frequent causes of rows without a score or with a fallback", ["status", "rows", "first reason"], rows
    )


def _injections_table(entries: Sequence[Mapping[str, Any]]) -> str:
    listed = [one for one in entries if one["fooled"] or one["without"]]
    rows = [[one[name] for name in ("name", "fooled", "of", "without")] for one in listed]
    columns = ["injection", "scored right", "of", "without a score"]
    return render_table(f"Injections: {describe_injections(entries)}", columns, rows, shows_empty=bool(entries))


def _disagreements_table(setting: Mapping[str, Any]) -> str:
    rows = [_text_row(one, [f"{one['value']:.4g}"]) for one in setting["disagreements"]]
    caption = f"Disagreements, most confident first: {len(rows)} of {setting['all_disagreements']}"
    return render_table(
        caption, ["row", "source", "label", "score", "response", "reference"], rows, long_columns=(4, 5)
    )


def _comparison_section(report: Mapping[str, Any]) -> str:
    entries = report["comparison"]
    headings = ["figure", *(setting_title(setting) for setting in report["settings"])]
    figures = [setting["figures"] for setting in report["settings"]]
    rows = [["rows with a score", *(one["rows"] for one in figures)]]
    rows += [[name.replace("_", " "), *(format_figure(one[name]) for one in figures)] for name in FIGURES]
    pairs = [_text_row(one, [f"{one['value']:.4g}", f"{one['against']:.4g}"]) for one in entries["discordant"]]
    names = [setting["name"] for setting in report["settings"]]
    columns = ["row", "source", "label", *names, "response", "reference"]
    return (
        f"<section>\n<h2>Comparison of two settings</h2>\n<p>{escape(describe_comparison(report))}</p>\n"
        + render_table("Figures of both settings", headings, rows)
        + render_table("Rows where only one setting agrees with the label", columns, pairs, long_columns=(5, 6))
        + "</section>\n"
    )


def _text_row(one: Mapping[str, Any], scores: list[str]) -> list[Any]:
    label = "right" if one["right"] else "wrong"
    return [one["row"], one["group"], label, *scores, one["response"], one["reference"]]
