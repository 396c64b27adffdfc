"""The batcher: sends items that arrive at about the same time in one batch, and equal items only once.

This saves requests when trainers submit one sample at a time. Each submitted item is a `Call`. Several callers may wait
for the same call, each with its own deadline; the call is dropped when all of them are cancelled.

The batcher also collects groups (responses that a judge compares with each other) whose members arrive one by one. Such
a group is a batch of fixed size that waits for its members for up to `BatchKey.max_wait` seconds.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, Generic, NamedTuple, TypeVar

from rewardstack.cause import Cause
from rewardstack.core.deadline import Deadline, SharedDeadline, timeout_error
from rewardstack.core.stretch import Stretch
from rewardstack.errors import ServiceError

WINDOW = 0.001
"""Seconds that a partial batch waits for more items."""
GRACE = 0.02
"""Seconds that a caller waits beyond its deadline. If its request times out at the same moment, the caller still
gets the error of the request, which names the cause."""

ABANDONED = "dropped: all callers were cancelled"
SHUTTING_DOWN = "dropped: the client is shutting down"

T = TypeVar("T")
R = TypeVar("R")


class BatchKey(NamedTuple):
    """Which items may be in one batch, and how many.

    Args:
        size: maximum number of items in a batch.
        name: items with different names are in different queues: they are never in one batch, and do not wait for each
            other.
        max_in_flight: maximum number of the queue's items in flight. The limit saves memory: an item in flight needs
            15 kB for coroutines and a request body, but a queued item needs only 5 kB.
        affinity: a value that is equal for items whose prompts begin with the same text, e.g. the same problem. A
            caller's items with equal affinity are sent one after another, so that the model server can reuse its prefix
            cache.
        max_wait: seconds that a partial batch waits for more items; None for the batcher's window.
        slot: an identifier within the queue. A new item replaces the queued item with the same slot, and the callers of
            both items get the outcome of the new item. None for no slot.
        per_caller: whether a batch has only items of a single caller; see `for_caller`.
    """

    size: float = math.inf
    name: Hashable = None
    max_in_flight: float = math.inf
    affinity: Hashable = None
    max_wait: float | None = None
    slot: Hashable = None
    per_caller: bool = False

    @property
    def is_group(self) -> bool:
        """Whether a batch is a group, which must not be divided."""
        return self.per_caller or self.max_wait is not None

    def for_caller(self, caller: Hashable) -> BatchKey:
        """Return the key for an item of `caller`; if `per_caller`, the key's name includes the caller."""
        return self._replace(name=(self.name, caller)) if self.per_caller else self


class _Wait:
    """A caller's wait for the outcomes of its items; one future for all items is cheaper than one future for each.

    Args:
        count: number of items.
    """

    __slots__ = ("_done", "_missing")

    def __init__(self, count: int) -> None:
        self._missing = count
        self._done = asyncio.get_running_loop().create_future()

    def count_outcome(self) -> None:
        """Record that an item has its outcome."""
        self._missing -= 1
        if not self._missing:
            self._done.set_result(None)

    async def until(self, deadline: Deadline | SharedDeadline) -> None:
        """Wait until all items have outcomes, or until `GRACE` after the deadline, which may change meanwhile."""
        while self._missing and (left := deadline.remaining() + GRACE) > 0:
            await asyncio.wait((self._done,), timeout=left if left < math.inf else None)


@dataclass(slots=True, eq=False)
class Call(Generic[T, R]):
    """A submitted item that callers wait for; `share_key` is equal for items that can share one call.

    While the call is queued for a single caller, `deadline` is the deadline of this caller. When the call is sent or
    another caller joins, `deadline` becomes a `SharedDeadline`. Creating the `SharedDeadline` so late saves memory if
    a caller submits many items, because most of their calls are queued.
    """

    item: T
    share_key: Hashable
    queue: _Queue[T, R]
    deadline: Deadline | SharedDeadline
    slot: Hashable = None
    task: asyncio.Task[object] | None = None
    outcome: R | Exception | None = None
    is_done: bool = False
    wait: _Wait | None = None
    other_waits: list[_Wait] | None = None

    def add_wait(self, wait: _Wait) -> None:
        """Add a caller's wait; if the call is done, count its outcome immediately."""
        if self.is_done:  # with `asyncio.eager_task_factory`, a batch may end while its items are submitted
            wait.count_outcome()
        elif self.wait is None:
            self.wait = wait
        elif self.other_waits is None:
            self.other_waits = [wait]
        else:
            self.other_waits.append(wait)

    def set_outcome(self, outcome: R | Exception) -> None:
        """Set the outcome, and notify the callers."""
        self.task, self.outcome, self.is_done = None, outcome, True
        if self.wait is not None:
            self.wait.count_outcome()
        for wait in self.other_waits or ():
            wait.count_outcome()

    def join(self, deadline: Deadline | SharedDeadline) -> None:
        """Let the callers of `deadline` wait for the call, too."""
        if isinstance(self.deadline, Deadline):
            self.queue.leave(self.deadline)
            self.deadline = SharedDeadline(self.deadline)
            self.queue.enter(self.deadline)
        self.deadline.merge(deadline)


class _Queue(Generic[T, R]):
    """The unsent calls with one `BatchKey.name`.

    If `max_in_flight` limits the queue, each batch that was sent extends the deadlines of the calls that are still
    queued, except if all items of the batch failed.
    """

    def __init__(self, queue_id: Hashable, key: BatchKey) -> None:
        self.queue_id = queue_id
        self.key = key
        self.waiting: deque[Call[T, R]] = deque()
        self.in_flight = 0
        self.last_progress = 0.0
        self.timer: asyncio.TimerHandle | None = None
        self.is_bounded = key.max_in_flight < math.inf

    def add(self, call: Call[T, R]) -> None:
        self.waiting.append(call)
        self.enter(call.deadline)

    def enter(self, deadline: Deadline | SharedDeadline) -> None:
        if self.is_bounded:
            deadline.enter_queue(self)

    def leave(self, deadline: Deadline | SharedDeadline) -> None:
        if self.is_bounded:
            deadline.leave_queue(self)

    def find_by_slot(self, slot: Hashable) -> Call[T, R] | None:
        """Return the queued call with this slot; None if no queued call has it."""
        return None if slot is None else next((call for call in self.waiting if call.slot == slot), None)

    def take(self) -> list[Call[T, R]]:
        """Remove and return the next batch; empty if nothing waits or `max_in_flight` is reached."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        count = min(self.key.size, len(self.waiting), self.key.max_in_flight - self.in_flight)
        calls = [self.waiting.popleft() for _ in range(int(count))]
        for call in calls:
            self.leave(call.deadline)
            if isinstance(call.deadline, Deadline):
                call.deadline = SharedDeadline(call.deadline)
        self.in_flight += len(calls)
        return calls


class Batcher(Generic[T, R]):
    """Sends items in batches.

    Args:
        send: sends a batch, and returns an outcome for each item, in order, before the shared deadline. If `send`
            raises for a batch of several items, or returns a wrong number of outcomes, each item is sent again alone,
            so that only the bad item fails.
        window: seconds that a partial batch waits for more items; 0 for one iteration of the event loop.
        has_failed: returns whether an outcome is a failure; failed items are sent again if a caller with more time has
            joined since they were sent.
    """

    def __init__(
        self,
        send: Callable[[Sequence[T], SharedDeadline], Awaitable[Sequence[R]]],
        window: float = WINDOW,
        has_failed: Callable[[R | Exception], bool] = lambda _: False,
    ) -> None:
        self._send = send
        self._window = window
        self._has_failed = has_failed
        self._shared: dict[Hashable, Call[T, R]] = {}
        self._queues: dict[Hashable, _Queue[T, R]] = {}
        self._submitting = 0
        self._running: set[asyncio.Task[object]] = set()

    async def ask(
        self,
        items: Sequence[T],
        keys: Sequence[BatchKey],
        deadline: Deadline | SharedDeadline,
        share_keys: Sequence[Hashable] | None = None,
    ) -> list[R | Exception]:
        """Return the outcome of each item, in order; a `DeadlineError` for an item without an outcome at the deadline.

        No partial batch is sent before all items are submitted. If the caller is cancelled, calls that no other
        caller waits for are dropped.

        Args:
            items: the items to send.
            keys: the batch key of each item.
            deadline: the caller's deadline, or a deadline that several callers share.
            share_keys: a value for each item. Items with equal values share a call if they wait or are in flight at the
                same time. An item whose value is None shares no call. Without `share_keys`, no item shares a call.
        """
        calls: list[Call[T, R]] = [None] * len(items)  # type: ignore[list-item]
        wait = _Wait(len(items))
        try:
            await self._submit_all(calls, items, keys, deadline, share_keys, wait)
            await wait.until(deadline)
        except asyncio.CancelledError:
            if isinstance(deadline, Deadline):  # each caller of a `SharedDeadline` sets this in its own `Deadline`
                deadline.is_abandoned = True
            _drop_abandoned(calls)
            raise
        return [call.outcome if call.is_done else self._timeout_error(call, deadline) for call in calls]  # type: ignore[misc]

    async def _submit_all(
        self,
        calls: list[Call[T, R]],
        items: Sequence[T],
        keys: Sequence[BatchKey],
        deadline: Deadline | SharedDeadline,
        share_keys: Sequence[Hashable] | None,
        wait: _Wait,
    ) -> None:
        """Submit the items and store their calls in `calls`. Until all are submitted, timers send no partial batch."""
        self._submitting += 1
        stretch = Stretch()
        try:
            for index in _sending_order(keys):
                call = calls[index] = self._submit(
                    items[index], keys[index], deadline, share_keys[index] if share_keys else None
                )
                call.add_wait(wait)
                if stretch.is_over():
                    await stretch.rest()
        finally:
            self._submitting -= 1

    async def ask_one(self, item: T, key: BatchKey) -> R:
        """Return the outcome of an item, without a time limit; raise the outcome if it is an exception."""
        [outcome] = await self.ask([item], [key], Deadline(math.inf))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _timeout_error(self, call: Call[T, R], deadline: Deadline | SharedDeadline) -> Exception:
        queue_state = f"{call.queue.in_flight} samples of the same queue are in flight"
        if call.queue.key.max_wait is not None and call in call.queue.waiting:
            queue_state = f"{len(call.queue.waiting)} of {call.queue.key.size:g} members of its group have arrived"
        return timeout_error(deadline, call.deadline, queue_state)

    def _submit(self, item: T, key: BatchKey, deadline: Deadline | SharedDeadline, share_key: Hashable) -> Call[T, R]:
        """Return the call for an item: a call with the same `share_key`, else one with the same slot, else a new call.

        If a queued call has the same slot, `item` replaces the item of that call.
        """
        shared_call = self._shared.get(share_key) if share_key is not None else None
        if shared_call is not None and not shared_call.deadline.is_abandoned:
            shared_call.join(deadline)
            return shared_call
        loop = asyncio.get_running_loop()
        queue_id = loop, key.name
        queue = self._queues.get(queue_id)
        if queue is None:
            queue = self._queues[queue_id] = _Queue(queue_id, key)
        if (queued_call := queue.find_by_slot(key.slot)) is not None:
            self._stop_sharing(queued_call)
            queued_call.item, queued_call.share_key = item, share_key
            queued_call.join(deadline)
            if share_key is not None:
                self._shared[share_key] = queued_call
            return queued_call
        call = Call(item, share_key, queue, deadline, key.slot)
        if share_key is not None:
            self._shared[share_key] = call
        queue.add(call)
        if len(queue.waiting) >= key.size:
            self._send_from(queue)
        elif queue.timer is None:
            delay = self._window if key.max_wait is None else key.max_wait
            queue.timer = loop.call_later(delay, self._on_timer, queue)
        return call

    def _on_timer(self, queue: _Queue[T, R]) -> None:
        if self._submitting:
            queue.timer = asyncio.get_running_loop().call_later(WINDOW, self._on_timer, queue)
        else:
            self._send_from(queue)

    def _send_from(self, queue: _Queue[T, R]) -> None:
        while calls := queue.take():
            self._start_task(self._send_batches(calls, queue))
        if not (queue.in_flight or queue.waiting) and self._queues.get(queue.queue_id) is queue:
            del self._queues[queue.queue_id]

    def _start_task(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _send_batches(self, calls: Sequence[Call[T, R]], queue: _Queue[T, R]) -> None:
        """Send a batch, then the queue's next batches; one task per batch would be a fifth slower."""
        try:
            while calls:
                await self._send_batch(calls, queue)
                calls = () if queue.timer is not None else queue.take()
                if calls:
                    self._send_from(queue)
        finally:
            if queue.timer is None:  # else the timer sends the partial batch
                self._send_from(queue)

    async def _send_batch(self, calls: Sequence[Call[T, R]], queue: _Queue[T, R]) -> None:
        """Send a batch and set the outcomes of its calls; stop if all callers are cancelled."""
        deadline, task = calls[0].deadline, asyncio.current_task()
        assert isinstance(deadline, SharedDeadline), "set when the call left its queue"
        for call in calls:
            deadline.merge(call.deadline)
            call.deadline, call.task = deadline, task
        outcomes: Sequence[R | Exception] = ()
        try:
            if not deadline.is_abandoned:
                outcomes = await self._outcomes(calls, deadline)
                if queue.is_bounded and not all(map(self._has_failed, outcomes)):
                    queue.last_progress = time.monotonic()
        except asyncio.CancelledError:
            if not deadline.is_abandoned:  # the client is shutting down
                error = ServiceError(SHUTTING_DOWN, cause=Cause.SHUTDOWN)
                outcomes = [error] * len(calls)
                self._set_outcomes(queue.waiting, [error] * len(queue.waiting))
                queue.waiting.clear()
                raise
            if task is not None and hasattr(task, "uncancel"):  # from Python 3.11 on
                task.uncancel()
        finally:
            queue.in_flight -= len(calls)
            self._set_outcomes(calls, outcomes or [ServiceError(ABANDONED, cause=Cause.CANCELLED)] * len(calls))

    def _set_outcomes(self, calls: Iterable[Call[T, R]], outcomes: Sequence[R | Exception]) -> None:
        for call, outcome in zip(calls, outcomes, strict=True):
            if not call.is_done:
                self._stop_sharing(call)
                call.set_outcome(outcome)

    def _stop_sharing(self, call: Call[T, R]) -> None:
        if call.share_key is not None and self._shared.get(call.share_key) is call:
            del self._shared[call.share_key]

    async def _outcomes(self, calls: Sequence[Call[T, R]], deadline: SharedDeadline) -> Sequence[R | Exception]:
        """Return the outcomes of a batch in order: results or errors.

        Failed calls are sent again if a caller with more time has joined since they were sent. If sending calls raises
        an exception, each of these calls is sent alone; calls that have outcomes keep them.
        """
        outcomes: dict[Call[T, R], R | Exception] = {}
        unsent = calls
        try:
            while unsent:
                sent_with = deadline.attempt_bounds
                results = await self._send([call.item for call in unsent], deadline)
                if len(results) != len(unsent):
                    raise ValueError(f"{len(results)} outcomes for {len(unsent)} items")
                outcomes.update(zip(unsent, results, strict=True))
                has_more_time = deadline.attempt_bounds > sent_with
                unsent = [*compress(unsent, map(self._has_failed, results))] if has_more_time else ()
        except Exception as error:  # noqa: BLE001 - the error becomes the outcome, or the calls are sent again
            alone = [error] if len(unsent) == 1 else await self._send_each(unsent, deadline)
            outcomes.update(zip(unsent, alone, strict=True))
        return [*map(outcomes.__getitem__, calls)]

    async def _send_each(self, calls: Sequence[Call[T, R]], deadline: SharedDeadline) -> Sequence[R | Exception]:
        return await asyncio.gather(*(self._send_alone(call, deadline) for call in calls))

    async def _send_alone(self, call: Call[T, R], deadline: SharedDeadline) -> R | Exception:
        """Send a call of a failed batch again, and set its outcome without waiting for the rest of the batch."""
        outcomes = await self._outcomes([call], deadline)
        self._set_outcomes([call], outcomes)
        return outcomes[0]


def _drop_abandoned(calls: Iterable[Call[Any, Any] | None]) -> None:
    """Cancel the tasks of calls whose callers are all cancelled; `calls` has None for an item not yet submitted."""
    tasks = {call.task for call in calls if call is not None and call.task and call.deadline.is_abandoned}
    for task in tasks:
        task.cancel()


def _sending_order(keys: Sequence[BatchKey]) -> Iterable[int]:
    """Return the positions of a caller's items in the order in which they are sent, grouped by affinity."""
    groups: dict[Hashable, list[int]] = {}
    for index, key in enumerate(keys):
        groups.setdefault(key.affinity, []).append(index)
    return (index for members in groups.values() for index in members)
