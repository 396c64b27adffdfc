"""Wait until a condition holds, with a long timeout, because correct code can be slow on a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS = 60.0


def eventually(
    holds: Callable[[], object], what: Callable[[], str] = lambda: "it never came to hold", seconds: float = SECONDS
) -> None:
    """Return when a condition holds.

    Args:
        holds: the condition; it is called twenty times a second.
        what: returns the error message.
        seconds: maximum time to wait.

    Raises:
        AssertionError: the condition does not hold in time.
    """
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, what()
        time.sleep(0.05)
