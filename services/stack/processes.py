"""Processes of this machine: who is of a session or a group, and how they are ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress

import psutil

from services.stack.rundir import MOUNTING

TERM_SECONDS = 5.0


def alive(pid: int) -> psutil.Process | None:
    """The process of that id, None where there is none or it is a zombie."""
    try:
        process = psutil.Process(pid)
        return None if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD) else process
    except psutil.NoSuchProcess:
        return None


def members(session: int, group: int | None = None) -> Iterator[psutil.Process]:
    """Every process of a session, or of one process group in it."""
    for pid in psutil.pids():
        with suppress(ProcessLookupError):
            ours = os.getsid(pid) == session and group in (None, os.getpgid(pid))
            if ours and (process := alive(pid)):
                yield process


def abandoned_mounts(session: int) -> Iterator[psutil.Process]:
    """The processes of a session that hold the image of a program that is gone: their parents are of another one."""
    for process in members(session):
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if process.name() in MOUNTING and os.getsid(process.ppid()) != session:
                yield process


def command(process: psutil.Process) -> list[str]:
    """The command line of a process, empty where it cannot be read."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def end(victims: Callable[[], list[psutil.Process]], patience: float = TERM_SECONDS) -> None:
    """End processes: SIGTERM first, SIGKILL for those left after `patience` seconds.

    Args:
        victims: lists them anew at each look, so that what they start meanwhile is found too.
        patience: seconds; 0 for no SIGTERM.
    """
    if patience and (asked := victims()):
        for process in asked:
            with suppress(psutil.NoSuchProcess):
                process.terminate()
        psutil.wait_procs(asked, patience)
    left = victims()
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, TERM_SECONDS)


def end_group(group: int | None, session: int) -> None:
    """End at once what is left of a process group, but for this process; None for no group.

    Args:
        group: its id.
        session: that it belongs to: in another one the same number is another group.
    """
    if group is not None:
        end(lambda: [process for process in members(session, group) if process.pid != os.getpid()], 0)
