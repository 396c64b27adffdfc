"""How the C library keeps memory for the threads of a server."""

from __future__ import annotations

import contextlib
import ctypes

M_ARENA_MAX = -8
"""Of glibc's `mallopt(3)`."""
HEAPS = 2


def share_heaps() -> None:
    """Has the threads of this process, and of those that it forks from now on, share `HEAPS` heaps.

    glibc gives every thread a heap of its own, up to eight a core, and what large bodies leave free in one serves no
    other thread: a server process grows for an hour. Where the C library is another one nothing changes.
    """
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, HEAPS)
