"""Console output: one line per step, with the time it took."""

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
"""For terminals and logs that are not UTF-8."""
COLORS = {TICK: "32", "ERROR:": "1;31", "warning:": "33"}
SLOW_SECONDS = 1.0
"""After which a step is announced."""
TAIL_LINES = 20
ERRORS = ("Error: ", "Exception: ", "[emerg] ", "FATAL", "Fatal error", "Resource temporarily unavailable")
"""By which a line tells why a program ends: of Python, of nginx, of Redis and others."""
NAME = f"{string.ascii_letters}{string.digits}._"
"""What stands before those signs, if anything: the name of an error."""
SEARCHED_BYTES = 2**20
CAUSE_CHARACTERS = 300


def say(text: str = "", stream: TextIO | None = None, whole: bool = False) -> None:
    """Print lines and flush them; wrap and color them on a terminal.

    Args:
        text: one line or several.
        stream: where to print them; None for stdout.
        whole: do not wrap the line, because it is to be copied.

    Raises:
        StackError: it cannot be written there, as on a full disk.
        BrokenPipeError: nobody reads it any more.
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
        # Not the remedy of a full RUN_DIR: the output may go to another disk.
        raise StackError(
            f"cannot write the output: {error.strerror}", "make room where it goes, or send it somewhere else"
        ) from None


def _wrapped(line: str, width: int) -> str:
    margin = " " * (len(line) - len(line.lstrip()) + len("    "))
    return (
        line
        if len(line) <= width or f"\n{line}".startswith(COMMAND)
        else textwrap.fill(line, width, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False)
    )


def _colored(line: str) -> str:
    """Return the line with its first word in color, where that is one of `COLORS`."""
    color = next((color for word, color in COLORS.items() if line.startswith(word)), "")
    if not color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return line
    word, space, rest = line.partition(" ")
    return f"\x1b[{color}m{word}\x1b[0m{space}{rest}"


def exit_status(command: Callable[[], None]) -> int:
    """Run a command and return its exit status: 0, 1 after an error, 130 after an interruption."""
    try:
        command()
    except BrokenPipeError:
        # The reader has gone, as `| head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except (StackError, OSError) as error:
        say(f"ERROR: {explain_os_error(error)}", sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; make down stops what runs", file=sys.stderr)
        return 130
    return 0


def done(what: str, seconds: float) -> None:
    """Print the line of a finished step, such as `✓ gateway healthy (1.3 s)`."""
    say(f"{TICK} {what} ({seconds:.1f} s)")


@contextmanager
def step(doing: str, finished: str = "") -> Iterator[None]:
    """Print one line when the step is finished; a slow step is announced first, one that fails prints only that.

    Args:
        doing: the step in words, such as `installing Python packages`.
        finished: what it has reached, such as `Python packages installed`; empty for the same words.
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
