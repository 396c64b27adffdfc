"""Calls to one backend: formed into batches, shared by whoever asks the same, each waiter with a deadline of its own.

Trainers that score one sample a call would otherwise pay one request each: what is submitted within `GATHER` goes out
together. A call belongs to no waiter: it goes on while anyone still waits for it.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Coroutine, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from rewardstack.core.deadline import Deadline, SharedDeadline, why_late
from rewardstack.core.keys import Key

GATHER = 0.001
"""Seconds that a batch waits for company before it goes out less than full."""
SLICE = 512
"""Items handled before the loop gets a breath: its other callers wait no longer than these take."""
GRACE = 0.02
"""Seconds a waiter gives a call that ends at the same moment as its patience."""

T = TypeVar("T")
R = TypeVar("R")
C = TypeVar("C", contravariant=True)


class Backend(Protocol[C, R]):
    """Answers batches."""

    @property
    def dropped(self) -> R:
        """The outcome of an item that was on its way when the client shut down."""
        ...

    def late(self, reason: str) -> R:
        """The outcome, for one who waits no longer, of an item that is still on its way.

        Args:
            reason: how long it was waited for, and what is known of the cause.
        """
        ...

    async def send(self, items: Sequence[C], keys: Sequence[Key | None], deadline: SharedDeadline) -> Sequence[R]:
        """One outcome for each item, in order; whatever goes wrong is an outcome, too.

        Args:
            items: of one lane.
            keys: of the items; None for one whose outcome nobody may keep.
            deadline: of all who wait.
        """
        ...

    def has_failed(self, outcome: R) -> bool:
        """Whether asking again may bring another outcome."""
        ...


class Lane(NamedTuple):
    """Which items travel together, and how many of them at a time.

    Args:
        size: items in one batch at most.
        name: of the lane; items of different lanes are never in one batch, nor wait for each other.
        width: items under way at a time; an item that waits for its turn costs no memory but its own.
    """

    size: int
    name: Hashable = None
    width: float = math.inf


def one_lane(size: int) -> Callable[[Any], Lane]:
    """Has all items travel in batches of one `size`, as many at a time as there are."""
    lane = Lane(size)
    return lambda _: lane


@dataclass(slots=True, eq=False)
class Call(Generic[T, R]):
    """One item under way: what became of it arrives in `outcome`."""

    item: T
    key: Key | None
    outcome: asyncio.Future[R]
    deadline: SharedDeadline


class _Queue(Generic[T, R]):
    """The calls of one lane that were not sent yet; its progress keeps alive those that wait for their turn."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.waiting: deque[Call[T, R]] = deque()
        self.in_flight = 0
        self.last_progress = 0.0
        self.timer: asyncio.TimerHandle | None = None
        self.bounded = lane.width < math.inf
        """Whether calls may have to wait for their turn."""

    @property
    def has_batch(self) -> bool:
        """Whether a full batch waits."""
        return len(self.waiting) >= self.lane.size

    def add(self, call: Call[T, R]) -> None:
        """Has a call wait."""
        self.waiting.append(call)
        if self.bounded:
            call.deadline.enter_queue(self)

    def take(self) -> list[Call[T, R]]:
        """The next batch, now in flight; empty where nothing waits or the lane is full."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        count = min(self.lane.size, len(self.waiting), self.lane.width - self.in_flight)
        calls = [self.waiting.popleft() for _ in range(int(count))]
        if self.bounded:
            for call in calls:
                call.deadline.leave_queue(self)
        self.in_flight += len(calls)
        return calls


class Coalescer(Generic[T, R]):
    """The calls to one backend.

    Args:
        backend: asked for a batch at a time.
        lane_of: the lane of an item.
    """

    def __init__(self, backend: Backend[T, R], lane_of: Callable[[T], Lane]) -> None:
        self._backend = backend
        self._lane_of = lane_of
        self._shared: dict[str, Call[T, R]] = {}
        self._queues: dict[Hashable, _Queue[T, R]] = {}
        self._submitting = 0
        self._running: set[asyncio.Task[object]] = set()

    async def ask(self, items: Sequence[T], keys: Sequence[Key | None], deadline: Deadline | SharedDeadline) -> list[R]:
        """One outcome for each item, in order; the backend's `late` for one that came not before the patience ended.

        None of the items goes out in a batch that is less than full before all of them are submitted.

        Args:
            items: to be sent, in this order.
            keys: of the items; None for one whose outcome is not shared.
            deadline: of the one who asks; a shared one is that of all its calls, so that who joins it joins them.
        """
        calls: list[Call[T, R]] = []
        self._submitting += 1
        try:
            for item, key in zip(items, keys, strict=True):
                own = deadline if isinstance(deadline, SharedDeadline) else SharedDeadline(deadline)
                calls.append(self._call(item, key, own))
                if len(calls) % SLICE == 0:
                    await asyncio.sleep(0)
        finally:
            self._submitting -= 1
        await wait_for_all([call.outcome for call in calls], deadline)
        return [call.outcome.result() if call.outcome.done() else self._late(call, deadline) for call in calls]

    def _late(self, call: Call[T, R], deadline: Deadline | SharedDeadline) -> R:
        before = self._queues[self._lane_of(call.item).name].in_flight
        return self._backend.late(why_late(deadline, call.deadline, f"{before} others are on their way before it"))

    def submit(self, item: T, key: Key | None, deadline: SharedDeadline) -> asyncio.Future[R]:
        """The outcome of `item`, to be awaited and never cancelled.

        Args:
            item: to be sent.
            key: of the item; None where its outcome is not shared.
            deadline: of the one who asks; more may join it.
        """
        return self._call(item, key, deadline).outcome

    def _call(self, item: T, key: Key | None, deadline: SharedDeadline) -> Call[T, R]:
        shared = key is not None and key.deterministic
        known = self._shared.get(key.text) if key is not None and shared else None
        if known is not None:
            known.deadline.absorb(deadline)
            return known
        call = Call(item, key, asyncio.get_running_loop().create_future(), deadline)
        if key is not None and shared:
            self._shared[key.text] = call
        self._enqueue(call)
        return call

    def _enqueue(self, call: Call[T, R]) -> None:
        lane = self._lane_of(call.item)
        queue = self._queues.get(lane.name)
        if queue is None:
            queue = self._queues[lane.name] = _Queue(lane)
        queue.add(call)
        if queue.has_batch:
            self._send_from(queue)
        elif queue.timer is None:
            queue.timer = asyncio.get_running_loop().call_later(GATHER, self._gathered, queue)

    def _gathered(self, queue: _Queue[T, R]) -> None:
        if self._submitting:
            queue.timer = asyncio.get_running_loop().call_later(GATHER, self._gathered, queue)
        else:
            self._send_from(queue)

    def _send_from(self, queue: _Queue[T, R]) -> None:
        while calls := queue.take():
            self._run(self._serve(calls, queue))

    def _run(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _serve(self, calls: Sequence[Call[T, R]], queue: _Queue[T, R]) -> None:
        """Sends a batch and then those that have waited for its place: a task each would cost a fifth more."""
        try:
            while calls:
                await self._send(calls, queue)
                calls = () if queue.timer is not None else queue.take()
                if calls:
                    self._send_from(queue)
        finally:
            if queue.timer is None:  # what still gathers company goes out when that has come
                self._send_from(queue)

    async def _send(self, calls: Sequence[Call[T, R]], queue: _Queue[T, R]) -> None:
        deadline = calls[0].deadline
        for call in calls[1:]:
            deadline.absorb(call.deadline)
            call.deadline = deadline
        outcomes: Sequence[R] = [self._backend.dropped] * len(calls)
        try:
            outcomes = await self._outcomes(calls, deadline)
            if queue.bounded and not all(map(self._backend.has_failed, outcomes)):
                queue.last_progress = time.monotonic()
        except asyncio.CancelledError:  # the client is shutting down
            self._finish(queue.waiting, [self._backend.dropped] * len(queue.waiting))
            queue.waiting.clear()
            raise
        finally:
            queue.in_flight -= len(calls)
            self._finish(calls, outcomes)

    def _finish(self, calls: Iterable[Call[T, R]], outcomes: Sequence[R]) -> None:
        for call, outcome in zip(calls, outcomes, strict=True):
            if call.key is not None and call.key.deterministic:
                self._shared.pop(call.key.text, None)
            if not call.outcome.done():
                call.outcome.set_result(outcome)

    async def _outcomes(self, calls: Sequence[Call[T, R]], deadline: SharedDeadline) -> Sequence[R]:
        """What the backend makes of the items; asked again for what failed while someone joined who can wait longer."""
        items, keys = [call.item for call in calls], [call.key for call in calls]
        sent_with = deadline.patience
        outcomes = list(await self._backend.send(items, keys, deadline))
        has_failed = self._backend.has_failed
        while deadline.patience > sent_with and (failed := [at for at, one in enumerate(outcomes) if has_failed(one)]):
            sent_with = deadline.patience
            again = await self._backend.send([items[at] for at in failed], [keys[at] for at in failed], deadline)
            for at, outcome in zip(failed, again, strict=True):
                outcomes[at] = outcome
        return outcomes


async def wait_for_all(outcomes: Iterable[asyncio.Future[R]], deadline: Deadline | SharedDeadline) -> None:
    """Waits until all are done or the patience ends; a patience that grew meanwhile is heeded."""
    pending = {one for one in outcomes if not one.done()}
    while pending and (left := deadline.remaining() + GRACE) > 0:
        _, pending = await asyncio.wait(pending, timeout=left)
