"""Kills an engine's child processes when its actor ends, even by SIGKILL.

A helper process waits for the end of a pipe that only the actor has open, and then kills the remaining children.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

_pipes: list[int] = []
"""Write ends that stay open until this process ends; children do not inherit them."""


def guard_children() -> None:
    """Start a helper that kills the current descendants of this process when it ends."""
    read, write = os.pipe()
    _pipes.append(write)
    processes = [f"{process}:{started(process)}" for process in descendants(os.getpid())]
    command = [sys.executable, "-I", __file__, *processes]
    subprocess.Popen(command, stdin=read, stdout=subprocess.DEVNULL, start_new_session=True)
    os.close(read)


def descendants(process: int) -> list[int]:
    """Return all child processes of a process, including indirect ones."""
    try:
        tasks = Path(f"/proc/{process}/task").iterdir()
        own = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []
    return [one for child in own for one in (child, *descendants(child))]


def started(process: int) -> str:
    """Return the start time of a process, which identifies it if its ID is reused; empty if it has ended."""
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
