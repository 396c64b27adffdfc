"""Shared code of server and worker processes: memory settings and exit statuses."""

from __future__ import annotations

import contextlib
import ctypes

NOT_READY = 3
"""Exit status of a health check for a process that is alive but not ready; `health.sh` does not restart it."""

MALLOC = {
    -8: 2,  # M_ARENA_MAX: number of heaps
    -3: 256 * 2**10,  # M_MMAP_THRESHOLD: bytes from which a freed block is returned to the system
    -1: 4 * 2**20,  # M_TRIM_THRESHOLD: free bytes that a heap keeps at its end
}
"""Parameters of glibc's `mallopt(3)`."""


def return_memory() -> None:
    """Make this process and its future forks return the memory of large requests to the system.

    glibc has a heap for each thread, up to eight per core, and other threads cannot use its free memory. After a large
    block is freed, glibc allocates blocks of this size in a heap, where a small block after it keeps its pages from
    the system. Both make a server process grow for hours. With another C library, this does nothing.
    """
    with contextlib.suppress(AttributeError):
        for option, value in MALLOC.items():
            ctypes.CDLL(None).mallopt(option, value)
