"""Code that server and worker processes share: a memory setting and an exit status."""

from __future__ import annotations

import contextlib
import ctypes

NOT_READY = 3
"""Exit status of a health check for a process that is alive but not ready; `health.sh` does not restart it."""

MALLOC = {
    -8: 2,  # M_ARENA_MAX: maximum number of heaps
    -3: 256 * 2**10,  # M_MMAP_THRESHOLD: blocks of at least this many bytes go back to the system when freed
    -1: 4 * 2**20,  # M_TRIM_THRESHOLD: free bytes that a heap keeps at its end
}
"""Parameters of glibc's `mallopt(3)` and their values."""


def return_memory() -> None:
    """Make this process and its future forks return the memory of large requests to the system.

    By default, glibc has a heap for each thread, up to eight per core, and other threads cannot use the free memory of
    a heap. Also, after a large block is freed, glibc allocates further blocks of this size in a heap. One small block
    behind a freed block then keeps the freed memory from the system. Both make a server process grow for hours.
    With another C library, this function does nothing.
    """
    with contextlib.suppress(AttributeError):
        for option, value in MALLOC.items():
            ctypes.CDLL(None).mallopt(option, value)
