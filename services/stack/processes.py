"""Processes of this machine, read from /proc: who belongs to the stack, and who holds a port."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
LISTENING = "0A"
TERM_SECONDS = 5.0


class Process(NamedTuple):
    """One line of the process table; `group` and `session` are the ids of process group and session."""

    pid: int
    name: str
    parent: int
    group: int
    session: int


def processes() -> Iterator[Process]:
    """Every process that has not ended."""
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (process := read(int(entry.name))):
            yield process


def read(pid: int) -> Process | None:
    """The process of that id, None where there is none or it is a zombie."""
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name stands in parentheses and may itself hold spaces and parentheses.
    name, _, rest = stat.partition("(")[2].rpartition(")")
    state, parent, group, session = rest.split()[:4]
    return None if state in "ZX" else Process(pid, name, int(parent), int(group), int(session))


def directory(pid: int) -> Path | None:
    """The working directory of a process, None where it cannot be read."""
    try:
        return Path(os.readlink(PROC / str(pid) / "cwd"))
    except OSError:
        return None


def command(pid: int) -> list[str]:
    """The command line of a process, empty where it cannot be read."""
    try:
        return (PROC / str(pid) / "cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
    except OSError:
        return []


def kill(victims: Callable[[], Iterable[Process]], patience: float = TERM_SECONDS) -> int:
    """End processes: SIGTERM first, SIGKILL for those left after `patience` seconds.

    Args:
        victims: lists them anew at each look, so that what they start meanwhile is found too.

    Returns:
        How many there were at first.
    """
    first = _send(victims(), signal.SIGTERM)
    deadline = time.monotonic() + patience
    while (left := list(victims())) and time.monotonic() < deadline:
        time.sleep(0.05)
    _send(left, signal.SIGKILL)
    return first


def _send(targets: Iterable[Process], number: signal.Signals) -> int:
    count = 0
    for process in targets:
        try:
            os.kill(process.pid, number)
        except ProcessLookupError:
            continue
        count += 1
    return count


def listener(port: int) -> str:
    """Who listens on a TCP port, such as `redis-server (pid 812)`; says so where that cannot be read."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    for process in processes():
        if sockets & _open_files(process.pid):
            return f"{process.name} (pid {process.pid})"
    return "a process of another user" if sockets else "an unknown process"


def _listening_inodes(port: int) -> Iterator[str]:
    for table in (PROC / "net/tcp", PROC / "net/tcp6"):
        if not table.exists():
            continue
        for line in table.read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]


def _open_files(pid: int) -> set[str]:
    found = set()
    try:
        for entry in (PROC / str(pid) / "fd").iterdir():
            found.add(os.readlink(entry))
    except OSError:
        return found
    return found
