"""Render configuration files from templates with variables such as `${NAME}`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

# Match only upper case, because nginx's own variables are in lower case.
VARIABLE = re.compile(r"\$\{([A-Z_]+)\}")


def fill(text: str, values: Mapping[str, str | Sequence[str]]) -> str:
    """Return the text of a template with its variables replaced.

    A line whose variable has a list of values is repeated for each value.

    Raises:
        KeyError: a variable has no value.
    """
    lines = text.splitlines(keepends=True)
    return "".join("".join(parts) for line in lines for parts in product(*_choices(line, values)))


def _choices(line: str, values: Mapping[str, str | Sequence[str]]) -> Iterator[Sequence[str]]:
    """Yield the alternatives for each part of a line: its text, or the values of a variable."""
    for place, part in enumerate(VARIABLE.split(line)):
        choice = values[part] if place % 2 else part
        yield [choice] if isinstance(choice, str) else choice


def write(files: Mapping[str, str], folder: Path) -> None:
    """Write files to a folder. Only their owner can read new files."""
    for name, text in files.items():
        path = folder / name
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
