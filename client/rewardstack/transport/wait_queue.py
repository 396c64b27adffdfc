"""The queue of requests that wait for a slot at an endpoint, and the earlier failures of each request."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from rewardstack.core.deadline import SharedDeadline
from rewardstack.endpoints import CHECK_INTERVAL
from rewardstack.errors import RejectedError, ReplyError, ServiceError, SettingsError
from rewardstack.transport import timing
from rewardstack.transport.endpoint import Endpoint
from rewardstack.transport.limiter import backoff
from rewardstack.transport.message import Message

SlotFuture = asyncio.Future["Endpoint | None"]
"""The result is an endpoint with a reserved slot, or None if the waiter has to check whether to keep waiting."""
Tried = frozenset[Endpoint]
"""Endpoints that failed a request."""
NONE_TRIED: Tried = frozenset()


class Failures:
    """The failures of one request so far.

    Args:
        message: the request.

    Attributes:
        since: start of the request's time limit, on `time.monotonic()`.
        error: the last error.
        endpoint: endpoint of the last error.
        failed_at: time of the last error, on `time.monotonic()`.
        tried: endpoints that failed the request since its last pause; used again only if no other is available.
        faulty: the last error of each endpoint that sent an invalid reply or rejected the key, path or model.
        excludes_faulty: whether the endpoints in `faulty` are no longer used.
        rounds: number of rejections and invalid replies that came when no other endpoint was left to try. Behind a
            gateway, overload replies of a replica (`message.REPLICA_STATUSES`) count, too.
        pauses: number of backoff pauses after overload.
        replica: number of the replica behind a gateway to which the next retry is addressed; empty for any.
    """

    __slots__ = (
        "endpoint",
        "error",
        "excludes_faulty",
        "failed_at",
        "faulty",
        "message",
        "pauses",
        "replica",
        "rounds",
        "since",
        "tried",
    )

    def __init__(self, message: Message) -> None:
        self.message = message
        self.tried: Tried = NONE_TRIED
        self.faulty: dict[Endpoint, ReplyError | RejectedError] = {}
        self.excludes_faulty = False
        self.rounds = self.pauses = 0
        self.replica = ""

    def record(self, endpoint: Endpoint, error: ServiceError, since: float) -> None:
        """Record a failure of an attempt whose time limit began at `since`."""
        self.since = since
        self.endpoint, self.error, self.failed_at = endpoint, error, time.monotonic()
        self.tried |= {endpoint}
        if isinstance(error, (ReplyError, RejectedError)):
            self.faulty[endpoint] = error

    def candidates(self, endpoints: Sequence[Endpoint]) -> Sequence[Endpoint]:
        """Return the endpoints that the request may go to next."""
        if self.excludes_faulty:
            return [endpoint for endpoint in endpoints if endpoint not in self.faulty]
        untried = [endpoint for endpoint in endpoints if endpoint not in self.tried and endpoint.limiter.is_available]
        return untried or endpoints

    def back_off(self) -> float:
        """Count a pause, and return its length in seconds."""
        self.pauses += 1
        return backoff(timing.BACKOFF_FIRST, timing.BACKOFF_MAX, self.pauses - 1)


class WaitQueue:
    """A FIFO queue of requests that wait for a slot at an endpoint.

    Args:
        endpoints: returns the current endpoints.
        seconds_left: returns the seconds that a request may still wait, given its deadline and failures.
        release_slot: releases the slot of a cancelled request.
        check_location: checks whether the service has moved; None for a service at a fixed address.
    """

    def __init__(
        self,
        endpoints: Callable[[], Sequence[Endpoint]],
        seconds_left: Callable[[SharedDeadline, Failures | None], float],
        release_slot: Callable[[Endpoint], None],
        check_location: Callable[[], None] | None,
    ) -> None:
        self._endpoints = endpoints
        self._seconds_left = seconds_left
        self._release_slot = release_slot
        self._check_location = check_location
        self._retries: dict[SlotFuture, tuple[SharedDeadline, Failures]] = {}
        self._waiting: dict[SlotFuture, tuple[SharedDeadline, None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._next_timeout_at = math.inf

    def __len__(self) -> int:
        return len(self._waiting) + len(self._retries)

    @property
    def deadlines(self) -> list[SharedDeadline]:
        """The deadlines of the queued requests."""
        return [deadline for deadline, _ in (*self._retries.values(), *self._waiting.values())]

    def reserve_slot(self, failures: Failures | None = None) -> Endpoint | None:
        """Reserve a slot at the least loaded endpoint and return the endpoint; None if no endpoint has a free slot.

        Args:
            failures: the failures of a retry; None for a new request.
        """
        endpoints = self._endpoints()
        candidates = endpoints if failures is None else failures.candidates(endpoints)
        free = [endpoint for endpoint in candidates if endpoint.limiter.admits(endpoint.in_flight)]
        if not free:
            return None
        endpoint = free[0] if len(free) == 1 else min(free, key=lambda one: (one.in_flight, random.random()))
        endpoint.in_flight += 1
        return endpoint

    async def wait(self, deadline: SharedDeadline, failures: Failures | None) -> Endpoint | None:
        """Wait for a slot and return its endpoint; None if the caller has to check whether to keep waiting.

        Args:
            deadline: the deadline, which all callers of the request share.
            failures: the failures of a retry, which is served before new requests; None for a new request.
        """
        slot: SlotFuture = asyncio.get_running_loop().create_future()
        if failures is None:
            self._waiting[slot] = deadline, None
        else:
            self._retries[slot] = deadline, failures
        if self._retries or len(self._waiting) == 1:
            self.assign_slots()
        self._check_by(self._seconds_left(deadline, failures))
        try:
            return await slot
        except asyncio.CancelledError:
            self._remove(slot)
            if not slot.cancelled() and (endpoint := slot.result()) is not None:
                self._release_slot(endpoint)
            raise

    def _remove(self, slot: SlotFuture) -> None:
        self._waiting.pop(slot, None)
        self._retries.pop(slot, None)

    def assign_slots(self) -> None:
        """Assign free slots to waiters, and schedule the next check of the queue if some still wait."""
        if self._retries:
            self._assign_to_retries()
        while self._waiting and self._assign(next(iter(self._waiting)), None):
            pass
        if self._waiting or self._retries:
            self._schedule_check()

    def _assign_to_retries(self) -> None:
        """Assign free slots to retries; skip a retry if an earlier retry with the same candidates got no slot."""
        without_slot: set[tuple[Tried, bool]] = set()
        for slot, (_, failures) in list(self._retries.items()):
            candidates_key = failures.tried, failures.excludes_faulty
            if (NONE_TRIED, False) in without_slot:
                break
            if candidates_key not in without_slot and not self._assign(slot, failures):
                without_slot.add(candidates_key)

    def _assign(self, slot: SlotFuture, failures: Failures | None) -> bool:
        """Assign a slot to a waiter; return False if the waiter stays in the queue, because no slot is free."""
        if not slot.done():
            endpoint = self.reserve_slot(failures)
            if endpoint is None:
                return False
            slot.set_result(endpoint)
        self._remove(slot)
        return True

    def wake_all(self) -> None:
        """Wake all waiters without giving them slots, so that each checks whether to keep waiting."""
        for slot in (*self._retries, *self._waiting):
            self._wake_waiter(slot)

    def _wake_waiter(self, slot: SlotFuture) -> None:
        self._remove(slot)
        if not slot.done():
            slot.set_result(None)

    def _schedule_check(self) -> None:
        if self._check_location is not None:
            self._check_in(CHECK_INTERVAL)
        now = time.monotonic()
        for endpoint in self._endpoints():
            for moment in (endpoint.limiter.paused_until, endpoint.limiter.grows_at):
                if now < moment < math.inf:
                    self._check_in(moment - now)

    def _check_in(self, seconds: float) -> None:
        """Check the queue in `seconds` at the latest; one timer for all waiters is cheaper than one for each."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            if self._timer.when() <= loop.time() + seconds:
                return
            self._timer.cancel()
        self._timer = loop.call_later(max(0.0, seconds) + 0.001, self._check_waiters)

    def _check_by(self, seconds: float) -> None:
        self._next_timeout_at = min(self._next_timeout_at, time.monotonic() + seconds)
        self._check_in(seconds)

    def _check_waiters(self) -> None:
        self._timer = None
        with suppress(SettingsError):  # the next request raises the error
            if self._check_location is not None:
                self._check_location()
        self.assign_slots()
        if time.monotonic() < self._next_timeout_at:
            self._check_in(self._next_timeout_at - time.monotonic())
            return
        self._next_timeout_at = math.inf
        for slot, (deadline, failures) in (*self._retries.items(), *self._waiting.items()):
            left = self._seconds_left(deadline, failures)
            if left <= 0:
                self._wake_waiter(slot)
            else:
                self._check_by(left)

    def close(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
