"""The page of the Helm chart: what its `values.yaml` says of each value, as tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

HEAD = """\
<!-- Written from values.yaml by `make settings`. -->
# The chart's values

How they are used: [docs/kubernetes.md](../../docs/kubernetes.md). A name that is none of these is refused.
"""
WHOLE = frozenset({"resources", "gpu", "cpu"})
"""Maps that are one value, though they take several lines."""
LINE = re.compile(r"^(?P<indent> *)(?:# (?P<comment>.*)|(?P<name>\w+):(?P<flow>.*))?$", re.M)
STEP = 2
"""Spaces by which a map stands further right."""


@dataclass
class Section:
    """A map of values, or those that stand in none.

    Args:
        title: its name, empty for the latter.
        meaning: of the map.
        rows: name, default and meaning of each value.
    """

    title: str = ""
    meaning: str = ""
    rows: list[tuple[str, str, str]] = field(default_factory=list)


def page(text: str) -> str:
    """The page of a `values.yaml`.

    Args:
        text: of the file: a comment above each value says what it means; one without has the meaning of the last value
            of its name.

    Raises:
        ValueError: no value of a name has a meaning.
    """
    return "\n".join([HEAD, *(line for section in sections(text) for line in _lines(section)), ""])


def sections(text: str) -> list[Section]:
    """The sections of a `values.yaml`, in its order; `page` says of what form it is.

    Raises:
        ValueError: as `page` does.
    """
    values, found = yaml.safe_load(text), [Section()]
    path, comment, known = list[str](), list[str](), dict[str, str]()
    for line in LINE.finditer(text):
        name = line["name"]
        if name is None:
            comment = [*comment, line["comment"]] if line["comment"] else []
            continue
        path, meaning, comment = [*path[: len(line["indent"]) // STEP], name], " ".join(comment), []
        value = _at(values, path)
        if WHOLE & {*path[:-1]}:
            continue
        if isinstance(value, dict) and not line["flow"] and name not in WHOLE:
            if len(path) == 1:
                found.append(Section(name, meaning))
            elif meaning:
                found[-1].rows.append((".".join(path), "", meaning))
            continue
        known[name] = meaning or known.get(name, "")
        if not known[name]:
            raise ValueError(f"values.yaml: {'.'.join(path)} has no comment, and no value above it has that name")
        found[-1 if len(path) > 1 else 0].rows.append((".".join(path), _shown(value), known[name]))
    return found


def _lines(section: Section) -> list[str]:
    title = [f"## {section.title}", "", section.meaning, ""] if section.title else []
    cells = (tuple(cell.replace("|", r"\|") for cell in row) for row in section.rows)
    rows = [f"| `{name}` | {f'`{default}`' if default else ''} | {meaning} |" for name, default, meaning in cells]
    return [*title, "| name | default | meaning |", "| --- | --- | --- |", *rows, ""]


def _at(values: Mapping[str, Any], path: list[str]) -> Any:
    found: Any = values
    for name in path:
        found = found[name]
    return found


def _shown(value: Any) -> str:
    """A default as it would be written in a file of values, on one line."""
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**6).removesuffix("...\n").strip()
