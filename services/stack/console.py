"""What the user sees: one line a step, with the time it took."""

from __future__ import annotations

import json
import os
import shutil
import signal
import string
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from services.stack.errors import COMMAND, StackError
from services.stack.refusal import refusal

TAIL_LINES = 20
ERRORS = ("Error: ", "Exception: ", "[emerg] ", "FATAL", "Fatal error", "Resource temporarily unavailable")
"""By which a line tells why a program ends: of Python, of nginx, of Redis and others."""
NAME = f"{string.ascii_letters}{string.digits}._"
"""What stands before those signs, if anything: the name of an error."""
SEARCHED_BYTES = 2**20
CAUSE_CHARACTERS = 300


def say(text: str = "", stream: TextIO | None = None, whole: bool = False) -> None:
    """Print a line at once, also into a pipe; a terminal, which would break it anywhere, has it broken between words.

    Args:
        text: of the line, or of several.
        stream: that it goes to; None for stdout.
        whole: a line that is to be copied, which is not broken.

    Raises:
        StackError: it cannot be written there, as on a full disk.
        BrokenPipeError: nobody reads it any more.
    """
    stream = stream or sys.stdout
    if stream.isatty() and not whole:
        width = shutil.get_terminal_size().columns
        text = "\n".join(_wrapped(line, width) for line in text.split("\n"))
    try:
        print(text, flush=True, file=stream)
    except BrokenPipeError:
        raise
    except OSError as error:
        # Not as such an error is: the disk of the stack is another one.
        raise StackError(
            f"what is said here cannot be written: {error.strerror}", "make room where it goes, or send it elsewhere"
        ) from None


def _wrapped(line: str, width: int) -> str:
    margin = " " * (len(line) - len(line.lstrip()) + len("    "))
    return (
        line
        if len(line) <= width or f"\n{line}".startswith(COMMAND)
        else textwrap.fill(line, width, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False)
    )


def exit_status(command: Callable[[], None]) -> int:
    """Run a command: 0, or 1 and the error on stderr, also one of the system, or 130 where it was interrupted."""
    try:
        command()
    except BrokenPipeError:
        # Whoever read has gone, as `| head` does: nobody is there to be told anything.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except (StackError, OSError) as error:
        say(f"error: {refusal(error)}", sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; make down stops whatever runs", file=sys.stderr)
        return 130
    return 0


@contextmanager
def step(doing: str) -> Iterator[None]:
    """Announce a step, then say how long it took; a step that raises leaves only its announcement."""
    say(f"==> {doing}")
    start = time.monotonic()
    yield
    say(f"    done in {time.monotonic() - start:.1f} s")


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    """The last lines of a log file, empty where there is none."""
    if not log.exists():
        return ""
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def first_error(log: Path, start: int = 0) -> str:
    """What the first line says that tells an error, which is the cause of those that follow; empty where none does.

    Args:
        log: that is searched.
        start: bytes that are skipped; none are where it is shorter, for then it was begun anew.
    """
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(start if start <= log.stat().st_size else 0)
        text = file.read(SEARCHED_BYTES).decode(errors="replace")
    return error_in(text)


def error_in(text: str) -> str:
    """What the first line of a log says that tells an error, without the name of its program and the time before it."""
    lines = [_raised(line) for line in text.splitlines()]
    for line, after in zip(lines, [*lines, ""][1:], strict=True):
        for sign in ERRORS:
            before, found, rest = line.partition(sign)
            name = before.rpartition(" ")[2]
            if found and "WARNING" not in before and not name.strip(NAME):
                # Of a value that is refused the next line tells more, and begins further to the right.
                more = f" {after.strip()}" if after.startswith("  ") and not after.startswith("  File") else ""
                return f"{name}{sign}{rest.rstrip()}{more}"[:CAUSE_CHARACTERS]
    return ""


def _raised(line: str) -> str:
    """What ended a traceback that stands in a record of JSON; any other line as it is."""
    try:
        record = json.loads(line)
    except ValueError:
        return line
    told = record.get("exception") if isinstance(record, dict) else None
    return told.splitlines()[-1] if isinstance(told, str) and told else line
