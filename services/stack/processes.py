"""Find, describe and end processes of this machine. This module needs /proc, but no packages."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from services.stack.rundir import MOUNT_PROGRAMS

SYSTEM_VARIABLES = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ")
"""Environment variables that services inherit. As in a container, they inherit no others."""
DEFERRED = (signal.SIGINT, signal.SIGTERM)
PROC = Path("/proc")
TERM_SECONDS = 5.0
POLL_SECONDS = 0.05
DEAD = "ZX"


class Process(NamedTuple):
    """Snapshot of a process.

    Args:
        pid: process id, which the kernel may reuse after the process has ended.
        name: program name, up to 15 characters.
        state: state as a letter, such as S for sleeping.
        parent: process id of the parent.
        group: id of the process group.
        session: id of the session.
        started: start time in clock ticks since boot; identifies the process together with `pid`.
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
        """Whether the process still runs. A zombie counts as ended."""
        now = find(self.pid)
        return now is not None and now.started == self.started

    @property
    def command(self) -> list[str]:
        """Command line; empty if the process has ended or cannot be read."""
        with suppress(OSError):
            return (PROC / str(self.pid) / "cmdline").read_text(errors="replace").rstrip("\0").split("\0")
        return []

    @property
    def directory(self) -> Path | None:
        """Working directory; None if the process has ended or cannot be read."""
        with suppress(OSError):
            return Path(os.readlink(PROC / str(self.pid) / "cwd").removesuffix(" (deleted)"))
        return None

    @property
    def open_files(self) -> Iterator[str]:
        """Names of the files and sockets that the process has open; empty if it has ended or cannot be read."""
        with suppress(OSError):
            for file in (PROC / str(self.pid) / "fd").iterdir():
                with suppress(FileNotFoundError):  # the file has just been closed
                    yield os.readlink(file)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, unless its id has been reused."""
        if self.is_alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


def from_environment(*names: str) -> dict[str, str]:
    """Return the environment variables with these names, without those that are not set."""
    return {name: os.environ[name] for name in names if name in os.environ}


@contextmanager
def defer_signals() -> Iterator[None]:
    """Defer SIGINT and SIGTERM until the end of the block, so that a process that the block starts is not orphaned.

    Raises:
        KeyboardInterrupt: at the end of the block, if a signal arrived.
    """
    received: list[int] = []
    before = {number: signal.signal(number, lambda number, frame: received.append(number)) for number in DEFERRED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        raise KeyboardInterrupt


def find(pid: int) -> Process | None:
    """Return the process with an id; None if there is no such process, or it is a zombie."""
    try:
        status = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The name may contain parentheses.
    before, _, after = status.rpartition(")")
    state, parent, group, session, *rest = after.split()
    if state in DEAD:
        return None
    return Process(pid, before.partition("(")[2], state, int(parent), int(group), int(session), int(rest[15]))


def all_processes() -> Iterator[Process]:
    """Yield every process of this machine."""
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (process := find(int(entry.name))):
            yield process


def members(session: int, group: int | None = None) -> list[Process]:
    """Return the processes of a session, or of one process group in it."""
    return [process for process in all_processes() if process.session == session and group in (None, process.group)]


def descendants(pid: int) -> list[Process]:
    """Return a process and its descendants, without processes that have ended."""
    table, found = list(all_processes()), {pid}
    while children := {process.pid for process in table if process.parent in found} - found:
        found |= children
    return [process for process in table if process.pid in found]


def orphaned_mounts(session: int) -> list[Process]:
    """Return the mount programs (`MOUNT_PROGRAMS`) of a session that are no longer needed.

    A mount program mounts an image for another program. If the parent process of the mount program has ended, or is not
    in the session, that other program has ended.
    """
    mounts = [process for process in members(session) if process.name in MOUNT_PROGRAMS]
    return [process for process in mounts if not (parent := find(process.parent)) or parent.session != session]


def end(select: Callable[[], list[Process]], grace: float = TERM_SECONDS) -> None:
    """Send SIGTERM to processes, and SIGKILL to those that still run after `grace` seconds.

    Args:
        select: returns the processes to end; called before each signal, so that new children are included.
        grace: seconds between the signals; 0 to send only SIGKILL.
    """
    if grace:
        _signal(select(), signal.SIGTERM, grace)
    _signal(select(), signal.SIGKILL, TERM_SECONDS)


def end_group(group: int | None, session: int) -> None:
    """Kill the processes of a group, except the current process. Do nothing if `group` is None.

    Args:
        group: id of the process group.
        session: session in which the group was started. If the group is now in another session, the id of the group has
            been reused, and nothing is killed.
    """
    if group is not None:
        end(lambda: [process for process in members(session, group) if process.pid != os.getpid()], 0)


def _signal(processes: list[Process], number: signal.Signals, seconds: float) -> None:
    """Send a signal to processes, and wait up to `seconds` until they have ended."""
    for process in processes:
        process.signal(number)
    deadline = time.monotonic() + seconds
    while any(process.is_alive for process in processes) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
