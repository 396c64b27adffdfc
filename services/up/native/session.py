"""The processes of a stack, by what is recorded of it and what /proc says: nothing need be installed for that."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from services.stack.errors import StackError
from services.stack.rundir import MOUNTING, ROOT, SUPERVISOR, RunDir

PROC = Path("/proc")
IMAGES = ("Apptainer runtime parent", *MOUNTING)
"""What runs a program out of an image, and what mounts that image for it: they work in no directory of the stack's."""
STOP_SECONDS = 180.0
"""Longer than all services together are given to stop."""
END_SECONDS = 5.0
POLL_SECONDS = 0.1


def members(run: RunDir) -> list[int]:
    """The process ids of a stack: of supervisord's session, those that work in its directories, or hold its images.

    They outlive a supervisord that was killed. A process id can come back: where another program leads the session of
    that number, it is not ours.
    """
    running = run.recall()
    if running is None:
        return []
    leader = _command(running.session)
    if leader and SUPERVISOR not in leader:
        return []
    ours = (ROOT, run.path, run.queue)
    return [pid for pid in _pids() if _session(pid) == running.session and (directory(pid) in ours or _image(pid))]


def group(session: int, number: int) -> list[int]:
    """The process ids of a process group, such as a service's, in a session."""
    found = []
    for pid in _pids():
        with suppress(ProcessLookupError):
            if os.getpgid(pid) == number and os.getsid(pid) == session:
                found.append(pid)
    return found


def end(run: RunDir) -> None:
    """Stop a stack: supervisord stops what it keeps up; what is left then is ended.

    Raises:
        StackError: something is left.
    """
    running = run.recall()
    if running and running.session in members(run):
        _signal([running.session], signal.SIGTERM)
        _wait(run, STOP_SECONDS)
    for number in (signal.SIGTERM, signal.SIGKILL):
        _signal(members(run), number)
        _wait(run, END_SECONDS)
    if left := members(run):
        raise StackError(f"still there: {', '.join(map(str, left))}", "make down again")
    run.forget()


def directory(pid: int) -> Path | None:
    """The working directory of a process, None where there is no such process or it cannot be read."""
    with suppress(OSError):
        return Path(os.readlink(PROC / str(pid) / "cwd").removesuffix(" (deleted)"))
    return None


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _wait(run: RunDir, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while members(run) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def _command(pid: int) -> str:
    """The command line of a process; empty where there is none, or it has ended."""
    with suppress(OSError):
        return (PROC / str(pid) / "cmdline").read_text(errors="replace")
    return ""


def _image(pid: int) -> bool:
    return any(name in _command(pid) for name in IMAGES)


def _session(pid: int) -> int:
    with suppress(ProcessLookupError):
        return os.getsid(pid)
    return 0
