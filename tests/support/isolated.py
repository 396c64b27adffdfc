"""The isolated processes of a reward server, found from outside, for tests that stop and kill them."""

from __future__ import annotations

import os
from pathlib import Path

from tests.isolation.processes import below, watched


def supervisors_of(port: int | str) -> list[int]:
    """The supervisors of the server on a port: of the processes that are confined, and of those that are not.

    The process that watches over one has the same command line, and is its parent.
    """
    found = [int(name) for name in os.listdir("/proc") if name.isdigit() and _is_supervisor(int(name), port)]
    return watched(found)


def zygotes_of(port: int | str) -> list[int]:
    """The processes that the children of that server are forked from."""
    return [pid for supervisor in supervisors_of(port) for pid in below(supervisor)]


def children_of(port: int | str) -> list[int]:
    """The processes that run reward functions for that server."""
    return [pid for zygote in zygotes_of(port) for pid in below(zygote)]


def _is_supervisor(pid: int, port: int | str) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return b"isolation.supervisor" in command and f"REWARD_PORT={port}\0".encode() in environment
