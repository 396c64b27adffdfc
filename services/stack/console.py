"""What the user sees: one line a step, with the time it took."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from services.stack.errors import StackError

TAIL_LINES = 20


def say(text: str = "") -> None:
    """Print a line at once, also into a pipe."""
    print(text, flush=True)


def exit_status(command: Callable[[], None]) -> int:
    """Run a command: 0, or 1 and the error on stderr, or 130 where it was interrupted."""
    try:
        command()
    except StackError as error:
        print(f"error: {error}", file=sys.stderr)
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
