"""Waits until something holds, with a long timeout: on a busy machine even correct code is slow."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS = 60.0


def eventually(
    holds: Callable[[], object], what: Callable[[], str] = lambda: "it never came to hold", seconds: float = SECONDS
) -> None:
    """Returns when something holds.

    Args:
        holds: asks whether it does, twenty times a second.
        what: says what does not, for the error.
        seconds: to wait at most.

    Raises:
        AssertionError: it does not in time.
    """
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, what()
        time.sleep(0.05)
