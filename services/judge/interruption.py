"""Ctrl-C and SIGTERM, heard between steps: amid one, a process that is just being started could be lost."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

HEARD = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """While it is entered, a signal only interrupts `pause`."""

    def __init__(self) -> None:
        self._heard = threading.Event()
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruption:
        self._before = {number: signal.signal(number, self._hear) for number in HEARD}
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def pause(self, seconds: float) -> None:
        """Sleep.

        Raises:
            KeyboardInterrupt: a signal came, now or earlier.
        """
        if self._heard.wait(seconds):
            raise KeyboardInterrupt

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._heard.set()
