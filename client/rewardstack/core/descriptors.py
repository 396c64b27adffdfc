"""Raise the process's limit on open files, or open fewer connections if the limit is low.

Commands and servers raise the limit. The library does not: it opens fewer connections instead.
"""

from __future__ import annotations

import logging
import os
import resource
from contextlib import suppress
from functools import lru_cache

RESERVE = 64
"""File descriptors reserved for the rest of the process."""

log = logging.getLogger(__name__)


def raise_open_file_limit() -> None:
    """Raise the limit on open files of this process and its children to the maximum, if the system allows it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def max_connections(wanted: int) -> int:
    """Return the number of connections to open; warn once if it is less than half of `wanted`.

    Args:
        wanted: number of connections in the settings.

    Returns:
        `wanted`, or fewer if the limit on open files does not allow as many; at least 1.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    available = max(1, soft - _open_descriptors() - RESERVE)
    if available < wanted / 2:
        _warn_once(soft, available, wanted)
    return min(wanted, available)


def _open_descriptors() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return RESERVE


@lru_cache(maxsize=1)
def _warn_once(soft: int, available: int, wanted: int) -> None:
    log.warning(
        "only %d of %d connections are used, because this process may open only %d files; raise the limit with "
        "`ulimit -n %d`",
        available,
        wanted,
        soft,
        max(4096, 4 * wanted),
    )
