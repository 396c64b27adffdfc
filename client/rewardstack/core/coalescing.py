"""Calls in flight: formed into batches, shared by whoever asks the same, each waiter with a deadline of its own.

Trainers that score one sample a call would otherwise pay one request each: what arrives within `GATHER` goes out
together. A call belongs to no waiter: it goes on while anyone still waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.core.keys import Key

GATHER = 0.001
"""Seconds that a batch waits for company before it goes out less than full."""
GRACE = 0.02
"""Seconds a waiter gives a call that ends at the same moment as its patience."""

T = TypeVar("T")
R = TypeVar("R")
C = TypeVar("C", contravariant=True)


class Carrier(Protocol[C, R]):
    """Brings batches to a service and their outcomes back."""

    @property
    def batch_size(self) -> int:
        """How many items one batch holds at most."""
        ...

    @property
    def dropped(self) -> R:
        """The outcome of an item that was on its way when the client shut down."""
        ...

    async def carry(self, items: Sequence[C], deadline: SharedDeadline) -> Sequence[R]:
        """One outcome for each item, in order; whatever goes wrong is an outcome, too."""
        ...

    def landed(self, outcomes: Iterable[tuple[str, R]]) -> None:
        """Told of every batch's keys and outcomes before its waiters hear of them."""
        ...

    def has_failed(self, outcome: R) -> bool:
        """Whether asking again may bring another outcome."""
        ...


@dataclass(slots=True, eq=False)
class Flight(Generic[T, R]):
    """One item on its way: what became of it arrives in `outcome`."""

    item: T
    key: Key | None
    outcome: asyncio.Future[R]
    deadline: SharedDeadline


class Flights(Generic[T, R]):
    """The calls of one carrier.

    Args:
        carrier: asked for a batch at a time.
    """

    def __init__(self, carrier: Carrier[T, R]) -> None:
        self._carrier = carrier
        self._shared: dict[str, Flight[T, R]] = {}
        self._waiting: list[Flight[T, R]] = []
        self._boarding = 0
        self._gathering: asyncio.TimerHandle | None = None
        self._running: set[asyncio.Task[object]] = set()

    @contextmanager
    def boarding(self) -> Iterator[None]:
        """While one caller's items board: none of them leaves in a batch that is less than full."""
        self._boarding += 1
        try:
            yield
        finally:
            self._boarding -= 1

    def board(self, item: T, key: Key | None, deadline: SharedDeadline) -> asyncio.Future[R]:
        """The outcome of `item`, to be awaited and never cancelled.

        Args:
            item: to be carried.
            key: of the item; None where its outcome is not shared.
            deadline: of the one who asks; more may join it.
        """
        shared = key is not None and key.deterministic
        known = self._shared.get(key.text) if key is not None and shared else None
        if known is not None:
            known.deadline.absorb(deadline)
            return known.outcome
        flight = Flight(item, key, asyncio.get_running_loop().create_future(), deadline)
        if key is not None and shared:
            self._shared[key.text] = flight
        self._enter(flight)
        return flight.outcome

    def _enter(self, flight: Flight[T, R]) -> None:
        self._waiting.append(flight)
        if len(self._waiting) >= self._carrier.batch_size:
            self._depart()
        elif self._gathering is None:
            self._gathering = asyncio.get_running_loop().call_later(GATHER, self._gathered)

    def _gathered(self) -> None:
        if self._boarding:
            self._gathering = asyncio.get_running_loop().call_later(GATHER, self._gathered)
        else:
            self._depart()

    def _depart(self) -> None:
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        flights, self._waiting = self._waiting, []
        if flights:
            self._run(self._fly(flights))

    def _run(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _fly(self, flights: Sequence[Flight[T, R]]) -> Sequence[R]:
        deadline = flights[0].deadline
        for flight in flights[1:]:
            deadline.absorb(flight.deadline)
            flight.deadline = deadline
        outcomes: Sequence[R] = [self._carrier.dropped] * len(flights)
        try:
            items, told = [flight.item for flight in flights], deadline.patience
            outcomes = await self._carrier.carry(items, deadline)
            if deadline.patience > told:
                outcomes = await self._carry_again(items, outcomes, deadline, told)
            found = zip(flights, outcomes, strict=True)
            self._carrier.landed([(flight.key.text, one) for flight, one in found if flight.key is not None])
        finally:
            for flight, outcome in zip(flights, outcomes, strict=True):
                if flight.key is not None and flight.key.deterministic:
                    self._shared.pop(flight.key.text, None)
                flight.outcome.set_result(outcome)
        return outcomes

    async def _carry_again(
        self, items: Sequence[T], outcomes: Sequence[R], deadline: SharedDeadline, told: tuple[float, float]
    ) -> Sequence[R]:
        """Asks again for what failed while someone joined who can wait longer than the service was `told`."""
        has_failed = self._carrier.has_failed
        outcomes = list(outcomes)
        while deadline.patience > told and (failed := [at for at, one in enumerate(outcomes) if has_failed(one)]):
            told = deadline.patience
            again = await self._carrier.carry([items[at] for at in failed], deadline)
            for at, outcome in zip(failed, again, strict=True):
                outcomes[at] = outcome
        return outcomes


async def landing(waits: Iterable[asyncio.Future[R]], deadline: Deadline | SharedDeadline) -> None:
    """Waits until all have landed or the patience ends; a patience that grew meanwhile is heeded."""
    pending = {wait for wait in waits if not wait.done()}
    while pending and (left := deadline.remaining() + GRACE) > 0:
        _, pending = await asyncio.wait(pending, timeout=left)
