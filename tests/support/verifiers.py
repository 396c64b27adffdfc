"""The isolated processes of a reward server, found from outside, for tests that stop and kill them."""

from __future__ import annotations

import os
from pathlib import Path

from tests.isolation.processes import below


def supervisor_of(port: int | str) -> int | None:
    """The supervisor of the server on a port; None where there is none.

    The process that watches over it has the same command line, and is its parent.
    """
    found = [int(name) for name in os.listdir("/proc") if name.isdigit() and _is_supervisor(int(name), port)]
    watched = [pid for parent in found for pid in below(parent) if pid in found]
    return watched[0] if watched else None


def zygote_of(port: int | str) -> int | None:
    """The process that the children of that server are forked from; None where there is none."""
    supervisor = supervisor_of(port)
    zygotes = [] if supervisor is None else below(supervisor)
    return zygotes[0] if zygotes else None


def children_of(port: int | str) -> list[int]:
    """The processes that run reward functions for that server."""
    zygote = zygote_of(port)
    return [] if zygote is None else below(zygote)


def _is_supervisor(pid: int, port: int | str) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return b"isolation.supervisor" in command and f"REWARD_PORT={port}\0".encode() in environment
