"""One URL of a service: requests are sent to it, and what becomes of them tells its limiter, its incident and its pace.

A watch asks a server that accepts requests and never answers whether it lives. A request that waits far longer than any
other took, though answers came in the meantime, is sent once more (hedged); the first answer counts.
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
from rewardstack.core.event_loop import within
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
"""Seconds without any answer after which the endpoint is asked whether it lives."""
PING_TIMEOUT = 3.0
"""Seconds it has to say so; any HTTP reply will do."""
SAID_AFTER = 3.0
"""Seconds that somebody has waited when the log says why: what is over sooner nobody need know."""
LEAST = 2.0
"""Seconds that every request may take before it counts as stuck."""
SOON = 0.5
"""Seconds after which one looks again at a request of which nothing can be said yet."""
FACTOR = 2.0
"""How much longer than the slowest of late a stuck request has waited."""
DECAY = 0.99
"""Factor by which each answer makes the slowest one of late fade."""
ILL_PAUSE = 0.6
"""Seconds until an ill reply's request is sent again, doubled each time; drawn from the upper half of the range."""
ILL_AFTER = 3
"""Ill replies in a row that make an illness, of which one request at a time finds out whether it is over."""
ILL_FOR = 5.0
"""Seconds of illness after which an ill reply is final."""
FORGOTTEN_AFTER = 30.0
"""Seconds without a reply after which an illness is forgotten."""

REPLICA = "X-Replica"
"""Header with the number of a server behind our gateway: the same number leads to the same one."""
NUMBERS = tuple(map(str, range(1, 9)))
"""Several numbers lead to each server."""

UNAUTHORIZED = 401
"""Says a server that does not know a key: where its service moves, it may be the next job's at the old address."""

NONE: Mapping[str, str] = MappingProxyType({})
Admit = Callable[[], Awaitable[None]]
"""Awaited before each attempt to send a message; what it raises ends them."""
SendHedge = Callable[[], "asyncio.Task[Any] | None"]
"""Sends a request another time; None where there is no place for it."""

log = logging.getLogger(__name__)


class Message(NamedTuple):
    """What is sent, to whichever endpoint.

    Args:
        method: `GET` or `POST`.
        path: begins with a slash.
        body: JSON, or None.
        headers: beside the service's own.
        admit: says before each attempt whether it may be made, probes apart; None where all may.
        read: makes the result of a reply's body, and raises ReplyError where it cannot be read, which is then an ill
            reply; None for the body itself.
        is_optional: whether the path may not exist: 404 is then an answer, and ends the call at once.
        once: whether an ill reply ends the call when no other endpoint is left.
        probe: a body that costs the service nothing; sent first to an endpoint that took nothing of late, so that an
            outage is not met with work. None for none.
        is_hedged: whether it is hedged when it is stuck, even where there is no other endpoint.
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
        """The request with its probe as the body, which shows whether a server answers such ones; None for none."""
        return None if self.probe is None else self._replace(body=self.probe, admit=None, read=None, probe=None)

    def to_replica(self, number: str) -> Message:
        """Return the message for a server behind our gateway, by its number; empty for any."""
        return self._replace(headers={**self.headers, REPLICA: number}) if number else self


HEALTH = Message("GET", "/health")


class Pace:
    """The time that a service's answers took of late."""

    def __init__(self) -> None:
        self._slowest = 0.0
        self._answered_at = 0.0

    def answered(self, sent_at: float) -> None:
        """Note that a request that was sent at `sent_at`, on `time.monotonic()`, was answered."""
        self._answered_at = time.monotonic()
        self._slowest = max(self._answered_at - sent_at, self._slowest * DECAY)

    def has_answered_since(self, moment: float) -> bool:
        """Return whether an answer came after a moment on `time.monotonic()`."""
        return self._answered_at > moment

    def stuck_after(self, otherwise: float) -> float:
        """Return the seconds after which a request counts as stuck; `otherwise` where nothing was answered yet."""
        return max(LEAST, FACTOR * self._slowest if self._answered_at else otherwise)


class Attempt:
    """A request that the current task waits for, until an answer comes, or one of these interrupts it: nobody has the
    patience any more, the endpoint hangs, its hedge has brought the answer.

    It needs no task of its own, which halves what a request costs beside the HTTP client's work.

    Args:
        endpoint: where it is made.
        message: that is sent.
        patience: of all who wait for it.
        hedge: starts a second attempt; None where this one is to stay the only one.
    """

    __slots__ = (
        "_endpoint",
        "_error",
        "_hedge",
        "_hedged_at",
        "_is_done",
        "_patience",
        "_result",
        "_second",
        "_task",
        "message",
        "sent_at",
    )

    def __init__(
        self,
        endpoint: Endpoint,
        message: Message,
        patience: AttemptTimeout,
        hedge: SendHedge | None,
    ) -> None:
        self.message = message
        self.sent_at = self._hedged_at = time.monotonic()
        self._endpoint = endpoint
        self._error: ServiceError | None = None
        self._result: Any = None
        self._is_done = False
        self._patience = patience
        self._hedge = hedge
        self._second: asyncio.Task[Any] | None = None
        self._task = asyncio.current_task()

    def look(self) -> float:
        """Interrupt the attempt, or hedge it, where it is time to; return the seconds until the next look."""
        if self._is_done:
            return SOON
        left = self._patience.left()
        if left <= 0:
            allowed = round(self._patience.deadline.allowed, 2)
            self.interrupt(DeadlineError(f"no answer within {allowed:g} s; {self._endpoint.timed_out(self)}"))
            return SOON
        if self._hedge is None:
            return left
        stuck_in = self._endpoint.stuck_in(self._hedged_at, self._patience.deadline.timeout / 2)
        if stuck_in > 0:
            return min(left, stuck_in)
        second = self._hedge()
        if second is None:
            return min(left, SOON)
        if self._second is not None:  # it may have met the server that hangs, too
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
        """End the attempt with `error`, unless it is ending already."""
        if not self._is_done:
            self._error = error
            self._cancel()

    def _cancel(self) -> None:
        self._is_done = True
        if self._task is not None:
            self._task.cancel()

    def hedged_result(self) -> Any:
        """Return what the hedge brought, once this attempt was cancelled.

        Raises:
            ServiceError: why it was interrupted.
            CancelledError: someone else cancelled it.
        """
        if not self._is_done:
            raise asyncio.CancelledError
        if self._task is not None and sys.version_info >= (3, 11) and self._task.uncancel() > 0:
            raise asyncio.CancelledError
        if self._error is not None:
            raise self._error from None
        return self._result

    def end(self) -> None:
        """Note that it has ended: nothing interrupts it any more, and its hedge ends with it."""
        self._is_done = True
        second, self._second = self._second, None
        if second is not None:
            second.cancel()


class EndpointFailure:
    """What keeps an endpoint from taking requests, from the first failure to the next answer; one that lasts is logged.

    Its attribute `error` is the last one noted, None while there is no incident; `down_since` and `refusing_since`, on
    `time.monotonic()`, say since when there was nothing but lost connections, silence and gateways without a server, or
    refused connections alone: infinity where there was something else. `noted_at` is the time of the last failure.

    Args:
        is_awaited: whether anyone waits for the endpoint's service.
    """

    def __init__(self, is_awaited: Callable[[], bool]) -> None:
        self.error: ServiceError | None = None
        self.down_since = self.refusing_since = math.inf
        self.noted_at = -math.inf
        self._is_awaited = is_awaited
        self._since = 0.0
        self._refusals = 0
        self._said = False
        self._timer: asyncio.TimerHandle | None = None

    def __str__(self) -> str:
        """The last error, and how often the server has refused."""
        times = f" ({self._refusals} times)" if self._refusals > 1 and isinstance(self.error, OverloadError) else ""
        return f"{self.error}{times}"

    def note(self, error: ServiceError, since: float | None = None) -> None:
        """Note a failure.

        Args:
            error: what failed.
            since: when that began, on `time.monotonic()`; None for now.
        """
        now = self.noted_at = time.monotonic()
        began = now if since is None else since
        if self.error is None:
            self._since, self._refusals, self._said = began, 0, False
        self.down_since = min(self.down_since, began) if is_down(error) else math.inf
        self.refusing_since = min(self.refusing_since, began) if isinstance(error, RefusedError) else math.inf
        self.error = error
        self._refusals += isinstance(error, OverloadError)
        if not self._said and self._timer is None:
            left = max(0.0, self._since + SAID_AFTER - now)
            self._timer = asyncio.get_running_loop().call_later(left, self._say)

    def over(self) -> None:
        """Note that the endpoint took a request."""
        if self.error is None:
            return
        self.error = None
        self.down_since = self.refusing_since = math.inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _say(self) -> None:
        """What nobody waits for is not said before somebody does."""
        self._timer = None
        if self.error is not None and self._is_awaited():
            self._said = True
            log.warning("%s; unavailable for %.0f s, retrying", self, time.monotonic() - self._since)


class Illness:
    """The ill replies (`ReplyError`) of an endpoint since its last readable one.

    While it lasts one request at a time is sent again, with growing pauses. Attribute `recovered_at`, on
    `time.monotonic()`, is the end of the last one, `replies` counts those of this one.
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
        """Whether there were so many ill replies in a row that the endpoint, not a request, is at fault."""
        return self.replies >= ILL_AFTER

    @property
    def is_chronic(self) -> bool:
        """Whether it lasts so long that no request is sent again for it."""
        return self.is_on and time.monotonic() > self._since + ILL_FOR

    @property
    def is_due(self) -> bool:
        """Whether it is time to try the endpoint out by one request."""
        return time.monotonic() >= self._next_trial_at

    def note(self) -> None:
        """Note an ill reply."""
        now = time.monotonic()
        if not self.replies or now > self._last_at + FORGOTTEN_AFTER:
            self._since, self.replies, self._trials = now, 0, 0
            self._next_trial_at = now + ill_pause(1)
        self._last_at = now
        self.replies += 1
        self._tell()

    def try_out(self) -> None:
        """Note that one of those who wait is sent again."""
        self._trials += 1
        self._next_trial_at = time.monotonic() + ill_pause(self._trials + 1)

    def over(self) -> None:
        """Note a readable reply."""
        if self.is_on:
            self.recovered_at = time.monotonic()
        self.replies = 0
        self._tell()

    def _tell(self) -> None:
        if self._change is not None and not self._change.done():
            self._change.set_result(None)

    async def wait(self, seconds: float) -> None:
        """Wait until something changes, or a trial is due, or the time is over."""
        if self._change is None or self._change.done():
            self._change = asyncio.get_running_loop().create_future()
        now = time.monotonic()
        due = self._next_trial_at - now if self._next_trial_at > now else ILL_PAUSE
        await asyncio.wait((self._change,), timeout=max(0.0, min(seconds, due, self._since + ILL_FOR - now)) + 0.001)


class Replicas:
    """The servers behind a gateway, by number: which of them gave ill replies, and which one takes requests.

    Attribute `good` is the number of one that took a request; empty where none is known.
    """

    def __init__(self) -> None:
        self.good = ""
        self._ill_at: dict[str, float] = {}

    @property
    def are_ill(self) -> bool:
        """Whether all of them gave ill replies of late."""
        lately = time.monotonic() - FORGOTTEN_AFTER
        return not self.good and sum(at > lately for at in self._ill_at.values()) == len(NUMBERS)

    def next(self, number: str) -> str:
        """Return the number for the next try of a request whose reply was ill, by the number that it had."""
        if number:
            self._ill_at[number] = time.monotonic()
            self.doubt(number)
        return self.good or min(random.sample(NUMBERS, len(NUMBERS)), key=lambda one: self._ill_at.get(one, 0.0))

    def doubt(self, number: str) -> None:
        """Note that one who was asked by its number has not answered yet."""
        if number == self.good:
            self.good = ""

    def took(self, number: str) -> None:
        """Note that a request was answered well, by the number that it had; empty for none."""
        self._ill_at.pop(number, None)
        self.good = number or self.good
        if not number and self.are_ill:
            self._ill_at.clear()


def ill_pause(times: int) -> float:
    """Return the seconds until a request is sent again that had so many ill replies."""
    return backoff(ILL_PAUSE, math.inf, times - 1)


class Endpoint:
    """One of a service's URLs.

    Args:
        url: base URL.
        headers: sent with every request.
        ceiling: most requests in flight.
        session: that carries the requests.
        pace: of the service.
        is_awaited: whether anyone waits for the service.
        may_eject: whether enough other endpoints are left to do without this one.
        has_others: whether the service has other endpoints at all.
        on_stall: called when a request times out.
        moves: whether the service may move; who refuses its key may then be another in its place.

    Raises:
        SettingsError: the environment names a proxy for it that is none for HTTP.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        ceiling: int,
        session: aiohttp.ClientSession,
        pace: Pace,
        is_awaited: Callable[[], bool],
        may_eject: Callable[[Endpoint], bool],
        has_others: Callable[[], bool],
        on_stall: Callable[[], None],
        *,
        moves: bool = False,
    ) -> None:
        self.url = url
        self.limiter = Limiter(ceiling)
        self.incident = EndpointFailure(is_awaited)
        self.illness = Illness()
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
        self._pace = pace
        self._attempts: dict[Attempt, None] = {}
        self._unanswered = self._hangs = False
        self._heard_at = 0.0
        self._lived_at = 0.0
        self._lapsed = ""
        self._watch: asyncio.Task[None] | None = None
        self._round: asyncio.TimerHandle | None = None
        self._gateway: asyncio.Task[bool] | None = None

    def cause(self) -> str:
        """Return why what was sent here has no answer yet, as far as that is known; empty where all was answered."""
        known = [str(self.incident)] if self.incident.error is not None else []
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
    def is_away(self) -> bool:
        """Whether it is down, or stalls."""
        return self.incident.down_since < math.inf or any(stall.is_on for stall in self.stalls.values())

    def timed_out(self, attempt: Attempt) -> str:
        """Note that nobody waits for an attempt any more; return the cause, to be known until something is answered."""
        self._lapsed = self.cause()
        message, cheap = attempt.message, attempt.message.cheap
        is_cheap = message.body is None or cheap is not None
        self.stalls[message.method].note(attempt.sent_at, self._lapsed, cheap or message, is_cheap=is_cheap)
        self._on_stall()
        return self._lapsed

    async def ask(self, message: Message, patience: AttemptTimeout, hedge: SendHedge | None = None) -> Any:
        """Return the result of a message that has its place in `in_flight`.

        Args:
            message: to send.
            patience: of all who wait for it.
            hedge: sends it elsewhere when it is stuck; None where it is sent only once.

        Raises:
            DeadlineError: nobody has the patience any more.
            OverloadError, UnreachableError: as `send` does, or the endpoint hangs.
            RejectedError, ReplyError: what the reply means.
            BudgetError: it is not admitted.
        """
        if self.limiter.pauses:
            await self._try_out(message.cheap, patience)
        if message.admit is not None:
            await message.admit()
        try:
            result, is_own = await self._send(message, patience, hedge)
        except RejectedError as error:
            if not error.is_misplaced:
                self._found()
            raise
        if is_own:
            self._found()
        return result

    def _found(self) -> None:
        if self.incident.error is not None:
            self.incident.over()
        if self.illness.replies:
            self.illness.over()
            self.replicas.took("")
        self._lapsed = ""
        self._hangs = False
        self.limiter.succeeded()

    async def _try_out(self, cheap: Message | None, patience: AttemptTimeout) -> None:
        """Ask an endpoint that took nothing of late something cheap before it gets work."""
        if cheap is None and (not self._hangs or is_actor(self.url)):
            return
        try:
            await self._send(HEALTH if cheap is None else cheap, patience)
        except (RejectedError, ReplyError):
            return  # it is there; what it thinks of real work the next request shows
        except OverloadError:
            if cheap is not None:
                raise

    async def _send(
        self, message: Message, patience: AttemptTimeout, hedge: SendHedge | None = None
    ) -> tuple[Any, bool]:
        """Return the result of one attempt, and whether this endpoint brought it rather than the hedge."""
        left = patience.left()
        headers = {**self._headers, **message.headers, HEADER: str(max(1, int(left * 1000)))}
        attempt = Attempt(self, message, patience, hedge)
        self._begin(attempt, left if hedge is None else min(left, LEAST))
        answered = lives = True
        try:
            result = await self._exchange(message, headers)
            self._pace.answered(attempt.sent_at)
            return result, True
        except asyncio.CancelledError:
            answered = lives = False
            result = attempt.hedged_result()
            self._was_overtaken(attempt)
            return result, False
        except ServiceError as error:
            lives = not isinstance(error, UnreachableError)
            attempt.end()  # an interruption would end what follows, and be taken for the caller's cancellation
            if isinstance(error, OverloadError) and error.status in STEERED:
                await self.is_gateway(patience.left())
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
        """Tell the limiter what a failed attempt says of the endpoint."""
        ejects = self._may_eject(self)
        if isinstance(error, RejectedError):
            return  # whether it is the endpoint's fault shows when another one takes the request
        self.incident.note(error)
        if isinstance(error, ReplyError):
            self.illness.note()
            if ejects:
                self.limiter.failed(ejects=True)
        elif isinstance(error, OverloadError) and self.is_known_gateway and error.status in STEERED:
            pass  # another of its servers may take the request
        elif isinstance(error, OverloadError) and (error.status in LIMITING or not error.status):
            self.limiter.refused(sent_at, self.in_flight - 1, error.retry_after, ejects=ejects)
        elif is_down(error):
            self.illness.over()  # what it is now the limiter and the outage see to
            self.limiter.failed(ejects=ejects)

    def was_wrong(self, error: ServiceError) -> None:
        """Note that another endpoint took what this one rejected: its key, its path or its model is wrong."""
        self.incident.note(error)
        if self._may_eject(self):
            self.limiter.failed(ejects=True)

    def _was_overtaken(self, attempt: Attempt) -> None:
        """Note that a hedge was answered first; where that happens time and again, the endpoint hangs."""
        if not self._may_eject(self):
            return
        seconds = time.monotonic() - attempt.sent_at
        error = UnreachableError(f"{self._named}: no answer within {seconds:.1f} s, and another endpoint answered")
        self._hangs = True
        self.incident.note(error, attempt.sent_at)
        self.limiter.failed(ejects=True)
        if self.limiter.is_open:
            for one in list(self._attempts):
                if one.sent_at <= attempt.sent_at + LEAST:
                    one.interrupt(error)

    def _begin(self, attempt: Attempt, look_in: float) -> None:
        """Watch an attempt, which is interrupted when the endpoint turns out to hang."""
        if not self._attempts:
            self._heard_at = time.monotonic()
        self._attempts[attempt] = None
        self._go_round_in(look_in)
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._watch_silence())

    def _end(self, attempt: Attempt, *, answered: bool) -> None:
        """Watch an attempt no longer, which has ended with an answer of any kind or without."""
        del self._attempts[attempt]
        self._unanswered = not answered
        if answered:
            self._heard_at = time.monotonic()

    def _go_round_in(self, seconds: float) -> None:
        """Look at all attempts then, if not before: one timer for all costs less than one each."""
        loop = asyncio.get_running_loop()
        if self._round is not None and self._round.when() <= loop.time() + seconds:
            return
        if self._round is not None:
            self._round.cancel()
        self._round = loop.call_later(seconds, self._go_round)

    def _go_round(self) -> None:
        self._round = None
        if self._attempts:
            self._go_round_in(min([attempt.look() for attempt in list(self._attempts)]))

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
            self.incident.note(hangs, self._heard_at)
            self.limiter.failed(at_once=True, ejects=self._may_eject(self))
            for attempt in list(self._attempts):
                attempt.interrupt(hangs)
            return

    async def _lives(self) -> bool:
        silent = UnreachableError(f"{self._named}: no answer even to GET /health")
        noting = asyncio.get_running_loop().call_later(SAID_AFTER - SILENCE, self.incident.note, silent, self._heard_at)
        try:
            error = await self._probed(HEALTH, PING_TIMEOUT)
        finally:
            noting.cancel()
        if isinstance(error, UnreachableError):
            return False
        if self.incident.error is silent:
            self.incident.over()
        return True

    async def probe(self, seconds: float) -> None:
        """Find out whether it is back: it answers /health, and the probes of its stalls, within these seconds."""
        error = await self._probed(HEALTH, seconds)
        if error is not None and is_down(error):
            if type(error) is not type(self.incident.error):  # else the request that failed says more than this one
                self.incident.note(error)
            self.incident.noted_at = time.monotonic()
            for stall in self.stalls.values():
                stall.is_answered(by_probe=True)  # it has gone since
            return
        if self.incident.down_since < math.inf:
            self.incident.over()
            self.limiter.resume()
        for stall in self.stalls.values():
            if stall.probe is not None and stall.is_probed:
                error = await self._probed(stall.probe, seconds if stall.is_cheap else stall.seconds)
                if error is None or not is_down(error):
                    stall.is_answered(by_probe=True)

    async def _probed(self, message: Message, seconds: float) -> ServiceError | None:
        """Return what is wrong with the reply to a probe, None if nothing; raise BudgetError if it is not admitted."""
        headers = {**self._headers, **message.headers} if message is not HEALTH else {}
        if message.admit is not None:
            await message.admit()
        try:
            sending = send(self._session, message.method, self.url + message.path, message.body, headers)
            result_of(await within(seconds, sending), message.read)
        except asyncio.TimeoutError:
            return UnreachableError(f"{self._named}: no answer to {message.method} {message.path} within {seconds:g} s")
        except ServiceError as error:
            return error
        return None

    def stuck_in(self, since: float, otherwise: float) -> float:
        """Return the seconds until a request counts as stuck; 0 if it does now.

        Args:
            since: when it was sent, on `time.monotonic()`.
            otherwise: seconds after which it does where nothing is known of the service.
        """
        now = time.monotonic()
        left = since + self._pace.stuck_after(otherwise) - now
        if left > 0:
            return left
        if self._pace.has_answered_since(since) or self._has_others() or self.is_known_gateway:
            return 0.0
        if self._gateway is None:
            self._gateway = asyncio.create_task(self._ask_gateway())
        return SOON  # the only server: all that was sent since waits alike

    @property
    def is_known_gateway(self) -> bool:
        """Whether it was found to pass requests on to several servers."""
        task = self._gateway
        return task is not None and task.done() and not task.cancelled() and task.result()

    async def is_gateway(self, seconds: float) -> bool:
        """Return whether it passes requests on to several servers, so that the next try may reach another one.

        Args:
            seconds: for which the answer is waited for at most; until there is one it counts as no gateway.
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
            reply = await within(PING_TIMEOUT, send(self._session, "GET", url, None, {}))
        except (asyncio.TimeoutError, ServiceError):
            self._gateway = None
            return False
        return reply.status == 200 and b'"ok"' in reply.data

    def close(self) -> None:
        """End the watch."""
        self.incident.over()
        for one in (self._watch, self._round, self._gateway):
            if one is not None:
                one.cancel()
