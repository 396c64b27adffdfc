"""One URL of a service: sends requests, and updates the endpoint's limiter, failure state and latency tracker.

A liveness probe tests a server that accepts requests but does not answer. A request that takes far longer than recent
requests is hedged: it is sent again, and the first answer counts.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp

from rewardstack.core.deadline import HEADER, AttemptTimeout
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
from rewardstack.transport.http import CONNECT_TIMEOUT, send, shown
from rewardstack.transport.limiter import Limiter, backoff
from rewardstack.transport.outage import Stall
from rewardstack.transport.ray_actor import is_actor
from rewardstack.transport.reply import LIMITING, STEERED, Read, is_down, result_of

SILENCE = 2.0
"""Seconds without any answer after which the endpoint's liveness is probed."""
PING_TIMEOUT = 3.0
"""Seconds that the liveness probe may take; any HTTP reply passes."""
LOG_AFTER = 3.0
"""Seconds after which a failure is logged if requests still wait; shorter failures are not logged."""
LEAST = 2.0
"""Minimum seconds after which a request counts as stuck."""
SOON = 0.5
"""Seconds until the next check of a stuck request that cannot be hedged yet."""
FACTOR = 2.0
"""A request is stuck once it has waited this many times as long as the slowest recent request."""
DECAY = 0.99
"""Factor by which each answer reduces the slowest recent latency."""
RETRY_PAUSE = 0.6
"""Maximum seconds before the first retry after an invalid reply, doubled each time; at least half of it is waited."""
FAULTY_AFTER = 3
"""Invalid replies in a row after which the endpoint counts as faulty and is tried with one request at a time."""
FAULTY_FOR = 5.0
"""Seconds that an endpoint is faulty before its invalid replies are no longer retried."""
FORGOTTEN_AFTER = 30.0
"""Seconds without an invalid reply after which earlier invalid replies no longer count."""

REPLICA = "X-Replica"
"""Header with a replica number: our gateway sends requests with the same number to the same server."""
NUMBERS = tuple(map(str, range(1, 9)))
"""All replica numbers; a server can have several."""

UNAUTHORIZED = 401
"""HTTP status for an unknown key. If the service can move, another job's server may now run at the old address."""

NONE: Mapping[str, str] = MappingProxyType({})
Admit = Callable[[], Awaitable[None]]
"""Awaited before each attempt to send a message; an exception ends the call."""
SendHedge = Callable[[], "asyncio.Task[Any] | None"]
"""Sends a request again; returns None if no endpoint has a free slot."""

log = logging.getLogger(__name__)


class Message(NamedTuple):
    """A request, independent of the endpoint that receives it.

    Args:
        method: `GET` or `POST`.
        path: URL path, which begins with a slash.
        body: JSON, or None.
        headers: HTTP headers in addition to the service's headers.
        admit: awaited before each attempt; raises if the attempt is not allowed. None if all attempts are.
        read: parses a reply's body, and raises ReplyError if it is invalid; None to return the body.
        is_optional: whether servers may lack the path: 404 then ends the call without a retry.
        once: whether an invalid reply ends the call when no other endpoint is left.
        probe: a body that is cheap for the service; sent first to an endpoint that did not accept requests recently.
            None for no such body.
        is_hedged: whether a stuck request is hedged even if there is no other endpoint.
    """

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = NONE
    admit: Admit | None = None
    read: Read | None = None
    is_optional: bool = False
    once: bool = False
    probe: bytes | None = None
    is_hedged: bool = False

    @property
    def cheap(self) -> Message | None:
        """The message with `probe` as the body, to test whether a server answers; None if there is no `probe`."""
        return None if self.probe is None else self._replace(body=self.probe, admit=None, read=None, probe=None)

    def to_replica(self, number: str) -> Message:
        """Return the message addressed to a replica behind our gateway; an empty `number` means any replica."""
        return self._replace(headers={**self.headers, REPLICA: number}) if number else self


HEALTH = Message("GET", "/health")


class LatencyTracker:
    """Tracks the recent latency of a service."""

    def __init__(self) -> None:
        self._slowest = 0.0
        self._answered_at = 0.0

    def answered(self, sent_at: float) -> None:
        """Record an answer to a request that was sent at `sent_at`, on `time.monotonic()`."""
        self._answered_at = time.monotonic()
        self._slowest = max(self._answered_at - sent_at, self._slowest * DECAY)

    def has_answered_since(self, moment: float) -> bool:
        """Return whether an answer came after `moment`, on `time.monotonic()`."""
        return self._answered_at > moment

    def stuck_after(self, otherwise: float) -> float:
        """Return the seconds after which a request counts as stuck; based on `otherwise` before the first answer."""
        return max(LEAST, FACTOR * self._slowest if self._answered_at else otherwise)


class Attempt:
    """A request that the current task waits for. The task is interrupted on timeout, if the endpoint hangs, or if the
    hedge is answered first.

    An attempt has no task of its own, which halves the overhead per request.

    Args:
        endpoint: the endpoint that receives the request.
        message: the request.
        timeout: the timeout that all callers share.
        hedge: starts a second attempt; None to disable hedging.
    """

    __slots__ = (
        "_endpoint",
        "_error",
        "_hedge",
        "_hedged_at",
        "_is_done",
        "_result",
        "_second",
        "_task",
        "_timeout",
        "message",
        "sent_at",
    )

    def __init__(
        self,
        endpoint: Endpoint,
        message: Message,
        timeout: AttemptTimeout,
        hedge: SendHedge | None,
    ) -> None:
        self.message = message
        self.sent_at = self._hedged_at = time.monotonic()
        self._endpoint = endpoint
        self._error: ServiceError | None = None
        self._result: Any = None
        self._is_done = False
        self._timeout = timeout
        self._hedge = hedge
        self._second: asyncio.Task[Any] | None = None
        self._task = asyncio.current_task()

    def look(self) -> float:
        """Interrupt the attempt after its timeout, or hedge it if it is stuck; return seconds until the next check."""
        if self._is_done:
            return SOON
        left = self._timeout.left()
        if left <= 0:
            allowed = round(self._timeout.deadline.allowed, 2)
            self.interrupt(DeadlineError(f"no answer within {allowed:g} s; {self._endpoint.timed_out(self)}"))
            return SOON
        if self._hedge is None:
            return left
        stuck_in = self._endpoint.stuck_in(self._hedged_at, self._timeout.deadline.timeout / 2)
        if stuck_in > 0:
            return min(left, stuck_in)
        second = self._hedge()
        if second is None:
            return min(left, SOON)
        if self._second is not None:  # it may have reached the server that hangs, too
            self._second.cancel()
        self._second, self._hedged_at = second, time.monotonic()
        second.add_done_callback(self._answered)
        return min(left, LEAST)

    def _answered(self, second: asyncio.Task[Any]) -> None:
        if second.cancelled() or second.exception() is not None:
            return
        if self._second is not None and not self._is_done:
            self._result = second.result()
            self._cancel()

    def interrupt(self, error: ServiceError) -> None:
        """End the attempt with `error`, unless it has ended already."""
        if not self._is_done:
            self._error = error
            self._cancel()

    def _cancel(self) -> None:
        self._is_done = True
        if self._task is not None:
            self._task.cancel()

    def hedged_result(self) -> Any:
        """Return the hedge's result after this attempt was cancelled.

        Raises:
            ServiceError: the reason for the interruption.
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
        second, self._second = self._second, None
        if second is not None:
            second.cancel()


class EndpointFailure:
    """An endpoint's failure, from the first error to the next answer; a failure longer than `LOG_AFTER` is logged.

    Times are on `time.monotonic()`.

    Attributes:
        error: the last error; None while the endpoint works.
        down_since: start of the current series of lost connections, hangs and gateway errors; infinity for none.
        refusing_since: start of the current series of refused connections; infinity for none.
        noted_at: time of the last error.

    Args:
        is_awaited: returns whether a caller waits for the service.
    """

    def __init__(self, is_awaited: Callable[[], bool]) -> None:
        self.error: ServiceError | None = None
        self.down_since = self.refusing_since = math.inf
        self.noted_at = -math.inf
        self._is_awaited = is_awaited
        self._since = 0.0
        self._refusals = 0
        self._is_logged = False
        self._timer: asyncio.TimerHandle | None = None

    def __str__(self) -> str:
        """Return the last error and, if it is an overload, how often it occurred."""
        times = f" ({self._refusals} times)" if self._refusals > 1 and isinstance(self.error, OverloadError) else ""
        return f"{self.error}{times}"

    def note(self, error: ServiceError, since: float | None = None) -> None:
        """Record an error.

        Args:
            error: the error.
            since: when the endpoint began to fail, on `time.monotonic()`; None for now.
        """
        now = self.noted_at = time.monotonic()
        began = now if since is None else since
        if self.error is None:
            self._since, self._refusals, self._is_logged = began, 0, False
        self.down_since = min(self.down_since, began) if is_down(error) else math.inf
        self.refusing_since = min(self.refusing_since, began) if isinstance(error, RefusedError) else math.inf
        self.error = error
        self._refusals += isinstance(error, OverloadError)
        if not self._is_logged and self._timer is None:
            left = max(0.0, self._since + LOG_AFTER - now)
            self._timer = asyncio.get_running_loop().call_later(left, self._log)

    def over(self) -> None:
        """Reset the failure, because the endpoint has answered."""
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
        if self.error is not None and self._is_awaited():
            self._is_logged = True
            log.warning("%s; unavailable for %.0f s, retrying", self, time.monotonic() - self._since)


class ReplyFaults:
    """The invalid replies (`ReplyError`) of an endpoint since its last valid reply.

    After `FAULTY_AFTER` invalid replies the endpoint is faulty: one request at a time is retried as a trial, with
    growing pauses.

    Attributes:
        recovered_at: when the endpoint last stopped being faulty, on `time.monotonic()`.
        replies: number of invalid replies since the last valid reply.
    """

    def __init__(self) -> None:
        self.recovered_at = -math.inf
        self._next_trial_at = 0.0
        self.replies = 0
        self._change: asyncio.Future[None] | None = None
        self._trials = 0
        self._since = self._last_at = -math.inf

    @property
    def is_on(self) -> bool:
        """Whether the endpoint is faulty: there were too many invalid replies in a row to blame the requests."""
        return self.replies >= FAULTY_AFTER

    @property
    def is_final(self) -> bool:
        """Whether the endpoint has been faulty for so long that no request is retried."""
        return self.is_on and time.monotonic() > self._since + FAULTY_FOR

    @property
    def is_due(self) -> bool:
        """Whether the next trial request is due."""
        return time.monotonic() >= self._next_trial_at

    def note(self) -> None:
        """Record an invalid reply."""
        now = time.monotonic()
        if not self.replies or now > self._last_at + FORGOTTEN_AFTER:
            self._since, self.replies, self._trials = now, 0, 0
            self._next_trial_at = now + retry_pause(1)
        self._last_at = now
        self.replies += 1
        self._notify()

    def try_out(self) -> None:
        """Record that a trial request is sent."""
        self._trials += 1
        self._next_trial_at = time.monotonic() + retry_pause(self._trials + 1)

    def over(self) -> None:
        """Record a valid reply."""
        if self.is_on:
            self.recovered_at = time.monotonic()
        self.replies = 0
        self._notify()

    def _notify(self) -> None:
        if self._change is not None and not self._change.done():
            self._change.set_result(None)

    async def wait(self, seconds: float) -> None:
        """Wait at most `seconds` until a reply arrives, a trial is due, or the faults become final."""
        if self._change is None or self._change.done():
            self._change = asyncio.get_running_loop().create_future()
        now = time.monotonic()
        due = self._next_trial_at - now if self._next_trial_at > now else RETRY_PAUSE
        await asyncio.wait((self._change,), timeout=max(0.0, min(seconds, due, self._since + FAULTY_FOR - now)) + 0.001)


class Replicas:
    """The replicas behind a gateway, by number: which replicas failed requests, and which replica accepts them.

    Attributes:
        good: number of a replica that accepted a request; empty if none is known.
    """

    def __init__(self) -> None:
        self.good = ""
        self._faulty_at: dict[str, float] = {}

    @property
    def are_faulty(self) -> bool:
        """Whether all replicas failed a request within the last `FORGOTTEN_AFTER` seconds."""
        lately = time.monotonic() - FORGOTTEN_AFTER
        return not self.good and sum(at > lately for at in self._faulty_at.values()) == len(NUMBERS)

    def next(self, number: str) -> str:
        """Return the replica number for a retry; `number` is the replica that failed the request, empty for unknown."""
        if number:
            self._faulty_at[number] = time.monotonic()
            self.doubt(number)
        return self.good or min(random.sample(NUMBERS, len(NUMBERS)), key=lambda one: self._faulty_at.get(one, 0.0))

    def doubt(self, number: str) -> None:
        """Stop preferring a replica that has not answered in time."""
        if number == self.good:
            self.good = ""

    def took(self, number: str) -> None:
        """Record a valid reply to a request that was sent to replica `number`; empty for any replica."""
        self._faulty_at.pop(number, None)
        self.good = number or self.good
        if not number and self.are_faulty:
            self._faulty_at.clear()


def retry_pause(times: int) -> float:
    """Return the seconds before the retry of a request after `times` invalid replies."""
    return backoff(RETRY_PAUSE, math.inf, times - 1)


class Endpoint:
    """One of a service's URLs.

    Args:
        url: base URL.
        headers: HTTP headers of every request.
        ceiling: maximum requests in flight.
        session: HTTP session.
        latency: latency tracker, which all endpoints of the service share.
        is_awaited: returns whether a caller waits for the service.
        may_eject: returns whether enough other endpoints are available to stop using the given one.
        has_others: returns whether the service has other endpoints.
        on_stall: called when a request times out.
        moves: whether the service may move: a server that rejects the key may then belong to another job.

    Raises:
        SettingsError: the environment sets a proxy for the URL that is not an HTTP proxy.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        ceiling: int,
        session: aiohttp.ClientSession,
        latency: LatencyTracker,
        is_awaited: Callable[[], bool],
        may_eject: Callable[[Endpoint], bool],
        has_others: Callable[[], bool],
        on_stall: Callable[[], None],
        *,
        moves: bool = False,
    ) -> None:
        self.url = url
        self.limiter = Limiter(ceiling)
        self.failure = EndpointFailure(is_awaited)
        self.reply_faults = ReplyFaults()
        self.replicas = Replicas()
        self.stalls = {"GET": Stall(), "POST": Stall()}
        self.in_flight = 0
        self._named = shown(url)
        self._may_eject = may_eject
        self._has_others = has_others
        self._on_stall = on_stall
        self._moves = moves
        self._headers = headers
        self._session = session
        self._latency = latency
        self._attempts: dict[Attempt, None] = {}
        self._unanswered = self._hangs = False
        self._heard_at = 0.0
        self._lived_at = 0.0
        self._lapsed = ""
        self._watch: asyncio.Task[None] | None = None
        self._round: asyncio.TimerHandle | None = None
        self._gateway: asyncio.Task[bool] | None = None

    def cause(self) -> str:
        """Return why requests have no answer yet, as far as it is known; empty if all were answered."""
        known = [str(self.failure)] if self.failure.error is not None else []
        if self._attempts:
            known.append(self._silence())
        return "; ".join(known) or self._lapsed

    def _silence(self) -> str:
        since = next(iter(self._attempts)).sent_at
        count, seconds = len(self._attempts), time.monotonic() - since
        requests = f"{count} request{'s' if count > 1 else ''} of ours"
        if self._lived_at >= since:
            return f"{self._named} lives and is working on {requests}, the oldest sent {seconds:.1f} s ago"
        accepted = "accepted the connection and has" if seconds > CONNECT_TIMEOUT else "has"
        return f"{self._named} {accepted} sent nothing for {seconds:.1f} s; {requests} wait there"

    @property
    def is_due(self) -> bool:
        """Whether the endpoint was paused, and may be tried with a request now."""
        return self.limiter.is_open and self.limiter.admits(self.in_flight)

    @property
    def is_away(self) -> bool:
        """Whether the endpoint is down or stalled."""
        return self.failure.down_since < math.inf or any(stall.is_on for stall in self.stalls.values())

    def timed_out(self, attempt: Attempt) -> str:
        """Record that an attempt timed out; return the cause, which `cause` repeats until the next answer."""
        self._lapsed = self.cause()
        message, cheap = attempt.message, attempt.message.cheap
        is_cheap = message.body is None or cheap is not None
        self.stalls[message.method].note(attempt.sent_at, self._lapsed, cheap or message, is_cheap=is_cheap)
        self._on_stall()
        return self._lapsed

    async def ask(self, message: Message, timeout: AttemptTimeout, hedge: SendHedge | None = None) -> Any:
        """Send a message and return its result; the caller has counted the message in `in_flight`.

        Args:
            message: the message to send.
            timeout: the timeout that all callers share.
            hedge: sends a stuck message again; None to disable hedging.

        Raises:
            DeadlineError: the timeout has passed.
            UnreachableError: the endpoint cannot be reached, or it hangs.
            OverloadError, RejectedError, ReplyError: the error in the reply.
            BudgetError: `message.admit` does not allow the attempt.
        """
        if self.limiter.pauses:
            await self._try_out(message.cheap, timeout)
        if message.admit is not None:
            await message.admit()
        try:
            result, is_own = await self._send(message, timeout, hedge)
        except RejectedError as error:
            if not error.is_misplaced:
                self._succeeded()
            raise
        if is_own:
            self._succeeded()
        return result

    def _succeeded(self) -> None:
        if self.failure.error is not None:
            self.failure.over()
        if self.reply_faults.replies:
            self.reply_faults.over()
            self.replicas.took("")
        self._lapsed = ""
        self._hangs = False
        self.limiter.succeeded()

    async def _try_out(self, cheap: Message | None, timeout: AttemptTimeout) -> None:
        """Probe an endpoint that did not accept requests recently before it gets a real request."""
        if cheap is None and (not self._hangs or is_actor(self.url)):
            return
        try:
            await self._send(HEALTH if cheap is None else cheap, timeout)
        except (RejectedError, ReplyError):
            return  # it is up; the next request shows whether it accepts real work
        except OverloadError:
            if cheap is not None:
                raise

    async def _send(
        self, message: Message, timeout: AttemptTimeout, hedge: SendHedge | None = None
    ) -> tuple[Any, bool]:
        """Return the result of one attempt, and whether it came from this endpoint rather than from the hedge."""
        left = timeout.left()
        headers = {**self._headers, **message.headers, HEADER: str(max(1, int(left * 1000)))}
        attempt = Attempt(self, message, timeout, hedge)
        self._begin(attempt, left if hedge is None else min(left, LEAST))
        answered = lives = True
        try:
            result = await self._exchange(message, headers)
            self._latency.answered(attempt.sent_at)
            return result, True
        except asyncio.CancelledError:
            answered = lives = False
            result = attempt.hedged_result()
            self._was_overtaken(attempt)
            return result, False
        except ServiceError as error:
            lives = not isinstance(error, UnreachableError)
            attempt.end()  # a later interruption would look like the caller's cancellation
            if isinstance(error, OverloadError) and error.status in STEERED:
                await self.is_gateway(timeout.left())
            self._failed(error, attempt.sent_at)
            raise
        finally:
            attempt.end()
            if lives:
                self._lived_at = time.monotonic()
                self.stalls[message.method].is_answered()
            self._end(attempt, answered=answered)

    async def _exchange(self, message: Message, headers: Mapping[str, str]) -> Any:
        try:
            reply = await send(self._session, message.method, self.url + message.path, message.body, headers)
            return result_of(reply, message.read)
        except RejectedError as error:
            if not self._moves or error.status != UNAUTHORIZED:
                raise
            raise UnreachableError(f"{error}; its key is not the one that {VARIABLE} has for it") from error

    def _failed(self, error: ServiceError, sent_at: float) -> None:
        """Update the limiter and the failure state after a failed attempt."""
        ejects = self._may_eject(self)
        if isinstance(error, RejectedError):
            return  # the endpoint is at fault only if another endpoint accepts the request
        self.failure.note(error)
        if isinstance(error, ReplyError):
            self.reply_faults.note()
            if ejects:
                self.limiter.failed(ejects=True)
        elif isinstance(error, OverloadError) and self.is_known_gateway and error.status in STEERED:
            pass  # another replica may accept the request
        elif isinstance(error, OverloadError) and (error.status in LIMITING or not error.status):
            self.limiter.refused(sent_at, self.in_flight - 1, error.retry_after, ejects=ejects)
        elif is_down(error):
            self.reply_faults.over()  # `Limiter` and `Outage` handle a server that is down
            self.limiter.failed(ejects=ejects)

    def rejected_wrongly(self, error: ServiceError) -> None:
        """Record that another endpoint accepted a request that this one rejected: key, path or model is wrong here."""
        self.failure.note(error)
        if self._may_eject(self):
            self.limiter.failed(ejects=True)

    def _was_overtaken(self, attempt: Attempt) -> None:
        """Record that the hedge of an attempt was answered first; if that is repeated, interrupt attempts as old."""
        if not self._may_eject(self):
            return
        seconds = time.monotonic() - attempt.sent_at
        error = UnreachableError(f"{self._named}: no answer within {seconds:.1f} s, and another endpoint answered")
        self._hangs = True
        self.failure.note(error, attempt.sent_at)
        self.limiter.failed(ejects=True)
        if self.limiter.is_open:
            for one in list(self._attempts):
                if one.sent_at <= attempt.sent_at + LEAST:
                    one.interrupt(error)

    def _begin(self, attempt: Attempt, look_in: float) -> None:
        """Register an attempt, to check it in `look_in` seconds and to interrupt it if the endpoint hangs."""
        if not self._attempts:
            self._heard_at = time.monotonic()
        self._attempts[attempt] = None
        self._check_in(look_in)
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._watch_silence())

    def _end(self, attempt: Attempt, *, answered: bool) -> None:
        """Remove an attempt that has ended, with or without an answer."""
        del self._attempts[attempt]
        self._unanswered = not answered
        if answered:
            self._heard_at = time.monotonic()

    def _check_in(self, seconds: float) -> None:
        """Check all attempts in `seconds` at the latest; one timer for all attempts is cheaper than one for each."""
        loop = asyncio.get_running_loop()
        if self._round is not None and self._round.when() <= loop.time() + seconds:
            return
        if self._round is not None:
            self._round.cancel()
        self._round = loop.call_later(seconds, self._check_all)

    def _check_all(self) -> None:
        self._round = None
        if self._attempts:
            self._check_in(min([attempt.look() for attempt in list(self._attempts)]))

    async def _watch_silence(self) -> None:
        while self._attempts or self._unanswered:
            wait = self._heard_at + SILENCE - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
                continue
            asked_at, self._unanswered = time.monotonic(), False
            if (lives := await self._lives()) or self._heard_at > asked_at:
                self._heard_at = time.monotonic()
                self._lived_at = self._heard_at if lives else self._lived_at
                continue
            hangs = UnreachableError(f"{self._named}: accepts requests and does not answer")
            self._hangs = True
            self.failure.note(hangs, self._heard_at)
            self.limiter.failed(immediately=True, ejects=self._may_eject(self))
            for attempt in list(self._attempts):
                attempt.interrupt(hangs)
            return

    async def _lives(self) -> bool:
        silent = UnreachableError(f"{self._named}: no answer even to GET /health")
        noting = asyncio.get_running_loop().call_later(LOG_AFTER - SILENCE, self.failure.note, silent, self._heard_at)
        try:
            error = await self._probed(HEALTH, PING_TIMEOUT)
        finally:
            noting.cancel()
        if isinstance(error, UnreachableError):
            return False
        if self.failure.error is silent:
            self.failure.over()
        return True

    async def probe(self, seconds: float) -> None:
        """Test whether the endpoint is back: it has to answer /health, and the probes of its stalls, in `seconds`.

        A stall's probe that is not cheap has as long as the stall has lasted.
        """
        error = await self._probed(HEALTH, seconds)
        if error is not None and is_down(error):
            if type(error) is not type(self.failure.error):  # else the original error is more specific
                self.failure.note(error)
            self.failure.noted_at = time.monotonic()
            for stall in self.stalls.values():
                stall.is_answered(by_probe=True)  # the endpoint is down now, not stalled
            return
        if self.failure.down_since < math.inf:
            self.failure.over()
            self.limiter.resume()
        for stall in self.stalls.values():
            if stall.probe is not None and stall.is_probed:
                error = await self._probed(stall.probe, seconds if stall.is_cheap else stall.seconds)
                if error is None or not is_down(error):
                    stall.is_answered(by_probe=True)

    async def _probed(self, message: Message, seconds: float) -> ServiceError | None:
        """Send a probe and return the error, None for success; raise BudgetError if `admit` does not allow it."""
        headers = {**self._headers, **message.headers} if message is not HEALTH else {}
        if message.admit is not None:
            await message.admit()
        try:
            sending = send(self._session, message.method, self.url + message.path, message.body, headers)
            result_of(await run_with_timeout(seconds, sending), message.read)
        except asyncio.TimeoutError:
            return UnreachableError(f"{self._named}: no answer to {message.method} {message.path} within {seconds:g} s")
        except ServiceError as error:
            return error
        return None

    def stuck_in(self, since: float, otherwise: float) -> float:
        """Return the seconds until a request counts as stuck and can be hedged; 0 if it does now.

        Args:
            since: when the request was last sent, on `time.monotonic()`.
            otherwise: seconds after which it counts as stuck while the service has answered nothing.
        """
        now = time.monotonic()
        left = since + self._latency.stuck_after(otherwise) - now
        if left > 0:
            return left
        if self._latency.has_answered_since(since) or self._has_others() or self.is_known_gateway:
            return 0.0
        if self._gateway is None:
            self._gateway = asyncio.create_task(self._ask_gateway())
        return SOON  # the only server: a hedge would wait behind the same requests

    @property
    def is_known_gateway(self) -> bool:
        """Whether the endpoint is known to be a gateway in front of several replicas."""
        task = self._gateway
        return task is not None and task.done() and not task.cancelled() and task.result()

    async def is_gateway(self, seconds: float) -> bool:
        """Return whether the endpoint is a gateway, so that a retry may reach another replica.

        Args:
            seconds: maximum seconds to wait for the endpoint's answer; False without an answer.
        """
        if self._gateway is None:
            self._gateway = asyncio.create_task(self._ask_gateway())
        await asyncio.wait((self._gateway,), timeout=max(0.0, seconds))
        return self.is_known_gateway

    async def _ask_gateway(self) -> bool:
        if is_actor(self.url):
            return False
        parts = urlsplit(self.url)
        url = f"{parts.scheme}://{parts.netloc}/gateway/health"
        try:
            reply = await run_with_timeout(PING_TIMEOUT, send(self._session, "GET", url, None, {}))
        except (asyncio.TimeoutError, ServiceError):
            self._gateway = None
            return False
        return reply.status == 200 and b'"ok"' in reply.data

    def close(self) -> None:
        """Stop the timers and background tasks."""
        self.failure.over()
        for one in (self._watch, self._round, self._gateway):
            if one is not None:
                one.cancel()
