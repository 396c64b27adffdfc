"""The limit on open files: commands and servers raise it; the library opens fewer connections instead of failing."""

from __future__ import annotations

import logging
import os
import resource
from contextlib import suppress
from functools import lru_cache

RESERVE = 64
"""File descriptors reserved for the rest of the process."""

log = logging.getLogger(__name__)


def raise_open_files() -> None:
    """Raise the limit on open files to the maximum for this process and its children; for commands and servers only.

    If the system refuses, the limit is unchanged.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def connection_ceiling(wanted: int) -> int:
    """Return how many connections may be opened; warn if they are fewer than half of `wanted`, which costs throughput.

    Args:
        wanted: number of connections in the settings.

    Returns:
        `wanted`, or what the limit on open files allows; at least 1.
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
