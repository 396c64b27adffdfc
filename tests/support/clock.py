"""Let time pass without waiting: limits expire when a test says so, and not while a busy machine is slow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from rewardstack import client
from rewardstack.core import event_loop
from tests.support.waiting import eventually

LIMIT = 60.0
"""Seconds that samples have which are to fail at their timeout: more than a busy machine needs to come that far."""

T = TypeVar("T")


class Clock:
    """The monotonic clock of this process, which a test can set forward.

    Args:
        monkeypatch: puts the real clock back at the end of the test.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._real, self._ahead = time.monotonic, 0.0
        monkeypatch.setattr(time, "monotonic", lambda: self._real() + self._ahead)

    def forward(self, seconds: float) -> None:
        """Set the clock forward, once the client has handled all that has arrived."""
        event_loop.run(self._forward(seconds))

    async def _forward(self, seconds: float) -> None:
        for _ in range(100):
            await asyncio.sleep(0)
        self._ahead += seconds

    def expire(self, ask: Callable[[], T], has_come: Callable[[], object], seconds: float = LIMIT + 1) -> T:
        """Return the outcome of a call whose limit expires as soon as something has happened.

        Args:
            ask: the call, which is made in a thread.
            has_come: returns whether it has happened.
            seconds: how far to set the clock forward then.
        """
        with ThreadPoolExecutor(1) as pool:
            outcome = pool.submit(ask)
            eventually(lambda: outcome.done() or has_come(), lambda: f"it did not happen; known: {known()!r}")
            self.forward(seconds)
            return outcome.result()


def known() -> str:
    """Return what the client knows of its services: the reason of a sample whose limit would expire now."""
    return event_loop.run(_causes())


async def _causes() -> str:
    used = client._clients.get(asyncio.get_running_loop())
    return "; ".join(pool.cause() for pool in used._backends._pools.values()) if used is not None else ""
