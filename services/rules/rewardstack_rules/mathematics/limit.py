"""A limit on the processor time of work that can be interrupted: `within`."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class OutOfTimeError(BaseException):
    """Work took longer than it may; no `except Exception` of a library holds it up."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Ends what runs meanwhile after some seconds of processor time, whatever else the machine does.

    A call into native code is not interrupted before it returns. Without effect outside of a process's main thread,
    which alone is given signals: work that must end there has to run in a process that can be killed.

    Args:
        seconds: of this process.

    Raises:
        OutOfTimeError: they are over.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    armed = True

    def end(number: int, frame: FrameType | None) -> None:
        if armed:
            raise OutOfTimeError

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, seconds / 4)  # again, for a bare `except` may have caught it
    try:
        try:
            yield
        finally:
            armed = False
    finally:  # reached even where the signal came between the two lines above; the next is some time away
        armed = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
