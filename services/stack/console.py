"""Print messages, steps with their duration, and errors to the console, and find errors in logs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import string
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from services.stack.errors import COMMAND, StackError
from services.stack.os_errors import explain_os_error

TICK = "✓"
IN_ASCII = {TICK: "ok", "—": "-", "→": "->"}
"""ASCII replacements for outputs that are not UTF-8."""
COLORS = {TICK: "32", "ERROR:": "1;31", "warning:": "33"}
SLOW_SECONDS = 1.0
"""A step is announced after this many seconds."""
TAIL_LINES = 20
ERRORS = ("Error: ", "Exception: ", "[emerg] ", "FATAL", "Fatal error", "Resource temporarily unavailable")
"""Markers of errors in logs of Python, nginx, Redis and others. A line with a marker names the cause of a failure."""
NAME = f"{string.ascii_letters}{string.digits}._"
"""Characters of the word before a marker. In `ValueError: `, this word is `Value`. If the word has other characters,
the marker is ignored."""
SEARCHED_BYTES = 2**20
CAUSE_CHARACTERS = 300


def say(text: str = "", stream: TextIO | None = None, whole: bool = False) -> None:
    """Print lines and flush them. On a terminal, wrap and color them.

    Args:
        text: one line or several.
        stream: output stream; None for stdout.
        whole: whether to leave the lines unwrapped, so that they can be copied.

    Raises:
        StackError: the output cannot be written, for example because the disk is full.
        BrokenPipeError: the reader has closed the pipe.
    """
    stream = stream or sys.stdout
    if "utf" not in (stream.encoding or "").lower():
        text = "".join(IN_ASCII.get(character, character) for character in text)
    if stream.isatty():
        width = shutil.get_terminal_size().columns
        text = "\n".join(_colored(line if whole else _wrapped(line, width)) for line in text.split("\n"))
    try:
        print(text, flush=True, file=stream)
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard(stream)
        # Do not use `explain_os_error`: its remedy is for a full RUN_DIR, but the output may be on another disk.
        raise StackError(
            f"cannot write the output: {error.strerror}", "free space on its disk, or redirect the output"
        ) from None


def _discard(stream: TextIO) -> None:
    """Redirect a broken stream to /dev/null, because Python flushes the stream once more when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _wrapped(line: str, width: int) -> str:
    margin = " " * (len(line) - len(line.lstrip()) + len("    "))
    return (
        line
        if len(line) <= width or f"\n{line}".startswith(COMMAND)
        else textwrap.fill(line, width, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False)
    )


def _colored(line: str) -> str:
    """Return the line, with its first word in color if this word is in `COLORS`."""
    color = next((color for word, color in COLORS.items() if line.startswith(word)), "")
    if not color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return line
    word, space, rest = line.partition(" ")
    return f"\x1b[{color}m{word}\x1b[0m{space}{rest}"


def exit_status(command: Callable[[], None]) -> int:
    """Run a command and return its exit status.

    The status is 0 after success, 1 after an error, 130 after Ctrl-C, and 141 if the reader of stdout closed the pipe.
    """
    try:
        command()
    except BrokenPipeError:
        _discard(sys.stdout)  # the reader has closed the pipe, as `| head` does
        return 128 + signal.SIGPIPE
    except (StackError, OSError) as error:
        say(f"ERROR: {explain_os_error(error)}", sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; run `make down` to stop services that still run", file=sys.stderr)
        return 130
    return 0


def done(what: str, seconds: float) -> None:
    """Print the line of a finished step, such as `✓ gateway healthy (1.3 s)`."""
    say(f"{TICK} {what} ({seconds:.1f} s)")


@contextmanager
def step(doing: str, finished: str = "") -> Iterator[None]:
    """Print a line when a step is finished, and announce the step if it is slow. A failed step prints no final line.

    Args:
        doing: description of the step, such as `installing Python packages`.
        finished: result of the step, such as `Python packages installed`; empty to repeat `doing`.
    """
    start = time.monotonic()
    announcement = threading.Timer(SLOW_SECONDS, _announce, [doing])
    announcement.daemon = True
    announcement.start()
    try:
        yield
    finally:
        announcement.cancel()
        announcement.join()
    done(finished or doing, time.monotonic() - start)


def _announce(doing: str) -> None:
    with suppress(OSError, StackError):
        say(f"  {doing} ...")


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    """Return the last lines of a log file; empty if the file does not exist."""
    if not log.exists():
        return ""
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def first_error(log: Path, start: int = 0) -> str:
    """Return the first error in a log file, which usually causes the later errors.

    The result is empty if the log has no error or does not exist.

    Args:
        log: log file to search.
        start: number of bytes to skip. If the file is shorter, it has been rotated, and nothing is skipped.
    """
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(start if start <= log.stat().st_size else 0)
        text = file.read(SEARCHED_BYTES).decode(errors="replace")
    return error_in(text)


def error_in(text: str) -> str:
    """Return the first error in the text of a log, without its prefix (program, time); empty if there is none."""
    lines = [_raised(line) for line in text.splitlines()]
    for line, after in zip(lines, [*lines, ""][1:], strict=True):
        for marker in ERRORS:
            before, found, rest = line.partition(marker)
            name = before.rpartition(" ")[2]
            if found and "WARNING" not in before and not name.strip(NAME):
                # An indented next line has the details, as in Pydantic's errors about invalid values. A line that
                # begins with `File` belongs to a traceback.
                more = f" {after.strip()}" if after.startswith("  ") and not after.startswith("  File") else ""
                return f"{name}{marker}{rest.rstrip()}{more}"[:CAUSE_CHARACTERS]
    return ""


def _raised(line: str) -> str:
    """Return the part of a log line in which `error_in` searches for errors.

    For a JSON record with a traceback, return the last line of the traceback. For all other lines, return the whole
    line.
    """
    try:
        record = json.loads(line)
    except ValueError:
        return line
    traceback = record.get("exception") if isinstance(record, dict) else None
    return traceback.splitlines()[-1] if isinstance(traceback, str) and traceback else line
