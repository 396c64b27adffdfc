"""Read `.env` and `.env.local` in a subset of Docker Compose's syntax."""

from __future__ import annotations

import re
from pathlib import Path

from services.stack.errors import StackError

LOCAL = ".env.local"
"""File with the user's lasting settings, which git ignores and upgrades do not change."""

ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)")
QUOTED = re.compile(r"""(["'])(.*?)\1\s*(?:#.*)?""")


def read(path: Path) -> dict[str, str]:
    """Return the values in a file with lines `NAME=value`, by name.

    A value may be in single or double quotes. Outside quotes, a `#` starts a comment at the beginning of the value,
    after white space, or after the closing quote. Variables are not interpolated.

    Raises:
        StackError: the file is missing, or a line is invalid or duplicated; the message names the line.
    """
    if not path.is_file():
        raise StackError(
            f"{path.name} is missing", f"restore it from the archive, or with `git checkout -- {path.name}`"
        )
    values: dict[str, str] = {}
    for number, line in enumerate(_text(path).splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        where = f"{path.name}, line {number}"
        if not (match := ASSIGNMENT.fullmatch(text)):
            raise StackError(f"{where}: {text!r} is not an assignment", "write NAME=value")
        name, raw = match.groups()
        if name in values:
            raise StackError(f"{where}: {name} is set twice", "remove one of the two lines")
        values[name] = _value(raw.strip(), f"{where}: {name}")
    return values


def read_local(root: Path) -> dict[str, str]:
    """Return the values in the user's `.env.local`; empty if there is none.

    Raises:
        StackError: as `read` does.
    """
    path = root / LOCAL
    return read(path) if path.exists() else {}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise StackError(f"{path.name}, line {line}: this is not UTF-8", f"save {path.name} as UTF-8") from None


def _value(raw: str, where: str) -> str:
    if raw[:1] in ("'", '"'):
        if not (match := QUOTED.fullmatch(raw)):
            raise StackError(
                f"{where} does not end with its opening quote", "close the quote; only a comment may follow"
            )
        return match.group(2)
    return "" if raw.startswith("#") else re.split(r"\s#", raw, maxsplit=1)[0].strip()
