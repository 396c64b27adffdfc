"""An engine's processes end with its actor, however that ends: SIGKILL leaves it no time to end them itself.

A small process waits for the end of a pipe that only the actor holds, and then kills what is left of its children.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

_pipes: list[int] = []
"""Held until this process ends, and by no other: children inherit no descriptors."""


def guard_children() -> None:
    """Has the children that this process has now, and theirs, killed when it ends."""
    read, write = os.pipe()
    _pipes.append(write)
    processes = [f"{process}:{started(process)}" for process in descendants(os.getpid())]
    command = [sys.executable, "-I", __file__, *processes]
    subprocess.Popen(command, stdin=read, stdout=subprocess.DEVNULL, start_new_session=True)
    os.close(read)


def descendants(process: int) -> list[int]:
    """The processes that a process started, and that those did."""
    try:
        tasks = Path(f"/proc/{process}/task").iterdir()
        own = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []
    return [one for child in own for one in (child, *descendants(child))]


def started(process: int) -> str:
    """When a process started, by which it is known from a later one of its number; empty where it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _main() -> None:
    sys.stdin.buffer.read()
    for argument in sys.argv[1:]:
        process, _, when = argument.partition(":")
        if when and started(int(process)) == when:
            os.kill(int(process), signal.SIGKILL)


if __name__ == "__main__":
    _main()
