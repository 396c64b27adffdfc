"""Calls in flight: formed into batches, shared by whoever asks the same, each waiter with a deadline of its own.

Trainers that score one sample a call would otherwise pay one request each: what arrives within `GATHER` goes out
together. A call belongs to no waiter: it goes on while anyone still waits for it.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rewardstack.deadline import Deadline, SharedDeadline
from rewardstack.errors import ConfigError, ServiceError
from rewardstack.score import Item, Score
from rewardstack.scorer import Key, Scorer

GATHER = 0.001
"""Seconds that a batch waits for company before it goes out less than full."""
GRACE = 0.02
"""Seconds a waiter gives a call that ends at the same moment as its patience."""

log = logging.getLogger(__name__)

Outcome = Score | ConfigError
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Flight:
    """One item on its way: what became of it arrives in `outcome`."""

    item: Item
    key: Key | None
    outcome: asyncio.Future[Outcome]
    deadline: SharedDeadline


class Flights:
    """The calls of one scorer.

    Args:
        scorer: asked for a batch at a time.
        landed: awaited with every batch's (key, score) pairs of status `ok`, before its waiters hear of them.
    """

    def __init__(self, scorer: Scorer, landed: Callable[[list[tuple[str, Score]]], Coroutine[Any, Any, None]]) -> None:
        self._scorer = scorer
        self._landed = landed
        self._shared: dict[str, Flight] = {}
        self._waiting: list[Flight] = []
        self._gathering: asyncio.TimerHandle | None = None
        self._running: set[asyncio.Task[None]] = set()

    def board(self, item: Item, key: Key | None, deadline: Deadline) -> asyncio.Future[Outcome]:
        """The outcome of `item`, to be awaited and never cancelled.

        Args:
            item: to be scored.
            key: of the item; None where its score is neither cached nor shared.
            deadline: of the one who asks.
        """
        known = self._shared.get(key.text) if key is not None and key.deterministic else None
        if known is not None:
            known.deadline.join(deadline)
            return known.outcome
        flight = Flight(item, key, asyncio.get_running_loop().create_future(), SharedDeadline(deadline))
        if key is not None and key.deterministic:
            self._shared[key.text] = flight
        self._waiting.append(flight)
        if len(self._waiting) >= self._scorer.batch_size:
            self._depart()
        elif self._gathering is None:
            self._gathering = asyncio.get_running_loop().call_later(GATHER, self._depart)
        return flight.outcome

    def _depart(self) -> None:
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        flights, self._waiting = self._waiting, []
        if flights:
            task = asyncio.create_task(self._fly(flights))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _fly(self, flights: Sequence[Flight]) -> None:
        deadline = SharedDeadline()
        for flight in flights:
            deadline.absorb(flight.deadline)
            flight.deadline = deadline
        outcomes: Sequence[Outcome] = [Score.failed("dropped: the client is shutting down")] * len(flights)
        try:
            outcomes = await self._ask_patiently([flight.item for flight in flights], deadline)
            await self._landed(_results(flights, outcomes))
        finally:
            for flight, outcome in zip(flights, outcomes, strict=True):
                if flight.key is not None and flight.key.deterministic:
                    self._shared.pop(flight.key.text, None)
                flight.outcome.set_result(outcome)

    async def _ask_patiently(self, items: Sequence[Item], deadline: SharedDeadline) -> Sequence[Outcome]:
        """Asks again for what failed while someone joined who can wait longer than the service was told."""
        told = deadline.patience
        outcomes = list(await self._ask(items, deadline))
        while deadline.patience > told and (failed := [at for at, one in enumerate(outcomes) if _has_failed(one)]):
            told = deadline.patience
            for at, outcome in zip(failed, await self._ask([items[at] for at in failed], deadline), strict=True):
                outcomes[at] = outcome
        return outcomes

    async def _ask(self, items: Sequence[Item], deadline: SharedDeadline) -> Sequence[Outcome]:
        source = self._scorer.source
        try:
            scores = await self._scorer.score(items, deadline)
        except ConfigError as error:
            return [error] * len(items)
        except ServiceError as error:
            return [Score.failed(str(error), source)] * len(items)
        except Exception as error:
            log.exception("%s: a fault in its scorer", source)
            return [Score.failed(f"internal error: {type(error).__name__}", source)] * len(items)
        if len(scores) != len(items):
            return [Score.failed(f"{len(scores)} scores came for {len(items)} samples", source)] * len(items)
        return [checked(score) for score in scores]


def _has_failed(outcome: Outcome) -> bool:
    return isinstance(outcome, Score) and outcome.status == "failed"


def _results(flights: Sequence[Flight], outcomes: Sequence[Outcome]) -> list[tuple[str, Score]]:
    return [
        (flight.key.text, outcome)
        for flight, outcome in zip(flights, outcomes, strict=True)
        if flight.key is not None and isinstance(outcome, Score) and outcome.status == "ok"
    ]


async def landing(waits: Iterable[asyncio.Future[T]], deadline: Deadline) -> None:
    """Waits until all have landed or the patience ends; a patience that grew meanwhile is heeded."""
    pending = {wait for wait in waits if not wait.done()}
    while pending and (left := deadline.remaining() + GRACE) > 0:
        _, pending = await asyncio.wait(pending, timeout=left)


def checked(score: Score) -> Score:
    """`score`, or a failure where it is not what its status says: NaN and infinity are no rewards."""
    value = score.value
    if score.status in ("ok", "fallback") and (value is None or not math.isfinite(value)):
        return Score.failed(f"{value} is no reward", score.source)
    return score
