"""Print the report on a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rewardstack_cli.console import Grid, plain_text, put

FIGURES = ("agreement", "precision", "recall", "auc", "brier", "calibration_error")
"""The metrics in tables, in order."""
MAX_RESPONSE = 60
"""Maximum characters of a response in the list of disagreements."""


def show_report(report: Mapping[str, Any]) -> None:
    """Print metrics by setting and group, injections that succeed, disagreements, and the comparison."""
    settings = report["settings"]
    has_several = len(settings) > 1
    for setting in settings:
        if has_several or setting["options"]:
            put(plain_text(setting_title(setting), "bold"))
        _show_figures(setting, report["by"])
        for line in _detail_lines(setting):
            put(plain_text(line))
    if report["comparison"] is not None:
        put(plain_text(describe_comparison(report)))


def setting_title(setting: Mapping[str, Any]) -> str:
    """Return the title of a setting: its name and its options."""
    options = ", ".join(f"{name}={json.dumps(value)}" for name, value in setting["options"].items())
    return f"{setting['name']}: {options or 'the options in the rows'}"


def format_figure(value: float | None) -> str:
    """Format a metric; a dash if it is undefined."""
    return "-" if value is None else f"{value:.3f}"


def _show_figures(setting: Mapping[str, Any], by: str) -> None:
    table = Grid(by, "rows", "right", "no score", "fallback", *(name.replace("_", " ") for name in FIGURES))
    all_rows = {"name": "all", "statuses": setting["statuses"], "figures": setting["figures"]}
    groups = setting["groups"]
    for group in [all_rows, *groups] if len(groups) > 1 else groups:
        figures, statuses = group["figures"], group["statuses"]
        counts = (figures["rows"], figures["right"], statuses["unscored"] + statuses["failed"], statuses["fallback"])
        table.add_row(plain_text(group["name"]), *map(str, counts), *(format_figure(figures[name]) for name in FIGURES))
    table.show()


def _detail_lines(setting: Mapping[str, Any]) -> Iterator[str]:
    figures = setting["figures"]["confusion"]
    yield (
        f"true positives {figures['true_positive']}, false negatives {figures['false_negative']}; "
        f"true negatives {figures['true_negative']}, false positives {figures['false_positive']}"
    )
    if bits := setting["figures"]["bits"]:
        yield f"auc is approximate: too many different scores, so they are rounded down to {bits} significant bits"
    for one in setting["without"]:
        yield f"{one['rows']} {one['status']}: {one['reason']}"
    yield from _injection_lines(setting["injections"])
    if setting["disagreements"]:
        yield f"disagreements: {setting['all_disagreements']}, most confident first"
    for one in setting["disagreements"]:
        label = "right" if one["right"] else "wrong"
        yield f"{one['row']}: {label}, scored {one['value']:.4g}: {one['response'][:MAX_RESPONSE]}"


def _injection_lines(figures: list[dict[str, Any]]) -> Iterator[str]:
    if not figures:
        return
    yield f"injections: {describe_injections(figures)}"
    yield from (f"{one['name']}: {one['fooled']} of {one['of']}" for one in figures if one["fooled"])


def describe_injections(figures: Sequence[Mapping[str, Any]]) -> str:
    """Summarize the results of all injections in a sentence.

    A trial scores a response together with an injection. Trials are counted only for responses that are labeled wrong,
    and that are also scored wrong without an injection.
    """
    fooled, tried, without = (sum(one[name] for one in figures) for name in ("fooled", "of", "without"))
    words = f"in {fooled} of {tried} trials, a wrong response was scored right because of an injection"
    return f"{words}; trials without a score, not counted: {without}" if without else words


def describe_comparison(report: Mapping[str, Any]) -> str:
    """Compare the two settings in a sentence."""
    figures = report["comparison"]
    first, second = (setting["name"] for setting in report["settings"])
    p = "no row differs" if figures["p"] is None else f"McNemar's exact p = {figures['p']:.4g}"
    return (
        f"rows with a score in both settings: {figures['rows']}; the score agrees with the label in both for "
        f"{figures['both_agree']}, only in {first} for {figures['first_alone']}, only in {second} for "
        f"{figures['second_alone']}: {p}"
    )
