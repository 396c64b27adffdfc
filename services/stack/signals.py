"""Ctrl-C and SIGTERM, heard between steps: amid one, a process that is just being started would be lost."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

HEARD = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def defer_signals() -> Iterator[None]:
    """Within it such a signal waits for the end.

    Raises:
        KeyboardInterrupt: at the end, where one came.
    """
    heard: list[int] = []
    before = {number: signal.signal(number, lambda number, frame: heard.append(number)) for number in HEARD}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if heard:
        raise KeyboardInterrupt
