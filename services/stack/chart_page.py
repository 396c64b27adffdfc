"""Generate the chart's README: tables of the values, described by the comments in `values.yaml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

HEAD = """\
<!-- Written from values.yaml by `make settings`. -->
# The chart's values

How to use them: [docs/kubernetes.md](../../docs/kubernetes.md). Other names are rejected.
"""
SINGLE_VALUES = frozenset({"resources", "gpu", "cpu"})
"""Maps that are documented as a single value."""
LINE = re.compile(r"^(?P<indent> *)(?:# (?P<comment>.*)|(?P<name>\w+):(?P<flow>.*))?$", re.M)
STEP = 2
"""Number of spaces by which a nested map is indented."""


@dataclass
class Section:
    """A top-level map of values, or the values outside of any map.

    Args:
        title: name of the map; empty for values outside of any map.
        meaning: description of the map.
        rows: name, default and meaning of each value.
    """

    title: str = ""
    meaning: str = ""
    rows: list[tuple[str, str, str]] = field(default_factory=list)


def render_page(text: str) -> str:
    """Return the README for a `values.yaml`.

    Args:
        text: text of the file. The comment above a value describes it; a value without a comment has the description
            of the last value with the same name.

    Raises:
        ValueError: a value has no comment, and no earlier value has the same name.
    """
    return "\n".join([HEAD, *(line for section in sections(text) for line in _lines(section)), ""])


def sections(text: str) -> list[Section]:
    """Return the sections of a `values.yaml` in order. Parameters and errors as in `render_page`."""
    values, found = yaml.safe_load(text), [Section()]
    path, comment, known = list[str](), list[str](), dict[str, str]()
    for line in LINE.finditer(text):
        name = line["name"]
        if name is None:
            comment = [*comment, line["comment"]] if line["comment"] else []
            continue
        path, meaning, comment = [*path[: len(line["indent"]) // STEP], name], " ".join(comment), []
        value = _lookup(values, path)
        if SINGLE_VALUES & {*path[:-1]}:
            continue
        if isinstance(value, dict) and not line["flow"] and name not in SINGLE_VALUES:
            if len(path) == 1:
                found.append(Section(name, meaning))
            elif meaning:
                found[-1].rows.append((".".join(path), "", meaning))
            continue
        known[name] = meaning or known.get(name, "")
        if not known[name]:
            raise ValueError(f"values.yaml: {'.'.join(path)} has no comment, and no value above it has that name")
        found[-1 if len(path) > 1 else 0].rows.append((".".join(path), _format_default(value), known[name]))
    return found


def _lines(section: Section) -> list[str]:
    title = [f"## {section.title}", "", section.meaning, ""] if section.title else []
    cells = (tuple(cell.replace("|", r"\|") for cell in row) for row in section.rows)
    rows = [f"| `{name}` | {f'`{default}`' if default else ''} | {meaning} |" for name, default, meaning in cells]
    return [*title, "| name | default | meaning |", "| --- | --- | --- |", *rows, ""]


def _lookup(values: Mapping[str, Any], path: list[str]) -> Any:
    found: Any = values
    for name in path:
        found = found[name]
    return found


def _format_default(value: Any) -> str:
    """Return a default value as YAML on one line."""
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**6).removesuffix("...\n").strip()
