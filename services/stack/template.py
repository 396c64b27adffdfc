"""Configuration files from templates, in which an upper-case variable in braces stands for a value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

# nginx writes its own variables in lower case.
VARIABLE = re.compile(r"\$\{([A-Z_]+)\}")


def fill(template: Path, values: Mapping[str, str | Sequence[str]]) -> str:
    """The text of a template with each value in place of its variable, in one pass.

    A line whose variable has a list of values stands there once for each of them.

    Raises:
        KeyError: a variable has no value.
    """
    return fill_text(template.read_text(encoding="utf-8"), values)


def fill_text(text: str, values: Mapping[str, str | Sequence[str]]) -> str:
    """As `fill`, of a template's text."""
    lines = text.splitlines(keepends=True)
    return "".join("".join(parts) for line in lines for parts in product(*_choices(line, values)))


def _choices(line: str, values: Mapping[str, str | Sequence[str]]) -> Iterator[Sequence[str]]:
    """What stands in each place of a line, whose text and variables take turns."""
    for place, part in enumerate(VARIABLE.split(line)):
        choice = values[part] if place % 2 else part
        yield [choice] if isinstance(choice, str) else choice


def write(files: Mapping[str, str], folder: Path) -> None:
    """Write files, by name, readable by their owner alone."""
    for name, text in files.items():
        path = folder / name
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
