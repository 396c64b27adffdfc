"""Kill an engine's child processes when its actor ends, even if SIGKILL ended the actor.

A helper process reads from a pipe whose write end only the actor has open. When the actor ends, the helper reads the
end of the pipe, and kills those of the actor's children that still run.
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
    processes = [f"{process}:{started(process)}" for process in descendants(os.getpid())]
    command = [sys.executable, "-I", __file__, *processes]
    subprocess.Popen(command, stdin=read, stdout=subprocess.DEVNULL, start_new_session=True)
    os.close(read)


def descendants(process: int) -> list[int]:
    """Return the IDs of all child processes of a process, including indirect ones."""
    try:
        tasks = Path(f"/proc/{process}/task").iterdir()
        own = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []
    return [one for child in own for one in (child, *descendants(child))]


def started(process: int) -> str:
    """Return the start time of a process, which detects that another process reuses its ID; empty if it has ended."""
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
