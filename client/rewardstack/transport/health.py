"""What is known of one server: its concurrency limit, and the faults since its last success.

The limit (AIMD) starts at `FIRST_LIMIT`. Until the first failure, it rises by one with each success, and doubles every
`GROWTH_SECONDS` while all slots are taken; it never exceeds the ceiling. A slow server thus soon gets many requests.
A server that refuses excess requests gets few of them, because its first refusal comes before the limit doubles.

An overload reply halves the limit, but at most once per round trip. If even fewer requests are still in flight, the
limit falls to their number. Successes then raise the limit by one request per round trip.

Faults in a row (`RULES`) open the circuit: the server is paused with exponential backoff, and then gets a single
request. A server that refuses all requests in flight is paused in the same way. After a success, which closes the
circuit, the limit doubles every round trip, as in TCP's slow start, until the next overload reply. An outage therefore
costs a few requests, not one retry per sample.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from rewardstack.errors import OverloadError, RefusedError, ServiceError
from rewardstack.transport import timing
from rewardstack.transport.faults import RULES, Fault, backoff
from rewardstack.transport.message import Message


@dataclass(slots=True)
class Streak:
    """Faults of one kind without a success in between. Times are on `time.monotonic()`.

    Attributes:
        since: start of the faults.
        last: time of the last fault.
        next_trial_at: when the next trial may be sent.
        count: number of faults.
        trials: number of trials.
        cause: known state of the service at the last fault, if requests were left unanswered.
        probe: a cheap request that shows whether such requests are answered again; None for none.
    """

    since: float
    last: float
    next_trial_at: float
    count: int = 0
    trials: int = 0
    cause: str = ""
    probe: Message | None = None

    def start_trial(self, first: float, maximum: float) -> None:
        """Record that a trial is sent; the next one waits for a pause that grows from `first` to `maximum` seconds."""
        self.trials += 1
        self.next_trial_at = time.monotonic() + backoff(first, maximum, self.trials)


class Health:
    """The health of one server; only `admits` and the properties are questions.

    Args:
        ceiling: maximum number of requests in flight, the upper bound of the limit.

    Attributes:
        in_flight: number of requests in flight, with those that have a slot reserved.
        error: the last error; None while the server works.
        failing_since: start of the current failure.
        failed_at: time of the last error.
        refused_since: start of the current series of refused connections; infinity for none.
        is_logged: whether the current failure was logged.
        is_open: whether the circuit is open: no request is sent during the pause, and a single request after it.
        paused_until: end of the last pause; 0 for none.
        pauses: number of pauses since the last success.
        grows_at: when the limit may double; infinity for never, 0 until all slots are first taken.
        streaks: faults since the last success, by kind.
    """

    def __init__(self, ceiling: int) -> None:
        self.in_flight = 0
        self.error: ServiceError | None = None
        self.failing_since = 0.0
        self.failed_at = -math.inf
        self.refused_since = math.inf
        self.is_logged = self.is_open = False
        self.paused_until = 0.0
        self.pauses = 0
        self.streaks: dict[Fault, Streak] = {}
        self._refusals = 0
        self._ceiling = ceiling
        self._limit = float(min(ceiling, timing.FIRST_LIMIT))
        self.grows_at = 0.0 if self._limit < ceiling else math.inf
        self._slow_start_until = float(ceiling)
        self._reduced_at = 0.0

    @property
    def limit(self) -> int:
        """The current maximum number of requests in flight."""
        return int(self._limit)

    @property
    def is_usable(self) -> bool:
        """Whether the circuit is closed and the server is not paused."""
        return not self.is_open and time.monotonic() >= self.paused_until

    @property
    def down_since(self) -> float:
        """Start of the current series of lost connections, hangs and gateway errors; infinity for none."""
        streak = self.streaks.get(Fault.DOWN)
        return math.inf if streak is None else streak.since

    @property
    def takes_retry(self) -> bool:
        """Whether a request may be retried after an invalid reply; only one at a time after `FAULTY_AFTER` of them."""
        streak = self.streaks.get(Fault.INVALID)
        return streak is None or streak.count < timing.FAULTY_AFTER or time.monotonic() >= streak.next_trial_at

    @property
    def final_at(self) -> float:
        """When the server has sent only invalid replies for so long that none is retried; infinity for never."""
        streak = self.streaks.get(Fault.INVALID)
        return math.inf if streak is None or streak.count < timing.FAULTY_AFTER else streak.since + timing.FAULTY_FOR

    @property
    def is_trial_due(self) -> bool:
        """Whether the circuit is open, and a single request may be sent now."""
        return self.is_open and self.admits()

    @property
    def next_changes(self) -> tuple[float, ...]:
        """When the server may admit more requests: at the end of its pause, if its limit grows, for the next trial."""
        streak = self.streaks.get(Fault.INVALID)
        trial_at = 0.0 if streak is None else streak.next_trial_at
        return self.paused_until, self.grows_at, trial_at

    def admits(self) -> bool:
        """Return whether one more request may be sent now."""
        return self.in_flight < int(self._limit) and (not self.paused_until or time.monotonic() >= self.paused_until)

    def grow(self) -> bool:
        """Double the limit if all slots have been taken for `GROWTH_SECONDS`; return whether a request may be sent.

        Call this for a request that finds no free slot.
        """
        now = time.monotonic()
        if self.in_flight < int(self._limit) or now < self.grows_at:
            return False
        if self.grows_at > 0:
            self._limit = min(2 * self._limit, float(self._ceiling))
        self.grows_at = now + timing.GROWTH_SECONDS if self._limit < self._ceiling else math.inf
        return self.admits()

    def lower_limit(self, requests: int) -> None:
        """Lower the limit to `requests`; successes raise it again."""
        self.grows_at = math.inf
        self._limit = min(self._limit, float(requests))
        self._slow_start_until = min(self._slow_start_until, float(requests))

    def succeed(self) -> None:
        """Record a success: end all faults, close the circuit and raise the limit."""
        if self.error is not None or self.streaks:
            self.recover()
            self.streaks.clear()
        self.is_open, self.pauses = False, 0
        step = 1.0 if self._limit < self._slow_start_until else 1.0 / self._limit
        self._limit = min(self._limit + step, float(self._ceiling))

    def recover(self) -> None:
        """Record that a server that was down answers a probe; its circuit closes with the next success."""
        self.error = None
        self.refused_since = math.inf
        if self.streaks.pop(Fault.DOWN, None) is not None:
            self.paused_until = 0.0

    def blame(self, error: ServiceError) -> None:
        """Make `error` the current failure."""
        self.failed_at = time.monotonic()
        if self.error is None:
            self.failing_since, self.is_logged, self._refusals = self.failed_at, False, 0
        self.error = error
        self.refused_since = min(self.refused_since, self.failed_at) if isinstance(error, RefusedError) else math.inf
        self._refusals += isinstance(error, OverloadError)

    def describe_failure(self) -> str:
        """Return the current failure and, if it is an overload, how often it occurred; empty if there is none."""
        times = f" ({self._refusals} times)" if self._refusals > 1 and isinstance(self.error, OverloadError) else ""
        return "" if self.error is None else f"{self.error}{times}"

    def began_at(self, since: float) -> None:
        """Record that a server that is down stopped answering at `since`, on `time.monotonic()`."""
        self.failing_since = min(self.failing_since, since)
        self.streaks[Fault.DOWN].since = min(self.streaks[Fault.DOWN].since, since)

    def count(self, fault: Fault) -> Streak:
        """Count a fault and return its streak; a server that is down is not judged by its replies, and vice versa."""
        now = time.monotonic()
        for other in [one for one in self.streaks if (one is Fault.DOWN) != (fault is Fault.DOWN)]:
            del self.streaks[other]
        streak = self.streaks.get(fault)
        if streak is None or (fault is Fault.INVALID and now > streak.last + timing.FAULTS_EXPIRE_AFTER):
            streak = self.streaks[fault] = Streak(now, now, now + backoff(timing.RETRY_PAUSE, math.inf, 0))
        streak.last = now
        streak.count += 1
        return streak

    def fail(self, fault: Fault, error: ServiceError, sent_at: float, *, ejects: bool, opens: bool = False) -> None:
        """Record a fault.

        Args:
            fault: what the error shows.
            error: the error.
            sent_at: when the request was sent, on `time.monotonic()`.
            ejects: whether other servers are left, so that this one may be skipped, and for longer.
            opens: whether the circuit opens now, without further faults.
        """
        rule, now = RULES[fault], time.monotonic()
        self.blame(error)
        streak = self.count(fault)
        is_due = opens or 0 < rule.opens_after <= streak.count
        if rule.lowers_limit or (rule.opens_after and (ejects or rule.opens_alone)):
            self.grows_at = math.inf
            if is_due and (ejects or rule.opens_alone):
                self._open(ejects=ejects)
            elif rule.lowers_limit:
                self._halve(sent_at)
        if isinstance(error, OverloadError) and error.retry_after > 0 and rule.lowers_limit:
            self.paused_until = max(self.paused_until, now + min(error.retry_after, timing.RETRY_AFTER_MAX))

    def _open(self, *, ejects: bool) -> None:
        self.is_open = True
        self._limit = 1.0
        self._slow_start_until = float(self._ceiling)
        if ejects:
            self._pause(timing.EJECTION_FIRST, timing.EJECTION_MAX)
        else:
            self._pause(timing.BACKOFF_FIRST, timing.BACKOFF_MAX)

    def _halve(self, sent_at: float) -> None:
        """Lower the limit after an overload reply to a request that is still counted as in flight."""
        others = max(0, self.in_flight - 1)
        self.is_open = False
        if sent_at >= self._reduced_at:
            self._limit /= 2
            self._reduced_at = time.monotonic()
        self._limit = max(1.0, min(self._limit, float(others)))
        self._slow_start_until = self._limit
        if others == 0:
            self._slow_start_until = float(self._ceiling)
            self._pause(timing.BACKOFF_FIRST, timing.BACKOFF_MAX)

    def _pause(self, first: float, maximum: float) -> None:
        now = time.monotonic()
        if now >= self.paused_until:
            self.paused_until = now + backoff(first, maximum, self.pauses)
            self.pauses += 1
