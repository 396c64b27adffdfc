"""Log what reward functions print in isolated processes.

An isolated process captures what a call writes to `sys.stdout` and `sys.stderr`, and returns this output with the
result. The process that sent the sample logs the output. By default, `logging` writes to `sys.stderr`, so its messages
are captured, too. The output of a killed process is lost.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

MAX_CHARACTERS = 4000
MAX_LINES = 40
"""Limits of the output of one call. The rest is dropped."""
MAX_LINES_PER_MINUTE = 600
"""Maximum number of lines that a process logs per minute, for all calls together."""

log = logging.getLogger(__name__)


class Output:
    """The captured output of one call, up to a limit."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._left = MAX_CHARACTERS

    def write(self, text: str) -> None:
        """Append a text, up to the limit."""
        if self._left > 0:
            self._pieces.append(text[: self._left])
            self._left -= len(text)

    @property
    def text(self) -> str:
        """The captured text, with unencodable characters escaped."""
        text = "".join(self._pieces).encode(errors="backslashreplace").decode()
        return text + " ..." if self._left < 0 else text


class _Stream:
    """Replaces `sys.stdout` or `sys.stderr`. Writes to the `Output` of the current call, or else to the old stream."""

    current: Output | None = None

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text."""
        output = _Stream.current
        if output is None:
            return self._stream.write(text)
        output.write(text)
        return len(text)

    def writelines(self, lines: Iterator[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def replace_streams() -> None:
    """Replace `sys.stdout` and `sys.stderr`. Call this before importing the files of reward functions."""
    for name in ("stdout", "stderr"):
        setattr(sys, name, _Stream(getattr(sys, name)))


@contextmanager
def capture() -> Iterator[Output]:
    """Capture output within the block. If the block raises, `isolation.child` returns the output with the error."""
    output = _Stream.current = Output()
    try:
        yield output
    except BaseException as error:
        with suppress(Exception):  # a custom exception may refuse attributes
            error.__result__ = {"output": output.text}  # type: ignore[attr-defined]
        raise
    finally:
        _Stream.current = None


class OutputLog:
    """Logs the output of functions line by line, up to a number of lines per minute."""

    def __init__(self) -> None:
        self._minute = 0.0
        self._logged = self._dropped = 0

    def add(self, function: str, text: object) -> None:
        """Log the lines of a text, with control characters escaped.

        Args:
            function: the name of the reward function.
            text: its output, as an isolated process returns it.
        """
        if not text or not isinstance(text, str):
            return
        lines = [line for line in text[: MAX_CHARACTERS + 4].splitlines() if line.strip()]
        for line in lines[:MAX_LINES]:
            self._log(function, line)
        if len(lines) > MAX_LINES:
            self._log(function, f"... ({len(lines) - MAX_LINES} more lines)")

    def _log(self, function: str, line: str) -> None:
        now = time.monotonic()
        if now - self._minute >= 60:
            if self._dropped:
                log.warning("dropped %d more lines that reward functions printed", self._dropped)
            self._minute, self._logged, self._dropped = now, 0, 0
        if self._logged >= MAX_LINES_PER_MINUTE:
            self._dropped += 1
            return
        self._logged += 1
        log.warning("%s printed: %s", function, "".join(c if c.isprintable() else repr(c)[1:-1] for c in line))


output_log = OutputLog()
"""The output log of this process."""
