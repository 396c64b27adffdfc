"""Lines of JSONL: numbered as in an editor, whatever is blank, and however the stream is cut."""

from __future__ import annotations

import random
from io import BytesIO

from rewardstack.core.jsonl import BOM, BUFFER, number_lines, read_pieces
from tests.support.table import Table

CASES = {
    "nothing": b"",
    "no line end": b"{}",
    "blank lines": b"\n\n {}\n \t\r\n\n{}\r\n\n",
    "a mark": BOM + b"{}\n{}",
    "a mark and a blank line": BOM + b"\n\n{}",
    "blank at the end": b"{}\n \n  ",
    "blank lines across buffers": b"\n" * (2 * BUFFER + 1) + b"{}\n" + b" \n" * BUFFER + b"[]",
    "a blank line longer than a buffer": b" " * (BUFFER + 7) + b"\n{}",
}


def expected(data: bytes) -> list[tuple[int, bytes]]:
    """Return the lines that are not blank, with their numbers."""
    lines = data.removeprefix(BOM).split(b"\n")
    return [(number, line) for number, line in enumerate(lines, 1) if line.strip()]


def found(data: bytes) -> list[tuple[int, bytes]]:
    """Return the same by the functions under test."""
    pieces = read_pieces(BytesIO(data), len(data))
    return [(number, line.rstrip(b"\n")) for number, line in number_lines(pieces)]


def test_lines(table: Table) -> None:
    """Only lines that are not blank are returned, each with its number."""
    for name, data in CASES.items():
        with table.case(name):
            assert found(data) == expected(data)
    source = random.Random(0)
    for at in range(300):
        data = bytes(source.choices(b"\n\r \t{x", k=source.randrange(40)))
        with table.case(f"{at}: {data!r}"):
            assert found(data) == expected(data)


def test_long_lines() -> None:
    """A line that is too long is cut off one byte after the limit."""
    assert list(read_pieces(BytesIO(b"\n" + b"x" * 20 + b"\n"), 9)) == [b"\n", b"x" * 10, b"x" * 10, b"\n"]


def test_blank_lines() -> None:
    """After the first blank line, blank lines are skipped a buffer at a time."""
    assert sum(1 for _ in read_pieces(BytesIO(b"\n" * 100 * BUFFER), 9)) == 101
