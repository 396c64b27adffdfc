"""Find the lines in a JSONL stream; long runs of blank lines cost almost nothing."""

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
    """Yield the content of a stream in pieces.

    A piece is usually one line. After a blank line, all further blank lines in the buffer are yielded as one piece.

    Args:
        stream: a stream whose `read` returns bytes; it stays open.
        line_bytes: maximum length of a line in bytes. A longer line is yielded in several pieces. The first of them is
            one byte longer than the maximum, so that the caller can detect the long line.
    """
    buffered = BufferedReader(_Raw(stream), BUFFER)
    while piece := buffered.readline(line_bytes + 1):
        yield piece
        while piece.isspace() and (blank := BLANK.match(buffered.peek())):
            piece = buffered.read(blank.end())
            yield piece


def number_lines(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the non-blank lines in the pieces of `read_pieces`, with their line numbers (from 1)."""
    number = 1
    for at, piece in enumerate(pieces):
        line = piece.removeprefix(BOM) if at == 0 else piece
        if line and not line.isspace():
            yield number, line
        number += piece.count(b"\n")


class _Raw(RawIOBase):
    """Adapts a stream to `BufferedReader`, which needs `readinto`; before Python 3.11, temporary files lack it."""

    def __init__(self, stream: IO[bytes] | RawIOBase) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer)) or b""
        buffer[: len(data)] = data
        return len(data)
