"""A service behind one or several equivalent URLs: load balancing, failover and retries.

Only `Servers.ask` chooses servers and retries requests: choose a server, send, learn from the reply, wait. There are
three exceptions: a judge is asked again if its verdict cannot be read; `core.batching` splits a failed batch to isolate
a bad sample, and sends a failed call again if a caller with more time has joined the call meanwhile.

What is known of a server is its `Health`; what each fault does is a row of `faults.RULES`. Besides:

1. **Load balancing**: a request goes to the server with the fewest requests in flight. If all servers are at their
   limit, it waits in a queue.
2. **Failover**: after a failure, the request goes immediately to another server that is neither paused nor skipped.
   Failover does not use the retry budget.
3. **Outage**: the timeout of each request counts from the start of the outage. Once it has passed, requests fail fast
   until a probe succeeds. A service that leaves requests of one HTTP method unanswered for a whole timeout, or refuses
   all of them as overload, is tested with one cheap probe or request at a time.
4. **Invalid replies**: retries have a budget. While a server gives invalid replies to all requests, it gets only one
   retry at a time, as a trial; once a request succeeds, all retries continue.
5. **Gateway**: retries of a request have consecutive numbers (`message.REPLICA`), which our gateway sends to different
   replicas; so have hedges, unless the gateway sends them to the replica with the fewest connections anyway. Faults of
   a single replica are not held against the gateway.
6. **Ejection**, as in Envoy's outlier detection: at most half of the servers are skipped at a time.
7. **Hedging**: a stuck request is sent again, which uses the retry budget. The budget is refunded if the hedge is
   answered first. While the budget is empty, up to one hedge per second is still sent.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rewardstack.cause import Cause
from rewardstack.core.deadline import AttemptTimeout, SharedDeadline
from rewardstack.endpoints import CHECK_INTERVAL
from rewardstack.errors import DeadlineError, OverloadError, RejectedError, ReplyError, ServiceError, UnreachableError
from rewardstack.transport import timing
from rewardstack.transport.attempt import Alarm, Attempt, LatencyTracker, RetryBudget
from rewardstack.transport.faults import REPLICA_STATUSES, TEMPORARY, Fault, backoff, fault_of
from rewardstack.transport.health import Streak
from rewardstack.transport.http import authorization
from rewardstack.transport.message import HEALTH, REPLICA, Message
from rewardstack.transport.server import Server, replica_key
from rewardstack.transport.service import Service

NOT_FOUND = 404
"""HTTP status for an unknown path or model."""
NOTHING_SENT = "the timeout ended before a request was sent; set a longer timeout"
"""State of a service without requests and failures, for the error about a timeout."""

Location = tuple[tuple[str, ...], str]
"""Base URLs of equivalent servers, and their API key."""
Slot = asyncio.Future["Server | None"]
"""The result is a server with a reserved slot, or None if the waiter has to check whether to keep waiting."""

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Call:
    """A call of `Servers.ask`: its request, and the state of its retries.

    Args:
        message: the request.
        deadline: the deadline, which all callers of the request share.

    Attributes:
        timeout: the time limit of its attempts.
        is_trial: whether it tests whether a service that left requests unanswered has recovered.
        error: its last error; None before the first failure.
        tried: servers that failed it since its last pause; used again only if no other is available.
        faulty: the last error of each server that sent an invalid reply, or rejected the key, path or model.
        excluded: servers that it no longer goes to.
        needs_trial: whether it is retried after an invalid reply, which needs budget, or a trial.
        rounds: failures when no other server was left to try.
        replica: number of the next attempt behind a gateway; None for the first attempt.
    """

    message: Message
    deadline: SharedDeadline
    timeout: AttemptTimeout
    error: ServiceError | None = None
    is_trial: bool = False
    needs_trial: bool = False
    tried: frozenset[Server] = frozenset()
    excluded: frozenset[Server] = frozenset()
    faulty: dict[Server, ServiceError] = field(default_factory=dict)
    rounds: int = 0
    replica: int | None = None

    def record(self, server: Server, error: ServiceError) -> None:
        """Record a failed attempt."""
        self.error, self.needs_trial = error, False
        self.tried |= {server}
        if isinstance(error, (ReplyError, RejectedError)):
            self.faulty[server] = error

    @property
    def has_little_time(self) -> bool:
        """Whether the call has spent `MIN_SHARE` of its timeout."""
        return self.timeout.remaining() < (1 - timing.MIN_SHARE) * self.deadline.effective_timeout

    def next_replica(self, server: Server) -> None:
        """Choose another replica behind a gateway for the next attempt: no replica gets two attempts in a row."""
        self.replica = (server.first_replica(self.message) if self.replica is None else self.replica) + 1


class Servers:
    """Equivalent servers that share an API key.

    Args:
        urls: base URLs of the servers.
        api_key: bearer token for all servers; empty for none.
        find_service: returns what sends requests to a URL.
        ceiling: maximum number of requests in flight to one server.
        max_retries: maximum number of retries of a request after invalid replies.
        find_location: returns the current URLs and key of a service that may move; None for fixed URLs.
        refused_timeout: maximum seconds to wait while connections are refused; ignored if the service may move.
    """

    def __init__(
        self,
        urls: Sequence[str],
        api_key: str,
        find_service: Callable[[str], Service],
        ceiling: int,
        max_retries: int,
        find_location: Callable[[], Location] | None = None,
        refused_timeout: float = math.inf,
    ) -> None:
        self.last_progress = 0.0
        self._find_service, self._ceiling, self._max_retries = find_service, ceiling, max_retries
        self._find_location, self._checked_at = find_location, time.monotonic()
        self._refused_timeout = refused_timeout if find_location is None else math.inf
        self._location: Location = tuple(urls), api_key
        self._servers = [self._new_server(url, api_key) for url in urls]
        self._retired: list[Server] = []
        self._budget, self._latency = RetryBudget(), LatencyTracker()
        self._retries: dict[Slot, Call] = {}
        self._waiting: dict[Slot, Call] = {}
        self._silent: dict[str, Streak] = {}
        self._alarm = Alarm(self._check)
        self._probes: asyncio.Task[None] | None = None
        self._called_at = 0.0

    async def ask(self, message: Message, deadline: SharedDeadline) -> Any:
        """Send a message, with retries, and return its result.

        Args:
            message: the message to send.
            deadline: the deadline, which all callers of the request share.

        Raises:
            DeadlineError: no valid answer came in time; the message has the last error.
            UnreachableError: the service has been down or silent for about the timeout of the call, or has refused
                connections for `refused_timeout`.
            OverloadError: the request was sent as a trial to a service that refused all requests, and was refused.
            RejectedError: the service rejected the request.
            ReplyError: the reply is invalid, and no retry is left.
            BudgetError: `message.admit` does not allow an attempt.
        """
        self._budget.earn()
        deadline.set_service(self)
        self._check_location()
        call = Call(message, deadline, AttemptTimeout(deadline, time.monotonic()))
        call.is_trial = bool(self._silent) and self._starts_trial(call)
        while True:
            server = await self._choose(call)
            try:
                return await self._attempt(server, call, is_hedged=message.may_be_repeated or len(self._servers) > 1)
            except (OverloadError, UnreachableError, RejectedError, ReplyError) as error:
                call.record(server, error)
                failed = error
            finally:
                self._release(server)
            await self._wait(call, server, failed)
            self._check_location()

    async def _choose(self, call: Call) -> Server:
        """Wait for a slot and return its server, with the slot reserved for the call.

        Raises:
            ServiceError: the call is hopeless.
        """
        while True:
            if self._seconds_left(call) <= 0:
                await self._give_up(call)
            server = None if self._waiting or self._retries else self._reserve(call)
            if server is None:
                server = await self._queue(call)
            if server is not None:
                try:
                    self._start(call, server)
                except ServiceError:
                    self._release(server)
                    raise
                return server

    def _start(self, call: Call, server: Server) -> None:
        """Restart the timeout of a call that has a slot; raise if it comes too late, or has no budget for its retry.

        Only an answer restarts the timeout of a retry. A slot that a failure has freed does not: otherwise, each batch
        of requests would wait for a whole timeout while the service answers nothing.
        """
        if call.error is None:
            call.deadline.restart()
        if call.timeout.since < self.last_progress:
            call.timeout = call.deadline.start_attempt()
        if self._silent and self._is_silent(call) and call.has_little_time:
            raise self._timeout_error(call)
        if call.needs_trial and call.error and Fault.INVALID in server.health.streaks and not self._budget.spend():
            raise call.error

    def _reserve(self, call: Call) -> Server | None:
        """Reserve a slot at the least loaded server and return the server; None if no server has a free slot."""
        servers: Sequence[Server] = self._servers
        if call.error is not None:
            servers = [one for one in servers if one not in call.excluded]
            if call.needs_trial:
                servers = [one for one in servers if one not in call.faulty or one.health.takes_retry]
            servers = [one for one in servers if one not in call.tried and one.health.is_usable] or servers
        free = [one for one in servers if one.health.admits() or one.health.grow()]
        if not free:
            return None
        server = free[0] if len(free) == 1 else min(free, key=lambda one: (one.health.in_flight, random.random()))
        server.health.in_flight += 1
        if call.needs_trial and (streak := server.health.streaks.get(Fault.INVALID)) is not None:
            streak.start_trial(timing.RETRY_PAUSE, math.inf)
        return server

    def _release(self, server: Server) -> None:
        server.health.in_flight -= 1
        if self._waiting or self._retries:
            self._assign_slots()

    async def _queue(self, call: Call) -> Server | None:
        """Wait for a slot and return its server; None if the call has to check whether to keep waiting."""
        slot: Slot = asyncio.get_running_loop().create_future()
        waiters = self._waiting if call.error is None else self._retries
        waiters[slot] = call
        call.deadline.enter_queue(self)
        try:
            if self._retries or len(self._waiting) == 1:
                self._assign_slots()
            self._alarm.set(self._seconds_left(call))
            return await slot
        except asyncio.CancelledError:
            if not slot.cancelled() and (server := slot.result()) is not None:
                self._release(server)
            raise
        finally:
            waiters.pop(slot, None)
            call.deadline.leave_queue(self)

    def _assign_slots(self) -> None:
        """Assign free slots to waiters, retries first; if some still wait, check again when a server admits more."""
        without_slot: set[tuple[object, ...]] = set()
        for slot, call in [*self._retries.items()]:
            key = call.tried, call.excluded, call.needs_trial
            if key not in without_slot and not self._assign(slot, call):
                without_slot.add(key)
        while self._waiting and self._assign(*next(iter(self._waiting.items()))):
            pass
        if self._waiting or self._retries:
            now = time.monotonic()
            moments = [moment for server in self._servers for moment in server.health.next_changes if moment > now]
            self._alarm.set(min([now + CHECK_INTERVAL, *moments]) - now)

    def _assign(self, slot: Slot, call: Call) -> bool:
        """Assign a slot to a waiter; return False if the waiter stays in the queue, because no slot is free."""
        if not slot.done():
            if (server := self._reserve(call)) is None:
                return False
            slot.set_result(server)
        (self._waiting if call.error is None else self._retries).pop(slot, None)
        return True

    def _wake(self, slots: Sequence[Slot]) -> None:
        """Wake waiters without giving them slots, so that each checks whether to keep waiting."""
        for slot in slots:
            if not slot.done():
                slot.set_result(None)

    def _check(self) -> None:
        """Do what is due: give up or assign slots, interrupt or hedge attempts, probe silent servers, log failures."""
        waits: list[float] = []
        if self._waiting or self._retries:
            with suppress(ValueError):  # a SettingsError, which the next request raises
                self._check_location()
            left = {slot: self._seconds_left(call) for slot, call in (*self._retries.items(), *self._waiting.items())}
            self._wake([slot for slot, seconds in left.items() if seconds <= 0])
            self._assign_slots()
            waits += [seconds for seconds in left.values() if seconds > 0]
        for server in (*self._servers, *self._retired):
            waits += [self._check_attempt(server, attempt) for attempt in list(server.attempts)]
            waits += [self._check_silence(server), self._check_log(server)]
        self._alarm.set(min(waits, default=math.inf))

    def _seconds_left(self, call: Call) -> float:
        """Return the estimated seconds until a queued call gives up; 0 or less if it is hopeless."""
        servers: Sequence[Server] = self._servers
        if call.excluded:
            servers = [server for server in servers if server not in call.excluded]
        left = min(call.deadline.remaining(), self._outage_left(servers, call.deadline))
        if call.needs_trial and all(server in call.faulty for server in servers):
            left = min(left, max((server.health.final_at for server in servers), default=0.0) - time.monotonic())
        return left

    def _outage_left(self, servers: Sequence[Server], deadline: SharedDeadline) -> float:
        """Return how many seconds a call still waits for these servers.

        Returns:
            0 or less if the call has to fail fast; infinity if one of the servers is not down.
        """
        latest = -math.inf
        for server in servers:
            since = server.health.down_since
            if since == math.inf:
                return math.inf
            refused_timeout = min(deadline.timeout, self._refused_timeout)
            latest = max(latest, min(since + deadline.timeout, server.health.refused_since + refused_timeout))
        return latest - time.monotonic()

    async def _give_up(self, call: Call) -> None:
        """Raise the error of a hopeless call; return if a probe finds that the service has recovered.

        If the last failure of a service that is down is outdated, wait for the probe, for up to `PROBE_TIMEOUT`.
        """
        remaining = call.deadline.remaining()
        if remaining <= 0:
            raise self._timeout_error(call)
        if self._outage_left(self._servers, call.deadline) > 0 and call.error is not None:
            raise call.error
        probes = self._probe()
        if time.monotonic() > max(server.health.failed_at for server in self._servers) + timing.OUTDATED_AFTER:
            await asyncio.wait((probes,), timeout=min(timing.PROBE_TIMEOUT, remaining))
        if self._seconds_left(call) > 0:
            return
        cause, known_cause = self.cause(), self.known_cause()
        self._wake([*self._retries, *self._waiting])
        down = time.monotonic() - max(server.health.down_since for server in self._servers)
        raise UnreachableError(
            f"{cause}; unavailable for {down:.1f} s, failing fast until a health probe succeeds",
            cause=known_cause,
        )

    def _is_silent(self, call: Call) -> bool:
        """Return whether a service that is up left such calls unanswered for `MIN_SHARE` of the call's timeout."""
        streak = self._silent.get(call.message.method)
        if streak is None or all(Fault.DOWN in server.health.streaks for server in self._servers):
            return False
        return streak.last - streak.since >= timing.MIN_SHARE * call.deadline.effective_timeout

    def _starts_trial(self, call: Call) -> bool:
        """Return whether a call is sent to test whether a silent service has recovered; False if it is not silent.

        Raises:
            UnreachableError: the service is silent, and another test is running, or the next one is not due.
        """
        if not self._is_silent(call):
            return False
        method, now = call.message.method, time.monotonic()
        streak = self._silent[method]
        if streak.probe is None and now >= streak.next_trial_at:
            streak.start_trial(timing.EJECTION_FIRST, timing.EJECTION_MAX)
            streak.next_trial_at += call.deadline.effective_timeout
            return True
        self._probe()
        what = f"no {method} succeeded for {streak.last - streak.since:.1f} s, failing fast until a request succeeds"
        raise UnreachableError(f"{streak.cause}; {what}", cause=Cause.TIMEOUT)

    def _record_silence(self, message: Message, sent_at: float, cause: str) -> None:
        """Record that a request sent at `sent_at` was left unanswered, or refused, for its whole timeout."""
        now, method = time.monotonic(), message.method
        streak = self._silent.get(method)
        if streak is None or sent_at > streak.last + timing.MAX_GAP:
            streak = self._silent[method] = Streak(sent_at, now, now)
        streak.since, streak.last, streak.cause = min(streak.since, sent_at), now, cause
        streak.probe = message.probe_message or (message if message.is_cheap else None)
        self._probe()

    def _timeout_error(self, call: Call) -> DeadlineError:
        """Return the error about a request that was not answered in time."""
        for server in self._servers:
            if call.error is not None and isinstance(server.health.error, OverloadError):
                self._record_silence(call.message, call.timeout.since, server.health.describe_failure())
        cause = self.cause()
        if call.error is not None and cause == NOTHING_SENT:
            cause = str(call.error)
        last = "" if call.error is None or str(call.error) in cause else f"{call.error}; "
        known_cause = self.known_cause() if call.error is None else call.error.cause
        return DeadlineError(f"no answer in time; last known state: {last}{cause}", cause=known_cause)

    async def _attempt(self, server: Server, call: Call, *, is_hedged: bool) -> Any:
        """Send a call to a server with a reserved slot; return the result, which may be the hedge's."""
        message = call.message
        try:
            if server.health.pauses and (probe := message.probe_message) is not None:
                with suppress(RejectedError, ReplyError):  # the server is up
                    await self._send(server, call, probe, None)
            if message.admit is not None:
                await message.admit()
            result = await self._send(server, call, message, partial(self._hedge, server, call) if is_hedged else None)
        except RejectedError:
            self.last_progress = time.monotonic()
            raise
        self.last_progress = time.monotonic()
        for other, error in call.faulty.items():
            if other is not server and isinstance(error, RejectedError):  # key, path or model is wrong there
                other.health.fail(Fault.MISPLACED, error, self.last_progress, ejects=self._may_eject(other))
        return result

    async def _send(self, server: Server, call: Call, message: Message, start_hedge: Callable[[], Any] | None) -> Any:
        """Return the result of one attempt, or of its hedge; record in the server's health what is learnt."""
        attempt = Attempt(message, call.timeout, start_hedge)
        first_check = timing.PROBE_AFTER if start_hedge is None else min(timing.PROBE_AFTER, timing.MIN_STUCK)
        left = call.timeout.remaining()
        self._alarm.set(min(first_check, left))
        replica = {REPLICA: replica_key(call.replica)} if call.replica is not None and server.balancing else None
        try:
            result = await server.send(attempt, left, replica)
        except asyncio.CancelledError:
            result = attempt.result()
            self._record_lost_race(server, attempt)
            return result
        except ServiceError as error:
            attempt.end()  # a later interruption would look like the caller's cancellation
            self._learn(server, call, error, attempt.sent_at)
            raise
        finally:
            attempt.end()
        self._latency.record_answer(message.path, attempt.sent_at)
        server.succeed()
        if self._silent:
            self._silent.pop(message.method, None)
        return result

    def _learn(self, server: Server, call: Call, error: ServiceError, sent_at: float) -> None:
        """Record the fault that an error shows; key, path and model may be the request's fault (`_attempt`)."""
        fault = fault_of(error)
        if fault not in TEMPORARY:
            self._silent.pop(call.message.method, None)
        if fault is Fault.REJECTED:
            server.succeed()
        elif fault is not Fault.MISPLACED and not self._is_replicas_fault(server, call, error):
            server.health.fail(fault, error, sent_at, ejects=self._may_eject(server))
            self._alarm.set(self._check_log(server))

    def _is_replicas_fault(self, server: Server, call: Call, error: ServiceError) -> bool:
        """Return whether a single replica behind our gateway is at fault, so that another one may accept the call."""
        is_replicas = fault_of(error) in (Fault.INVALID, Fault.MISPLACED) or (
            isinstance(error, OverloadError) and error.status in REPLICA_STATUSES
        )
        return is_replicas and bool(server.balancing) and call.rounds < self._max_retries

    def _may_eject(self, server: Server) -> bool:
        """Return whether at least half of all servers stay available if this server is skipped."""
        unavailable = sum(not other.health.is_usable for other in self._servers if other is not server)
        return 2 * (unavailable + 1) <= len(self._servers)

    def _record_lost_race(self, server: Server, attempt: Attempt) -> None:
        """Record that another server answered the hedge first."""
        if self._may_eject(server):
            seconds = time.monotonic() - attempt.sent_at
            why = f"no answer within {seconds:.1f} s, but another endpoint answered"
            error = UnreachableError(f"{server.shown_url}: {why}", cause=Cause.TIMEOUT)
            server.hang(error, attempt.sent_at, ejects=True, is_sure=False)
            self._alarm.set(self._check_log(server))

    async def _wait(self, call: Call, server: Server, error: ServiceError) -> None:
        """Wait until a failed call may be sent again; return immediately if another server is available.

        Raises:
            ServiceError: the error, if it is final.
        """
        if fault_of(error) is Fault.REJECTED or (call.is_trial and isinstance(error, OverloadError)):
            raise error
        if any(one.health.is_usable for one in self._servers if one not in call.tried):
            return
        call.tried = frozenset()
        left = call.deadline.remaining()
        if isinstance(error, OverloadError) and error.retry_after > left:
            why = f"{error}; Retry-After of {error.retry_after:.0f} s is beyond the deadline"
            raise DeadlineError(why, cause=error.cause) from error
        pause = self._pause(call, server, error)
        call.rounds += 1
        if pause is not None and pause < left:
            await asyncio.sleep(pause)
            return
        call.excluded, call.needs_trial = frozenset(call.faulty), False
        if self._seconds_left(call) <= 0:
            raise error

    def _pause(self, call: Call, server: Server, error: ServiceError) -> float | None:
        """Return the seconds until a call may be retried if no other server is left; None if its error is final."""
        fault, message = fault_of(error), call.message
        if fault is Fault.MISPLACED:
            server.health.count(Fault.INVALID)
        if (fault is Fault.MISPLACED and message.is_optional) or (fault is Fault.INVALID and message.no_retry):
            return None
        if self._is_replicas_fault(server, call, error):
            call.next_replica(server)
            return backoff(timing.RETRY_PAUSE, math.inf, call.rounds - 1) if call.rounds else 0.0
        if fault in (Fault.DOWN, Fault.BUSY):
            return 0.0  # the limits control the pace, and an outage ends the call
        if fault is Fault.LATE:
            return backoff(timing.BACKOFF_FIRST, timing.BACKOFF_MAX, call.rounds)
        if call.rounds >= self._max_retries or time.monotonic() > server.health.final_at:
            return None
        if isinstance(error, RejectedError):  # the model may still be loading
            return timing.LOADING_PAUSE if error.status == NOT_FOUND and not call.rounds else None
        call.needs_trial = True
        return backoff(timing.RETRY_PAUSE, math.inf, call.rounds)

    def _check_attempt(self, server: Server, attempt: Attempt) -> float:
        """Interrupt an attempt after its timeout; hedge it if it is stuck. Return the seconds until the next check."""
        left, message, deadline = attempt.timeout.remaining(), attempt.message, attempt.timeout.deadline
        if left <= 0 and not attempt.is_done:
            cause = server.timeout_cause = server.cause()
            self._record_silence(message, attempt.sent_at, cause)
            why = f"no answer within {round(deadline.effective_timeout, 2):g} s; {cause}"
            attempt.interrupt(DeadlineError(why, cause=server.known_cause()))
        if attempt.is_done:
            return math.inf
        if attempt.start_hedge is None:
            return left
        default = timing.MIN_STUCK if message.is_cheap else min(timing.FIRST_STUCK, deadline.timeout / 2)
        # Each hedge waits twice as long as the one before: the service may be slow rather than stuck.
        stuck_at = attempt.hedged_at + 2**attempt.hedges * self._latency.stuck_after(message.path, default)
        if (stuck_in := stuck_at - time.monotonic()) > 0:
            return min(left, stuck_in)
        # A hedge to a single server would wait behind the same requests, unless only this one or its reply is lost.
        helps = len(self._servers) > 1 or server.balancing or self._latency.has_answered_since(attempt.hedged_at)
        if (helps or (message.is_cheap and server.alive_at > attempt.hedged_at)) and attempt.hedge():
            return min(left, timing.MIN_STUCK)
        return min(left, timing.RECHECK_INTERVAL)

    def _hedge(self, stuck: Server, call: Call) -> asyncio.Task[Any] | None:
        """Send a stuck request again to the least loaded server, and return the task of this hedge.

        Return None if no server has a free slot, or the retry budget is empty.

        Up to `MAX_EXCESS_HEDGES` hedges may exceed a server's limit. A hedge may be the trial request of a server whose
        pause is over, because there may be no other request for the trial.
        """
        others = [
            one for one in self._servers if one is not stuck and (one.health.is_usable or one.health.is_trial_due)
        ]
        goes_to_same = call.message.may_be_repeated and stuck.health.is_usable
        default = stuck if goes_to_same and (len(self._servers) == 1 or stuck.balancing) else None
        server = min(others, key=lambda one: one.health.in_flight - one.health.limit, default=default)
        if server is None or server.health.in_flight >= server.health.limit + timing.MAX_EXCESS_HEDGES:
            return None
        if not self._budget.spend(timing.HEDGE_INTERVAL):
            return None
        if server.balancing == "affinity":  # otherwise, the replica with the fewest connections is not the stuck one
            call.next_replica(server)
        server.health.in_flight += 1
        hedge = asyncio.create_task(self._attempt(server, call, is_hedged=False))
        hedge.add_done_callback(partial(self._end_hedge, server))  # it may be cancelled before it starts
        return hedge

    def _end_hedge(self, server: Server, hedge: asyncio.Task[Any]) -> None:
        self._release(server)
        if not hedge.cancelled() and hedge.exception() is None:
            self._budget.earn(1.0)

    def _check_silence(self, server: Server) -> float:
        """Probe a server that has been silent for `PROBE_AFTER` seconds; return the seconds until the next check."""
        if not (server.attempts or server.is_unanswered):
            return math.inf
        due_in = server.answered_at + timing.PROBE_AFTER - time.monotonic()
        if due_in <= 0 and (server.probing is None or server.probing.done()):
            server.probing = asyncio.create_task(self._probe_silent(server))
        return due_in if due_in > 0 else timing.PROBE_AFTER

    async def _probe_silent(self, server: Server) -> None:
        """Send GET /health to a silent server; if that is not answered either, the server hangs."""
        probed_at, since, server.is_unanswered = time.monotonic(), server.answered_at, False
        error = await server.ask(HEALTH, timing.HEALTH_TIMEOUT)
        if server.answered_at > probed_at:
            return
        if isinstance(error, UnreachableError):
            hang = f"{server.shown_url}: accepts connections but does not answer, not even GET /health"
            error = UnreachableError(hang, cause=Cause.TIMEOUT)
            server.hang(error, since, ejects=self._may_eject(server), is_sure=True)
            self._alarm.set(self._check_log(server))
        else:
            server.answered_at = server.alive_at = time.monotonic()

    def _probe(self) -> asyncio.Task[None]:
        """Probe in the background until the servers have recovered, or no call came for `PROBING_TIMEOUT`."""
        self._called_at = time.monotonic()
        if self._probes is None or self._probes.done():
            self._probes = asyncio.create_task(self._probe_unavailable())
        return self._probes

    def _due_probes(self) -> list[tuple[Server, Message]]:
        """Return GET /health for each server that is down, and for the others what is cheap and is left unanswered."""
        probes = [streak.probe for streak in self._silent.values() if streak.probe is not None]
        is_down = {server: Fault.DOWN in server.health.streaks for server in self._servers}
        return [(one, probe) for one in self._servers for probe in ([HEALTH] if is_down[one] else probes)]

    async def _probe_unavailable(self) -> None:
        shortest, longest = timing.PROBE_PAUSES
        while (probes := self._due_probes()) and time.monotonic() <= self._called_at + timing.PROBING_TIMEOUT:
            began = time.monotonic()
            await asyncio.gather(*(self._test(*probe) for probe in probes), return_exceptions=True)
            self._assign_slots()
            if not self._due_probes():
                return
            is_down = any(probe is HEALTH for _, probe in probes)
            pause = max(shortest, timing.PROBE_FACTOR * (time.monotonic() - began)) if is_down else longest
            await asyncio.sleep(min(pause, longest))

    async def _test(self, server: Server, probe: Message) -> None:
        """Send a probe, and record whether the server has recovered."""
        error = await server.ask(probe, timing.PROBE_TIMEOUT)
        if probe is not HEALTH:
            if error is None or fault_of(error) not in TEMPORARY:
                self._silent.pop(probe.method, None)
        elif error is None or fault_of(error) is not Fault.DOWN:
            server.health.recover()
            self._silent.clear()  # the service was down, not silent
        elif type(error) is type(server.health.error):  # keep the earlier error, which says more
            server.health.failed_at = time.monotonic()
        else:
            server.health.blame(error)

    def _new_server(self, url: str, api_key: str) -> Server:
        moves = self._find_location is not None
        return Server(url, authorization(api_key), self._find_service(url), self._ceiling, moves=moves)

    def update_location(self) -> None:
        """Switch to the service's current URLs and key.

        Queued requests go to the new URLs. Requests in flight do so only if they fail.

        Raises:
            SettingsError: the proxy that environment variables set for a new URL is not an HTTP proxy.
        """
        self._checked_at = time.monotonic()
        location = self._location if self._find_location is None else self._find_location()
        urls, api_key = location
        if location == self._location or not urls:
            return
        kept = {server.url: server for server in self._servers if api_key == self._location[1]}
        previous = (*self._retired, *self._servers)
        self._servers = [kept.get(url) or self._new_server(url, api_key) for url in urls]
        self._retired = [one for one in previous if one.health.in_flight and one not in self._servers]
        self._location = location
        self.last_progress = self._checked_at  # restart the timeout of all waiters
        self._assign_slots()

    def _check_location(self) -> None:
        """Call `update_location` if it was not called within the last `CHECK_INTERVAL` seconds."""
        if self._find_location is not None and time.monotonic() >= self._checked_at + CHECK_INTERVAL:
            self.update_location()

    def cause(self) -> str:
        """Return the known state of each server, and the number of queued requests."""
        causes = [cause for server in (*self._servers, *self._retired) if (cause := server.cause())]
        if (queued := len(self._waiting) + len(self._retries)) > 1:
            causes.append(f"{queued} requests are queued")
        return "; ".join(causes) or NOTHING_SENT

    def known_cause(self) -> Cause:
        """Return the cause of the first server's failure that is known; `TIMEOUT` if none is."""
        causes = (server.known_cause() for server in (*self._servers, *self._retired))
        return next((cause for cause in causes if cause is not Cause.TIMEOUT), Cause.TIMEOUT)

    def _check_log(self, server: Server) -> float:
        """Log a failure that lasts while a caller waits; return the seconds until the next check."""
        health, seconds = server.health, time.monotonic() - server.health.failing_since
        if health.error is None or health.is_logged:
            return math.inf
        if seconds < timing.LOG_AFTER:
            return timing.LOG_AFTER - seconds
        if wait := self._describe_wait():
            health.is_logged = True
            log.warning("%s; unavailable for %.0f s, retrying %s", health.describe_failure(), seconds, wait)
        return math.inf

    def _describe_wait(self) -> str:
        """Return the longest time that callers still wait, e.g. "for up to 30 s"; empty if no caller waits."""
        attempts = [attempt for server in (*self._servers, *self._retired) for attempt in server.attempts]
        deadlines = [attempt.timeout.deadline for attempt in attempts]
        deadlines += [call.deadline for call in (*self._waiting.values(), *self._retries.values())]
        left = [min(one.remaining(), self._outage_left(self._servers, one)) for one in deadlines]
        return f"for up to {max(1, math.ceil(max(left)))} s" if left else ""

    def lower_limit(self, requests: int) -> None:
        """Lower each server's limit to `requests`, the capacity that a server reports.

        Successes raise the limit again: a server may be a gateway with several such servers behind it.
        """
        for server in self._servers:
            server.health.lower_limit(requests)

    def close(self) -> None:
        """Stop the timers and background tasks; requests in flight are not ended."""
        self._alarm.cancel()
        for task in (self._probes, *(server.probing for server in (*self._servers, *self._retired))):
            if task is not None:
                task.cancel()
