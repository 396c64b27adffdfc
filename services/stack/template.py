"""Configuration files from templates, in which an upper-case variable in braces stands for a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

# nginx writes its own variables in lower case.
VARIABLE = re.compile(r"\$\{([A-Z_]+)\}")


def fill(template: Path, values: Mapping[str, str]) -> str:
    """The text of a template with each value in place of its variable, in one pass.

    Raises:
        KeyError: a variable has no value.
    """
    return VARIABLE.sub(lambda match: values[match.group(1)], template.read_text(encoding="utf-8"))


def write(files: Mapping[str, str], folder: Path) -> None:
    """Write files, by name, readable by their owner alone."""
    for name, text in files.items():
        path = folder / name
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
