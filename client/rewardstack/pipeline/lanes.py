"""Calls in flight one by one: each lands for itself, and a lane takes only so many at a time.

Where one sample takes a second and its neighbour a minute, neither shall wait for the other; and as long as a sample
waits for its turn nothing is made of it that takes memory.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from rewardstack.core.coalescing import Carrier, Flight, Flights

T = TypeVar("T")
R = TypeVar("R")


class Lane(Generic[T, R]):
    """Those that wait for one service.

    Args:
        width: how many of them fly at a time.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.flying = 0
        self.last_progress = 0.0
        self.waiting: deque[Flight[T, R]] = deque()


class Lanes(Flights[T, R]):
    """The calls of one carrier whose batches are single items.

    Args:
        carrier: asked for one item at a time.
        lane_of: an item's lane, and how many of that lane fly at a time.
    """

    def __init__(self, carrier: Carrier[T, R], lane_of: Callable[[T], tuple[Hashable, int]]) -> None:
        super().__init__(carrier)
        self._lane_of = lane_of
        self._lanes: dict[Hashable, Lane[T, R]] = {}

    def _enter(self, flight: Flight[T, R]) -> None:
        name, width = self._lane_of(flight.item)
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = Lane(width)
        lane.waiting.append(flight)
        flight.deadline.enter_queue(lane)
        if lane.flying < lane.width:
            lane.flying += 1
            self._run(self._serve(lane))

    async def _serve(self, lane: Lane[T, R]) -> None:
        """Takes one after another until none waits."""
        try:
            while lane.waiting:
                flight = lane.waiting.popleft()
                flight.deadline.leave_queue(lane)
                (outcome,) = await self._fly([flight])
                if not self._carrier.has_failed(outcome):
                    lane.last_progress = time.monotonic()
        finally:
            lane.flying -= 1
            while lane.waiting and not lane.flying:  # cancelled: the client is shutting down
                self._drop(lane.waiting.popleft())

    def _drop(self, flight: Flight[T, R]) -> None:
        if not flight.outcome.done():
            flight.outcome.set_result(self._carrier.dropped)
