"""Defer Ctrl-C and SIGTERM while a process is being started, so that the process is not orphaned."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

DEFERRED = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def defer_signals() -> Iterator[None]:
    """Defer SIGINT and SIGTERM until the end of the block.

    Raises:
        KeyboardInterrupt: at the end of the block, if a signal arrived.
    """
    received: list[int] = []
    before = {number: signal.signal(number, lambda number, frame: received.append(number)) for number in DEFERRED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        raise KeyboardInterrupt
