"""What the processes of reward server and workers share: how they keep memory, and how they end."""

from __future__ import annotations

import contextlib
import ctypes

NOT_READY = 3
"""Exit status of a health check of what lives and cannot do its work now; `health.sh` ends nothing for it."""

MALLOC = {
    -8: 2,  # M_ARENA_MAX: heaps
    -3: 256 * 2**10,  # M_MMAP_THRESHOLD: bytes of a block that is the system's as soon as it is free
    -1: 4 * 2**20,  # M_TRIM_THRESHOLD: free bytes that a heap keeps at its end
}
"""Of glibc's `mallopt(3)`."""


def return_memory() -> None:
    """Has this process, and those that it forks from now on, give memory back that large requests have needed.

    glibc gives every thread a heap of its own, up to eight a core, and what is free in one serves no other thread. And
    it takes each large block that is given back as a sign that blocks of this size are to lie in a heap from then on,
    where a small one behind it keeps its pages from the system. By both a server process grows for hours. Where the C
    library is another one nothing changes.
    """
    with contextlib.suppress(AttributeError):
        for option, value in MALLOC.items():
            ctypes.CDLL(None).mallopt(option, value)
