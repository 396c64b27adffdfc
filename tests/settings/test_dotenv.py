"""The syntax of `.env`."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.stack.errors import StackError
from services.stack.settings import read_dotenv


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
            read_dotenv(path)
    else:
        assert read_dotenv(path) == expected


def test_missing_file(tmp_path: Path) -> None:
    """A tree without `.env` says so, and how to get it back."""
    with pytest.raises(StackError, match=r"\.env is missing — restore it .* `git checkout -- \.env`"):
        read_dotenv(tmp_path / ".env")


def test_a_mark_at_its_beginning(tmp_path: Path) -> None:
    """What editors write before the first letter is no part of it."""
    (tmp_path / ".env").write_text("RUN_DIR=/tmp/run\n", encoding="utf-8-sig")
    assert read_dotenv(tmp_path / ".env") == {"RUN_DIR": "/tmp/run"}


@pytest.mark.parametrize(("encoding", "line"), [("latin-1", 2), ("utf-16", 1)])
def test_another_encoding(tmp_path: Path, encoding: str, line: int) -> None:
    """A file that is not UTF-8 is an error that names the line."""
    (tmp_path / ".env").write_text("RUN_DIR=.run\n# grün\n", encoding=encoding)
    with pytest.raises(StackError, match=rf"\.env, line {line}: this is not UTF-8"):
        read_dotenv(tmp_path / ".env")
