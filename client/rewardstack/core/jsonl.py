"""Read JSONL: find the lines of a stream, at next to no cost for blank ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from io import BufferedReader, RawIOBase
from typing import IO

BOM = b"\xef\xbb\xbf"
BUFFER = 2**13
"""Number of bytes that are read at a time."""
BLANK = re.compile(rb"\s*\n")


def read_pieces(stream: IO[bytes] | RawIOBase, line_bytes: int) -> Iterator[bytes]:
    """Yield the content of a stream; each piece is one line, or a run of blank lines after a blank one.

    Args:
        stream: a stream whose `read` returns bytes; it stays open.
        line_bytes: maximum length of a line in bytes; a longer one is cut off one byte after it.
    """
    buffered = BufferedReader(_Raw(stream), BUFFER)
    while piece := buffered.readline(line_bytes + 1):
        yield piece
        while piece.isspace() and (blank := BLANK.match(buffered.peek())):
            piece = buffered.read(blank.end())
            yield piece


def number_lines(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank with their numbers (from 1), from what `read_pieces` yields."""
    number = 1
    for at, piece in enumerate(pieces):
        line = piece.removeprefix(BOM) if at == 0 else piece
        if line and not line.isspace():
            yield number, line
        number += piece.count(b"\n")


class _Raw(RawIOBase):
    """Adapts a stream to `BufferedReader`, which needs `readinto`: temporary files lack it before Python 3.11."""

    def __init__(self, stream: IO[bytes] | RawIOBase) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer)) or b""
        buffer[: len(data)] = data
        return len(data)
