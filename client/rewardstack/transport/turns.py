"""Whose turn it is, of those who wait for a place at one of a service's endpoints."""

from __future__ import annotations

import asyncio
import random
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from rewardstack.endpoints import LOOK
from rewardstack.errors import SettingsError
from rewardstack.transport.endpoint import Endpoint

Turn = asyncio.Future["Endpoint | None"]
"""Its result is an endpoint, with a place that is now the waiter's; None where one is to look whether to wait on."""


class Turns:
    """Those who wait, in order; its length is how many.

    Args:
        endpoints: says which there are now.
        look: finds out whether the service has moved, while somebody waits; None for one that stays.
    """

    def __init__(self, endpoints: Callable[[], Sequence[Endpoint]], look: Callable[[], None] | None) -> None:
        self._endpoints = endpoints
        self._look = look
        self._waiting: OrderedDict[Turn, None] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self) -> Endpoint | None:
        """An endpoint with a place that is the caller's now, the one that has least to do; None where all are full."""
        free = [endpoint for endpoint in self._endpoints() if endpoint.limiter.admits(endpoint.in_flight)]
        endpoint = min(free, key=lambda one: (one.in_flight, random.random()), default=None)
        if endpoint is not None:
            endpoint.in_flight += 1
        return endpoint

    @contextmanager
    def queued(self, *, first: bool) -> Iterator[Turn]:
        """A turn, which waits as long as the context lasts.

        Args:
            first: whether it comes before all others.
        """
        turn: Turn = asyncio.get_running_loop().create_future()
        self._waiting[turn] = None
        if first:
            self._waiting.move_to_end(turn, last=False)
        self.hand_out()
        try:
            yield turn
        finally:
            self._waiting.pop(turn, None)

    def hand_out(self) -> None:
        """Gives free places to those who wait; comes back when a paused endpoint opens, or to look for the service."""
        while self._waiting:
            endpoint = self.take()
            if endpoint is None:
                self._come_back()
                return
            self._waiting.popitem(last=False)[0].set_result(endpoint)

    def have_all_look(self) -> None:
        """Ends all turns without a place, so that each who waits looks whether to wait any longer."""
        while self._waiting:
            self._waiting.popitem(last=False)[0].set_result(None)

    def _come_back(self) -> None:
        now = time.monotonic()
        pauses = [endpoint.limiter.opens_at - now for endpoint in self._endpoints() if endpoint.limiter.opens_at > now]
        if self._look is not None:
            pauses.append(LOOK)
        if not pauses:
            return
        self.close()
        self._timer = asyncio.get_running_loop().call_later(min(pauses) + 0.001, self._ring)

    def _ring(self) -> None:
        with suppress(SettingsError):  # the next call says it
            if self._look is not None:
                self._look()
        self.hand_out()

    def close(self) -> None:
        """Comes back no more."""
        if self._timer is not None:
            self._timer.cancel()
