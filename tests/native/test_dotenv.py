"""The syntax of `.env`."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.stack import dotenv
from services.stack.errors import StackError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=1", {"A": "1"}),
        ("  A = 1", None),
        ("A=1\n\n# B=2\nC=3", {"A": "1", "C": "3"}),
        ("A=", {"A": ""}),
        ("A=  spaces around  ", {"A": "spaces around"}),
        ("A=x # a comment", {"A": "x"}),
        ("A=x#y", {"A": "x#y"}),
        ("A=# a comment", {"A": ""}),
        ("A='x # y' # a comment", {"A": "x # y"}),
        ('A="x=y"', {"A": "x=y"}),
        ("A='x", None),
        ("A=1\nA=2", None),
        ("export A=1", None),
        ("A", None),
    ],
)
def test_syntax(tmp_path: Path, text: str, expected: dict[str, str] | None) -> None:
    """Each line is NAME=value or an error that names the line."""
    path = tmp_path / ".env"
    path.write_text(text)
    if expected is None:
        with pytest.raises(StackError, match=r"\.env, line \d"):
            dotenv.read(path)
    else:
        assert dotenv.read(path) == expected


def test_missing_file(tmp_path: Path) -> None:
    """A tree without `.env` says so, and how to get it back."""
    with pytest.raises(StackError, match=r"\.env is missing\n  remedy: git checkout -- \.env"):
        dotenv.read(tmp_path / ".env")
