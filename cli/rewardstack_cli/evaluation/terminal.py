"""Print the report on a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rewardstack_cli.console import Grid, plain_text, put

FIGURES = ("agreement", "precision", "recall", "auc", "brier", "calibration_error")
"""The figures of `figures.summary` that tables show, in order."""
WIDTH = 60
"""Maximum characters of a response in the list of disagreements."""


def show_report(report: Mapping[str, Any]) -> None:
    """Print figures by setting and group, injections that succeed, disagreements, and the comparison."""
    settings = report["settings"]
    several = len(settings) > 1
    for setting in settings:
        if several or setting["options"]:
            put(plain_text(title(setting), "bold"))
        _show_figures(setting, report["by"])
        for line in _lines(setting):
            put(plain_text(line))
    if report["comparison"] is not None:
        put(plain_text(comparison_words(report)))


def title(setting: Mapping[str, Any]) -> str:
    """Return the title of a setting: its name and its options."""
    options = ", ".join(f"{name}={json.dumps(value)}" for name, value in setting["options"].items())
    return f"{setting['name']}: {options or 'the rows as they are'}"


def number(value: float | None) -> str:
    """Format a figure; a dash if it is undefined."""
    return "-" if value is None else f"{value:.3f}"


def _show_figures(setting: Mapping[str, Any], by: str) -> None:
    table = Grid(by, "rows", "right", "no score", "fallback", *(name.replace("_", " ") for name in FIGURES))
    whole = {"name": "all", "statuses": setting["statuses"], "figures": setting["figures"]}
    groups = setting["groups"]
    for group in [whole, *groups] if len(groups) > 1 else groups:
        found, statuses = group["figures"], group["statuses"]
        counts = (found["rows"], found["right"], statuses["unscored"] + statuses["failed"], statuses["fallback"])
        table.add_row(plain_text(group["name"]), *map(str, counts), *(number(found[name]) for name in FIGURES))
    table.show()


def _lines(setting: Mapping[str, Any]) -> Iterator[str]:
    found = setting["figures"]["confusion"]
    yield (
        f"true positives {found['true_positive']}, false negatives {found['false_negative']}; "
        f"true negatives {found['true_negative']}, false positives {found['false_positive']}"
    )
    if bits := setting["figures"]["bits"]:
        yield f"too many different scores: auc is that of their first {bits} bits"
    for one in setting["without"]:
        yield f"{one['rows']} {one['status']}: {one['reason']}"
    yield from _injections(setting["injections"])
    if setting["disagreements"]:
        yield f"disagreements: {setting['all_disagreements']}, most confident first"
    for one in setting["disagreements"]:
        label = "right" if one["right"] else "wrong"
        yield f"{one['row']}: {label}, scored {one['value']:.4g}: {one['response'][:WIDTH]}"


def _injections(found: list[dict[str, Any]]) -> Iterator[str]:
    if not found:
        return
    yield f"injections: {injection_words(found)}"
    yield from (f"{one['name']}: {one['fooled']} of {one['of']}" for one in found if one["fooled"])


def injection_words(found: Sequence[Mapping[str, Any]]) -> str:
    """Summarize the results of all injections in a sentence."""
    fooled, tried, without = (sum(one[name] for one in found) for name in ("fooled", "of", "without"))
    words = f"{fooled} of {tried} wrong responses were scored right only with an injection"
    return f"{words}; {without} had no score with an injection" if without else words


def comparison_words(report: Mapping[str, Any]) -> str:
    """Compare the two settings in a sentence."""
    found = report["comparison"]
    first, second = (setting["name"] for setting in report["settings"])
    p = "no row differs" if found["p"] is None else f"McNemar's exact p = {found['p']:.4g}"
    return (
        f"of {found['rows']} rows that both score, {found['both_agree']} agree with their label in both settings, "
        f"{found['first_alone']} in {first} alone, {found['second_alone']} in {second} alone: {p}"
    )
