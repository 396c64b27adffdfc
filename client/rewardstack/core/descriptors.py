"""How many files a process may open: a command raises it, a library keeps to it with fewer connections, not errors."""

from __future__ import annotations

import logging
import os
import resource
from contextlib import suppress
from functools import lru_cache

RESERVE = 64
"""Descriptors left to the rest of the process."""

log = logging.getLogger(__name__)


def raise_open_files() -> None:
    """Let this process, and what it starts, open as many files as the system allows: for commands and servers only.

    Where the system refuses, the limit stays as it is.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def connection_ceiling(wanted: int) -> int:
    """How many connections to open at most. Warns where they are fewer than half: only then does it cost much.

    A service is as busy with most of the connections as with all; with a part of them, samples wait in this process.

    Args:
        wanted: how many the settings ask for.

    Returns:
        `wanted`, or as many as the process's limit on open files leaves; at least 1.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    affordable = max(1, soft - _open_descriptors() - RESERVE)
    if affordable < wanted / 2:
        _warn_once(soft, affordable, wanted)
    return min(wanted, affordable)


def _open_descriptors() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return RESERVE


@lru_cache(maxsize=1)
def _warn_once(soft: int, affordable: int, wanted: int) -> None:
    log.warning(
        "only %d of %d connections: this process may open %d files; raise it with `ulimit -n %d`",
        affordable,
        wanted,
        soft,
        max(4096, 4 * wanted),
    )
