"""Processes of this machine, as /proc has them: nothing need be installed for that."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from services.stack.rundir import MOUNTING

PROC = Path("/proc")
TERM_SECONDS = 5.0
POLL_SECONDS = 0.05
DEAD = "ZX"


class Process(NamedTuple):
    """A process when it was looked at.

    Args:
        pid: its id, which another process may have later.
        name: of its program, up to 15 characters.
        state: a letter, such as S for one that sleeps.
        parent: process id.
        group: id of its process group.
        session: id of its session.
        started: clock ticks since the boot; with `pid` they identify it.
    """

    pid: int
    name: str
    state: str
    parent: int
    group: int
    session: int
    started: int

    @property
    def is_alive(self) -> bool:
        """Whether it still runs; a zombie does not."""
        now = find(self.pid)
        return now is not None and now.started == self.started

    @property
    def command(self) -> list[str]:
        """Its command line; empty where it has ended or cannot be read."""
        with suppress(OSError):
            return (PROC / str(self.pid) / "cmdline").read_text(errors="replace").rstrip("\0").split("\0")
        return []

    @property
    def directory(self) -> Path | None:
        """Its working directory; None where it has ended or cannot be read."""
        with suppress(OSError):
            return Path(os.readlink(PROC / str(self.pid) / "cwd").removesuffix(" (deleted)"))
        return None

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless its id is another process's by now."""
        if self.is_alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


def find(pid: int) -> Process | None:
    """Return the process of an id; None where there is none, or a zombie."""
    try:
        status = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The name may hold anything, also parentheses.
    before, _, after = status.rpartition(")")
    state, parent, group, session, *rest = after.split()
    if state in DEAD:
        return None
    return Process(pid, before.partition("(")[2], state, int(parent), int(group), int(session), int(rest[15]))


def every() -> Iterator[Process]:
    """Yield every process of this machine."""
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (process := find(int(entry.name))):
            yield process


def members(session: int, group: int | None = None) -> list[Process]:
    """Return the processes of a session, or of one process group in it."""
    return [one for one in every() if one.session == session and group in (None, one.group)]


def descendants(pid: int) -> list[Process]:
    """Return a process and all that it started; empty where it has ended."""
    table, found = list(every()), {pid}
    while more := {one.pid for one in table if one.parent in found} - found:
        found |= more
    return [one for one in table if one.pid in found]


def abandoned_mounts(session: int) -> list[Process]:
    """Return what mounts the image of a program that is gone: its parent is of another session."""
    mounting = [one for one in members(session) if one.name in MOUNTING]
    return [one for one in mounting if not (parent := find(one.parent)) or parent.session != session]


def end(victims: Callable[[], list[Process]], patience: float = TERM_SECONDS) -> None:
    """End processes: SIGTERM first, SIGKILL for those left after `patience` seconds.

    Args:
        victims: lists them again at each look, so that what they start meanwhile is found too.
        patience: seconds; 0 for no SIGTERM.
    """
    if patience:
        _signal(victims(), signal.SIGTERM, patience)
    _signal(victims(), signal.SIGKILL, TERM_SECONDS)


def end_group(group: int | None, session: int) -> None:
    """Kill what is left of a process group, but for this process; None for no group.

    Args:
        group: its id.
        session: that it belongs to: in another one the same number is another group.
    """
    if group is not None:
        end(lambda: [process for process in members(session, group) if process.pid != os.getpid()], 0)


def _signal(processes: list[Process], number: signal.Signals, seconds: float) -> None:
    """Signal processes, and wait until they have ended, so many seconds at most."""
    for process in processes:
        process.signal(number)
    deadline = time.monotonic() + seconds
    while any(process.is_alive for process in processes) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
