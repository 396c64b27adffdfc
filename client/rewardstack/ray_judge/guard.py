"""Kill the descendants of an engine's actor when the actor ends, even if SIGKILL ends it.

A helper process reads from a pipe whose write end is open only in the actor. When the actor ends, the read returns, and
the helper kills the descendants that are left.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

_pipes: list[int] = []
"""Write ends of pipes, which stay open until this process ends; child processes do not inherit them."""


def guard_children() -> None:
    """Start a helper process that kills the current descendants of this process when this process ends."""
    read, write = os.pipe()
    _pipes.append(write)
    processes = [f"{process_id}:{start_time(process_id)}" for process_id in descendants(os.getpid())]
    command = [sys.executable, "-I", __file__, *processes]
    subprocess.Popen(command, stdin=read, stdout=subprocess.DEVNULL, start_new_session=True)
    os.close(read)


def descendants(process_id: int) -> list[int]:
    """Return the IDs of all child processes of a process, including indirect ones."""
    try:
        tasks = Path(f"/proc/{process_id}/task").iterdir()
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []
    return [one for child in children for one in (child, *descendants(child))]


def start_time(process_id: int) -> str:
    """Return the start time of a process, to detect a reused ID; empty if the process has ended."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _main() -> None:
    sys.stdin.buffer.read()
    for argument in sys.argv[1:]:
        process_id, _, expected_start = argument.partition(":")
        if expected_start and start_time(int(process_id)) == expected_start:
            os.kill(int(process_id), signal.SIGKILL)


if __name__ == "__main__":
    _main()
