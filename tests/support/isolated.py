"""Find the isolated processes of a reward server, for tests that stop and kill them."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

from tests.isolation.processes import below


def supervisors_of(port: int | str) -> list[int]:
    """Return the supervisors of the server on a port: one for confined processes, and one for unconfined ones.

    A supervisor's lifeline is a pipe to its server. The process that watches a supervisor has the same command line,
    but has closed the lifeline, so it is not returned.
    """
    lifelines = _pipes_of_server(port)
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _lifeline(int(name)) in lifelines]


def zygotes_of(port: int | str) -> list[int]:
    """Return the zygotes of the server on a port: the processes that fork the children."""
    return [pid for supervisor in supervisors_of(port) for pid in below(supervisor)]


def children_of(port: int | str) -> list[int]:
    """Return the children of the server on a port: the processes that run reward functions."""
    return [pid for zygote in zygotes_of(port) for pid in below(zygote)]


def _pipes_of_server(port: int | str) -> set[str]:
    """Return the pipes that a server has open, among them the write end of each supervisor's lifeline."""
    listening = (one for one in psutil.net_connections("tcp") if one.status == psutil.CONN_LISTEN and one.pid)
    pids = {one.pid for one in listening if one.laddr[1:2] == (int(port),)}
    open_files = set()
    for pid in pids:
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed since
                open_files.add(os.readlink(fd))
    return {file for file in open_files if file.startswith("pipe:")}


def _lifeline(pid: int) -> str:
    """Return a supervisor's lifeline, at whose end it exits; empty if the process is not a supervisor."""
    with contextlib.suppress(OSError, ValueError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        lifeline = words[words.index("rewardstack_rules.isolation.supervisor") + 2]
        return os.readlink(f"/proc/{pid}/fd/{lifeline}")
    return ""
