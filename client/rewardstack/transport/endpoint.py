"""One URL of a service: sends requests, and tracks the state of the endpoint.

The state is the concurrency limit (`Limiter`), the current failure (`EndpointFailure`), invalid replies
(`ReplyFaults`), stalls (`Stall`), the replicas behind a gateway (`Replicas`) and the recent latency
(`LatencyTracker`).

A liveness probe tests a server that accepts requests but does not answer. A request that takes far longer than recent
requests is hedged: it is sent again, and the first answer counts.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from rewardstack.core.deadline import HEADER, AttemptTimeout, SharedDeadline
from rewardstack.core.event_loop import run_with_timeout
from rewardstack.endpoints import VARIABLE
from rewardstack.errors import (
    DeadlineError,
    OverloadError,
    RefusedError,
    RejectedError,
    ReplyError,
    ServiceError,
    UnreachableError,
)
from rewardstack.transport import timing
from rewardstack.transport.http import display_url, send
from rewardstack.transport.limiter import Limiter
from rewardstack.transport.message import HEALTH, LIMITING, REPLICA_STATUSES, Message, is_down, parse_reply
from rewardstack.transport.outage import Stall
from rewardstack.transport.ray_actor import is_actor
from rewardstack.transport.reply_faults import Replicas, ReplyFaults

UNAUTHORIZED = 401
"""HTTP status for an unknown API key."""

SendHedge = Callable[[], "asyncio.Task[Any] | None"]
"""Sends a request again in a task; returns None if no endpoint has a free slot, or the retry budget is empty."""

log = logging.getLogger(__name__)


class LatencyTracker:
    """Tracks the recent latency of a service for each URL path: a completion takes longer than a list of models."""

    def __init__(self) -> None:
        self._slowest: dict[str, float] = {}
        self._answered_at = 0.0

    def record_answer(self, path: str, sent_at: float) -> None:
        """Record an answer to a request that was sent at `sent_at`, on `time.monotonic()`."""
        self._answered_at = time.monotonic()
        self._slowest[path] = max(self._answered_at - sent_at, self._slowest.get(path, 0.0) * timing.LATENCY_DECAY)

    def has_answered_since(self, moment: float) -> bool:
        """Return whether an answer came after `moment`, on `time.monotonic()`."""
        return self._answered_at > moment

    def stuck_after(self, path: str, default: float) -> float:
        """Return the seconds after which a request counts as stuck.

        Args:
            path: path of the request.
            default: the result if no request with this path was answered yet.
        """
        slowest = self._slowest.get(path)
        return max(timing.MIN_STUCK, default if slowest is None else timing.STUCK_FACTOR * slowest)


class Attempt:
    """An attempt to send a request.

    The attempt runs in the caller's task, because a task per attempt would double the overhead of a request. It cancels
    this task on a timeout, when the endpoint hangs, or when the hedge is answered first. The caller then gets the
    outcome from `hedge_result`, which returns or raises it.

    Args:
        endpoint: the endpoint that receives the request.
        message: the request.
        timeout: the timeout, which all callers of the request share.
        send_hedge: sends the request again; None to disable hedging.

    Attributes:
        hedged_at: when the request was last sent, on `time.monotonic()`.
        hedges: how often the request was hedged.
    """

    __slots__ = (
        "_endpoint",
        "_error",
        "_hedge_task",
        "_is_done",
        "_result",
        "_send_hedge",
        "_task",
        "_timeout",
        "hedged_at",
        "hedges",
        "message",
        "sent_at",
    )

    def __init__(
        self,
        endpoint: Endpoint,
        message: Message,
        timeout: AttemptTimeout,
        send_hedge: SendHedge | None,
    ) -> None:
        self.message = message
        self.sent_at = self.hedged_at = time.monotonic()
        self._endpoint = endpoint
        self._error: ServiceError | None = None
        self._result: Any = None
        self._is_done = False
        self._timeout = timeout
        self._send_hedge = send_hedge
        self._hedge_task: asyncio.Task[Any] | None = None
        self.hedges = 0
        self._task = asyncio.current_task()

    @property
    def deadline(self) -> SharedDeadline:
        """The deadline of the request, which all its callers share."""
        return self._timeout.deadline

    def check(self) -> float:
        """Interrupt the attempt after its timeout; hedge it if it is stuck. Return the seconds until the next check."""
        if self._is_done:
            return timing.RECHECK_INTERVAL
        seconds_left = self._timeout.remaining()
        if seconds_left <= 0:
            timeout = round(self._timeout.deadline.effective_timeout, 2)
            self.interrupt(DeadlineError(f"no answer within {timeout:g} s; {self._endpoint.record_timeout(self)}"))
            return timing.RECHECK_INTERVAL
        if self._send_hedge is None:
            return seconds_left
        first_stuck = (
            timing.MIN_STUCK if self.message.is_cheap else min(timing.FIRST_STUCK, self._timeout.deadline.timeout / 2)
        )
        stuck_in = self._endpoint.seconds_until_stuck(self, first_stuck)
        if stuck_in > 0:
            return min(seconds_left, stuck_in)
        hedge = self._send_hedge()
        if hedge is None:
            return min(seconds_left, timing.RECHECK_INTERVAL)
        if self._hedge_task is not None:  # the earlier hedge may have reached a server that hangs, too
            self._hedge_task.cancel()
        self._hedge_task, self.hedged_at = hedge, time.monotonic()
        self.hedges += 1
        hedge.add_done_callback(self._on_hedge_done)
        return min(seconds_left, timing.MIN_STUCK)

    def _on_hedge_done(self, hedge: asyncio.Task[Any]) -> None:
        if hedge.cancelled() or hedge.exception() is not None:
            return
        if self._hedge_task is not None and not self._is_done:
            self._result = hedge.result()
            self._cancel()

    def interrupt(self, error: ServiceError) -> None:
        """Cancel the attempt and make `error` its outcome, unless it has ended already."""
        if not self._is_done:
            self._error = error
            self._cancel()

    def _cancel(self) -> None:
        self._is_done = True
        if self._task is not None:
            self._task.cancel()

    def hedge_result(self) -> Any:
        """Return the hedge's result, after the current task was cancelled.

        Raises:
            ServiceError: the attempt was interrupted with this error.
            CancelledError: the caller cancelled the task.
        """
        if not self._is_done:
            raise asyncio.CancelledError
        if self._task is not None and sys.version_info >= (3, 11) and self._task.uncancel() > 0:
            raise asyncio.CancelledError
        if self._error is not None:
            raise self._error from None
        return self._result

    def end(self) -> None:
        """Mark the attempt as ended and cancel its hedge."""
        self._is_done = True
        hedge, self._hedge_task = self._hedge_task, None
        if hedge is not None:
            hedge.cancel()


class EndpointFailure:
    """A failure of an endpoint, from the first error to the next answer.

    It is logged if it lasts longer than `LOG_AFTER` seconds while a caller waits for the service.

    Times are on `time.monotonic()`.

    Attributes:
        error: the last error; None while the endpoint works.
        down_since: start of the current series of lost connections, hangs and gateway errors; infinity for none.
        refusing_since: start of the current series of refused connections; infinity for none.
        last_error_at: time of the last error.

    Args:
        describe_wait: returns the longest time that callers still wait ("for up to 30 s"); empty if no caller waits.
    """

    def __init__(self, describe_wait: Callable[[], str]) -> None:
        self.error: ServiceError | None = None
        self.down_since = self.refusing_since = math.inf
        self.last_error_at = -math.inf
        self._describe_wait = describe_wait
        self._since = 0.0
        self._refusals = 0
        self._is_logged = False
        self._timer: asyncio.TimerHandle | None = None

    def __str__(self) -> str:
        """Return the last error and, if it is an overload, how often it occurred."""
        times = f" ({self._refusals} times)" if self._refusals > 1 and isinstance(self.error, OverloadError) else ""
        return f"{self.error}{times}"

    def record(self, error: ServiceError, since: float | None = None) -> None:
        """Record an error.

        Args:
            error: the error.
            since: when the endpoint began to fail, on `time.monotonic()`; None for now.
        """
        now = self.last_error_at = time.monotonic()
        began = now if since is None else since
        if self.error is None:
            self._since, self._refusals, self._is_logged = began, 0, False
        self.down_since = min(self.down_since, began) if is_down(error) else math.inf
        self.refusing_since = min(self.refusing_since, began) if isinstance(error, RefusedError) else math.inf
        self.error = error
        self._refusals += isinstance(error, OverloadError)
        if not self._is_logged and self._timer is None:
            left = max(0.0, self._since + timing.LOG_AFTER - now)
            self._timer = asyncio.get_running_loop().call_later(left, self._log)

    def reset(self) -> None:
        """End the failure, because the endpoint has answered."""
        if self.error is None:
            return
        self.error = None
        self.down_since = self.refusing_since = math.inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _log(self) -> None:
        """Log the failure if a caller waits for the service."""
        self._timer = None
        if self.error is not None and (wait := self._describe_wait()):
            self._is_logged = True
            log.warning("%s; unavailable for %.0f s, retrying %s", self, time.monotonic() - self._since, wait)


class Endpoint:
    """One of a service's URLs.

    Args:
        url: base URL.
        headers: HTTP headers of every request.
        ceiling: maximum number of requests in flight.
        session: HTTP session.
        latency: latency tracker, which all endpoints of the service share.
        describe_wait: returns the longest time that callers still wait ("for up to 30 s"); empty if no caller waits.
        may_eject: returns whether an endpoint may be ejected (taken out of use), because enough others are available.
        has_others: returns whether the service has other endpoints.
        on_stall: called when a request times out, to start probes.
        moves: whether the service may move to another address. Then a server that rejects the key counts as
            unreachable, because it may belong to another job that now uses the old address.

    Raises:
        SettingsError: the proxy that environment variables set for the URL is not an HTTP proxy.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        ceiling: int,
        session: aiohttp.ClientSession,
        latency: LatencyTracker,
        describe_wait: Callable[[], str],
        may_eject: Callable[[Endpoint], bool],
        has_others: Callable[[], bool],
        on_stall: Callable[[], None],
        *,
        moves: bool = False,
    ) -> None:
        self.url = url
        self.limiter = Limiter(ceiling)
        self.failure = EndpointFailure(describe_wait)
        self.reply_faults = ReplyFaults()
        self.replicas = Replicas()
        self.stalls = {"GET": Stall(), "POST": Stall()}
        self.in_flight = 0
        self._shown_url = display_url(url)
        self._may_eject = may_eject
        self._has_others = has_others
        self._on_stall = on_stall
        self._moves = moves
        self._headers = headers
        self._session = session
        self._latency = latency
        self._attempts: dict[Attempt, None] = {}
        self._was_unanswered = self._is_hanging = False
        self._answered_at = 0.0
        self._alive_at = 0.0
        self._timeout_cause = ""
        self._silence_task: asyncio.Task[None] | None = None
        self._check_timer: asyncio.TimerHandle | None = None
        self._gateway_check: asyncio.Task[bool] | None = None

    def cause(self) -> str:
        """Return the current failure, and how long requests have waited for an answer.

        If there is neither, return why the last request timed out; empty if a request has succeeded since.
        """
        causes = [str(self.failure)] if self.failure.error is not None else []
        if self._attempts:
            causes.append(self._describe_silence())
        return "; ".join(causes) or self._timeout_cause

    def _describe_silence(self) -> str:
        since = next(iter(self._attempts)).sent_at
        count, seconds = len(self._attempts), time.monotonic() - since
        requests = f"{count} request{'s' if count > 1 else ''} of this process"
        if self._alive_at >= since:
            return f"{self._shown_url} is up and is working on {requests}, the oldest sent {seconds:.1f} s ago"
        accepted = "accepted the connection and has" if seconds > timing.CONNECT_TIMEOUT else "has"
        return f"{self._shown_url} {accepted} sent nothing for {seconds:.1f} s ({requests} in flight)"

    @property
    def deadlines(self) -> list[SharedDeadline]:
        """The deadlines of the requests in flight."""
        return [attempt.deadline for attempt in self._attempts]

    @property
    def is_trial_due(self) -> bool:
        """Whether the circuit is open, and a trial request may be sent now."""
        return self.limiter.is_open and self.limiter.admits(self.in_flight)

    @property
    def is_unavailable(self) -> bool:
        """Whether the endpoint is down or stalled."""
        return self.failure.down_since < math.inf or any(stall.is_active for stall in self.stalls.values())

    def record_timeout(self, attempt: Attempt) -> str:
        """Record that an attempt timed out, and return the cause, which is kept until a request succeeds."""
        self._timeout_cause = self.cause()
        message, probe_message = attempt.message, attempt.message.probe_message
        is_cheap = message.is_cheap or probe_message is not None
        self.stalls[message.method].record(
            attempt.sent_at, self._timeout_cause, probe_message or message, is_cheap=is_cheap
        )
        self._on_stall()
        return self._timeout_cause

    def record_refusals(self, message: Message, since: float) -> None:
        """Record a stall, after a request has timed out, if the current failure of the endpoint is an overload.

        Args:
            message: the request that timed out.
            since: start of the request's time limit, on `time.monotonic()`.
        """
        if isinstance(self.failure.error, OverloadError):
            self.stalls[message.method].record(since, str(self.failure), message, is_cheap=message.is_cheap)
            self._on_stall()

    async def ask(self, message: Message, timeout: AttemptTimeout, send_hedge: SendHedge | None = None) -> Any:
        """Send a message and return its result; the caller has already counted the message in `in_flight`.

        Args:
            message: the message to send.
            timeout: the timeout, which all callers of the request share.
            send_hedge: sends a stuck message again; None to disable hedging.

        Raises:
            DeadlineError: the timeout has passed.
            UnreachableError: the endpoint cannot be reached, or hangs.
            OverloadError, RejectedError, ReplyError: the error in the reply.
            BudgetError: `message.admit` does not allow the attempt.
        """
        if self.limiter.pauses:
            await self._probe_first(message.probe_message, timeout)
        if message.admit is not None:
            await message.admit()
        try:
            result, is_own = await self._send(message, timeout, send_hedge)
        except RejectedError as error:
            if not error.is_misplaced:
                self._record_success()
            raise
        if is_own:
            self._record_success()
        return result

    def _record_success(self) -> None:
        if self.failure.error is not None:
            self.failure.reset()
        if self.reply_faults.replies:
            self.reply_faults.reset()
            self.replicas.record_success("")
        self._timeout_cause = ""
        self._is_hanging = False
        self.limiter.record_success()

    async def _probe_first(self, probe_message: Message | None, timeout: AttemptTimeout) -> None:
        """Probe an endpoint that recently did not accept requests, before it gets a real request.

        Without a `probe_message`, the probe is GET /health. It is sent only to an endpoint that hangs, and never to a
        Ray actor.
        """
        if probe_message is None and (not self._is_hanging or is_actor(self.url)):
            return
        try:
            await self._send(HEALTH if probe_message is None else probe_message, timeout)
        except (RejectedError, ReplyError):
            return  # the endpoint is up; the next request shows whether it accepts real work
        except OverloadError:
            if probe_message is not None:
                raise

    async def _send(
        self, message: Message, timeout: AttemptTimeout, send_hedge: SendHedge | None = None
    ) -> tuple[Any, bool]:
        """Return the result of one attempt, and whether it came from this endpoint rather than from the hedge."""
        seconds_left = timeout.remaining()
        headers = {**self._headers, **message.headers, HEADER: str(max(1, int(seconds_left * 1000)))}
        attempt = Attempt(self, message, timeout, send_hedge)
        self._register(attempt, seconds_left if send_hedge is None else min(seconds_left, timing.MIN_STUCK))
        is_answered = is_alive = is_accepted = True
        try:
            reply = await send(self._session, message.method, self.url + message.path, message.body, headers)
            result = parse_reply(reply, message.read)
            self._latency.record_answer(message.path, attempt.sent_at)
            return result, True
        except asyncio.CancelledError:
            is_answered = is_alive = is_accepted = False
            result = attempt.hedge_result()
            self._record_lost_race(attempt)
            return result, False
        except ServiceError as error:
            error = self._without_other_server(error)
            is_alive = not isinstance(error, UnreachableError)
            is_accepted = is_alive and not isinstance(error, OverloadError)
            attempt.end()  # a later interruption would look like the caller's cancellation
            if isinstance(error, OverloadError) and error.status in REPLICA_STATUSES:
                await self.is_gateway(timeout.remaining())
            self._record_failure(error, attempt.sent_at)
            raise error
        finally:
            attempt.end()
            if is_alive:
                self._alive_at = time.monotonic()
            if is_accepted:
                self.stalls[message.method].record_answer()
            self._unregister(attempt, is_answered=is_answered)

    def _without_other_server(self, error: ServiceError) -> ServiceError:
        """Return the error, or an UnreachableError if the service may move and the server does not accept the key.

        In this case, the service has probably moved, and the server at its old address belongs to another job.
        """
        if not (self._moves and isinstance(error, RejectedError) and error.status == UNAUTHORIZED):
            return error
        moved = UnreachableError(f"{error}; the server does not accept the key in {VARIABLE}")
        moved.__cause__ = error
        return moved

    def _record_failure(self, error: ServiceError, sent_at: float) -> None:
        """Update the limiter and the failure state after a failed attempt."""
        ejects = self._may_eject(self)
        if isinstance(error, RejectedError):
            return  # the request may be at fault; see `record_wrong_rejection`
        self.failure.record(error)
        if isinstance(error, ReplyError):
            self.reply_faults.record()
            if ejects:
                self.limiter.record_failure(ejects=True)
        elif isinstance(error, OverloadError) and self.is_known_gateway and error.status in REPLICA_STATUSES:
            pass  # another replica may accept the request, so the limit stays
        elif isinstance(error, OverloadError) and (error.status in LIMITING or not error.status):
            self.limiter.record_overload(sent_at, self.in_flight - 1, error.retry_after, ejects=ejects)
        elif is_down(error):
            self.reply_faults.reset()  # `Limiter` and `Outage` handle a server that is down
            self.limiter.record_failure(ejects=ejects)

    def record_wrong_rejection(self, error: ServiceError) -> None:
        """Record that another endpoint accepted a request that this one rejected: key, path or model is wrong here."""
        self.failure.record(error)
        if self._may_eject(self):
            self.limiter.record_failure(ejects=True)

    def _record_lost_race(self, attempt: Attempt) -> None:
        """Record that another endpoint answered the hedge first.

        If this opens the circuit, interrupt all attempts that were sent before this attempt, or at most `MIN_STUCK`
        seconds after it.
        """
        if not self._may_eject(self):
            return
        seconds = time.monotonic() - attempt.sent_at
        error = UnreachableError(f"{self._shown_url}: no answer within {seconds:.1f} s, but another endpoint answered")
        self._is_hanging = True
        self.failure.record(error, attempt.sent_at)
        self.limiter.record_failure(ejects=True)
        if self.limiter.is_open:
            for other in list(self._attempts):
                if other.sent_at <= attempt.sent_at + timing.MIN_STUCK:
                    other.interrupt(error)

    def _register(self, attempt: Attempt, check_in: float) -> None:
        """Register an attempt, to check it in `check_in` seconds and to interrupt it if the endpoint hangs."""
        if not self._attempts:
            self._answered_at = time.monotonic()
        self._attempts[attempt] = None
        self._check_in(check_in)
        if self._silence_task is None or self._silence_task.done():
            self._silence_task = asyncio.create_task(self._probe_when_silent())

    def _unregister(self, attempt: Attempt, *, is_answered: bool) -> None:
        """Remove an attempt that has ended, with or without an answer."""
        del self._attempts[attempt]
        self._was_unanswered = not is_answered
        if is_answered:
            self._answered_at = time.monotonic()

    def _check_in(self, seconds: float) -> None:
        """Check all attempts in `seconds` at the latest; one timer for all attempts is cheaper than one for each."""
        loop = asyncio.get_running_loop()
        if self._check_timer is not None and self._check_timer.when() <= loop.time() + seconds:
            return
        if self._check_timer is not None:
            self._check_timer.cancel()
        self._check_timer = loop.call_later(seconds, self._check_all)

    def _check_all(self) -> None:
        self._check_timer = None
        if self._attempts:
            self._check_in(min([attempt.check() for attempt in list(self._attempts)]))

    async def _probe_when_silent(self) -> None:
        while self._attempts or self._was_unanswered:
            seconds = self._answered_at + timing.PROBE_AFTER - time.monotonic()
            if seconds > 0:
                await asyncio.sleep(seconds)
                continue
            probed_at, self._was_unanswered = time.monotonic(), False
            if (is_alive := await self._is_alive()) or self._answered_at > probed_at:
                self._answered_at = time.monotonic()
                self._alive_at = self._answered_at if is_alive else self._alive_at
                continue
            hang = UnreachableError(f"{self._shown_url}: accepts connections but does not answer, not even GET /health")
            self._is_hanging = True
            self.failure.record(hang, self._answered_at)
            self.limiter.record_failure(immediately=True, ejects=self._may_eject(self))
            for attempt in list(self._attempts):
                attempt.interrupt(hang)
            return

    async def _is_alive(self) -> bool:
        silent = UnreachableError(f"{self._shown_url}: no answer even to GET /health")
        timer = asyncio.get_running_loop().call_later(
            timing.LOG_AFTER - timing.PROBE_AFTER, self.failure.record, silent, self._answered_at
        )
        try:
            error = await self._send_probe(HEALTH, timing.HEALTH_TIMEOUT)
        finally:
            timer.cancel()
        if isinstance(error, UnreachableError):
            return False
        if self.failure.error is silent:
            self.failure.reset()
        return True

    async def probe(self, seconds: float) -> None:
        """Test whether the endpoint has recovered: send GET /health, and the probes of its stalls.

        Args:
            seconds: timeout of each probe. A stall's probe that is not cheap may take as long as the stall has lasted.
        """
        error = await self._send_probe(HEALTH, seconds)
        if error is not None and is_down(error):
            if type(error) is not type(self.failure.error):  # else keep the earlier error, which says more
                self.failure.record(error)
            self.failure.last_error_at = time.monotonic()
            for stall in self.stalls.values():
                stall.record_answer(by_probe=True)  # the endpoint is down now, not stalled
            return
        if self.failure.down_since < math.inf:
            self.failure.reset()
            self.limiter.resume()
        for stall in self.stalls.values():
            if stall.probe is not None and stall.is_probe_due:
                error = await self._send_probe(stall.probe, seconds if stall.is_cheap else stall.seconds)
                if not isinstance(error, (UnreachableError, OverloadError)):
                    stall.record_answer(by_probe=True)

    async def _send_probe(self, message: Message, seconds: float) -> ServiceError | None:
        """Send a probe and return the error; None for success. Raise BudgetError if `admit` forbids the probe."""
        headers = {**self._headers, **message.headers} if message is not HEALTH else {}
        if message.admit is not None:
            await message.admit()
        try:
            sending = send(self._session, message.method, self.url + message.path, message.body, headers)
            parse_reply(await run_with_timeout(seconds, sending), message.read)
        except asyncio.TimeoutError:
            return UnreachableError(
                f"{self._shown_url}: no answer to {message.method} {message.path} within {seconds:g} s"
            )
        except ServiceError as error:
            return error
        return None

    def seconds_until_stuck(self, attempt: Attempt, default: float) -> float:
        """Return the seconds until a request has to be checked again; 0 if it is stuck and can be hedged now.

        Each hedge waits twice as long as the one before: the service may be slow rather than stuck.

        Args:
            attempt: the request.
            default: seconds until the request is stuck, if no request with the same path was answered yet.
        """
        now, since = time.monotonic(), attempt.hedged_at
        left = since + 2**attempt.hedges * self._latency.stuck_after(attempt.message.path, default) - now
        if left > 0:
            return left
        if self._latency.has_answered_since(since) or self._has_others() or self.is_known_gateway:
            return 0.0
        if attempt.message.is_cheap and self._alive_at > since:
            return 0.0  # the server has answered a probe since then, so the request or its reply is lost
        if self._gateway_check is None:
            self._gateway_check = asyncio.create_task(self._detect_gateway())
        return timing.RECHECK_INTERVAL  # the only server: a hedge would wait behind the same requests

    @property
    def is_known_gateway(self) -> bool:
        """Whether the endpoint is known to be a gateway in front of several replicas."""
        task = self._gateway_check
        return task is not None and task.done() and not task.cancelled() and task.result()

    async def is_gateway(self, seconds: float) -> bool:
        """Return whether the endpoint is a gateway, so that a retry may reach another replica.

        Once the endpoint has answered, it is not asked again.

        Args:
            seconds: maximum seconds to wait for the answer; the result is False without an answer.
        """
        if self._gateway_check is None:
            self._gateway_check = asyncio.create_task(self._detect_gateway())
        await asyncio.wait((self._gateway_check,), timeout=max(0.0, seconds))
        return self.is_known_gateway

    async def _detect_gateway(self) -> bool:
        if is_actor(self.url):
            return False
        parts = urlsplit(self.url)
        url = f"{parts.scheme}://{parts.netloc}/gateway/health"
        try:
            reply = await run_with_timeout(timing.HEALTH_TIMEOUT, send(self._session, "GET", url, None, {}))
        except (asyncio.TimeoutError, ServiceError):
            self._gateway_check = None
            return False
        return reply.status == 200 and b'"ok"' in reply.data

    def close(self) -> None:
        """Stop the timers and background tasks."""
        self.failure.reset()
        for task in (self._silence_task, self._check_timer, self._gateway_check):
            if task is not None:
                task.cancel()
