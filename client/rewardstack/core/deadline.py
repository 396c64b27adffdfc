"""Deadlines of samples.

The timeout of a sample restarts when it arrives, when it is sent, and, while it is queued, whenever the service answers
any request. A large batch therefore does not time out in the queue, but samples of a dead service do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from rewardstack.core.json_types import is_finite

HEADER = "X-Request-Deadline-Ms"
"""HTTP header with the milliseconds that the sender still waits; servers then drop the work."""
LONGEST = 86_400.0
"""Longest timeout in seconds that a caller may set: a day, as in the settings."""
TIMEOUT = f"seconds above 0 and at most {LONGEST:g}"
"""The valid range of a timeout, for errors."""


def read_timeout(value: Any) -> float | None:
    """Return a timeout in seconds; None if the value is not valid (see `TIMEOUT`)."""
    return float(value) if is_finite(value) and 0 < value <= LONGEST else None


def read_header(text: str) -> float | None:
    """Parse the value of `HEADER`; return seconds, at most `LONGEST`; None if the value is invalid."""
    try:
        milliseconds = float(text)
    except ValueError:
        return None
    return min(milliseconds / 1000, LONGEST) if 0 <= milliseconds < math.inf else None


class Clock(Protocol):
    """A queue or service; each progress extends the deadlines of the calls that wait for it."""

    @property
    def last_progress(self) -> float:
        """Time of the last progress, on `time.monotonic()`."""
        ...


class Service(Protocol):
    """A service that a call waits for."""

    def cause(self) -> str:
        """Return why the service has not answered, as far as it is known."""
        ...


class Deadline:
    """The deadline of one caller.

    Attributes:
        service: service to which a part of the call was last sent; None before that.
        allowed: seconds that the caller waits without progress.
        is_abandoned: whether the caller was cancelled.

    Args:
        timeout: seconds without progress after which the caller gives up.
        limit: seconds after which the caller gives up in any case; None for no limit.
    """

    __slots__ = ("_expires", "_queues", "allowed", "is_abandoned", "limit_at", "service", "timeout")

    def __init__(self, timeout: float, limit: float | None = None) -> None:
        now = time.monotonic()
        self.timeout = timeout
        self.allowed = timeout if limit is None else min(timeout, limit)
        self.limit_at = math.inf if limit is None else now + limit
        self._expires = now + timeout
        self._queues: dict[Clock, int] = {}
        self.service: Service | None = None
        self.is_abandoned = False

    def restart(self) -> None:
        """Restart the timeout, because a part of the call was sent; the time limit does not change."""
        self._expires = max(self._expires, time.monotonic() + self.timeout)

    def enter_queue(self, clock: Clock) -> None:
        """Record that a part of the call is queued; progress of the queue extends the deadline."""
        self._queues[clock] = self._queues.get(clock, 0) + 1

    def leave_queue(self, clock: Clock) -> None:
        """Record that a part of the call has left the queue."""
        self._queues[clock] -= 1
        if not self._queues[clock]:
            del self._queues[clock]

    def remaining(self) -> float:
        """Return the seconds left, negative after the deadline."""
        expires = self._expires
        for clock in self._queues:
            expires = max(expires, clock.last_progress + self.timeout)
        return min(expires, self.limit_at) - time.monotonic()


class SharedDeadline:
    """The deadline of a call that several callers share: the latest deadline of these callers.

    Attributes:
        attempt_bounds: timeout of one attempt in seconds, and its latest possible end on `time.monotonic()`.
        service: service to which the call was last sent; None before that.

    Args:
        deadline: the first caller's deadline.
        others: the deadlines of further callers.
    """

    __slots__ = ("_deadlines", "_queues", "attempt_bounds", "service")

    def __init__(self, deadline: Deadline, *others: Deadline) -> None:
        self._deadlines = {id(deadline): deadline}
        self._queues: list[Clock] = []
        self.service: Service | None = None
        self.attempt_bounds = deadline.timeout, deadline.limit_at
        for other in others:
            self.join(other)

    @property
    def timeout(self) -> float:
        """Timeout of one attempt in seconds."""
        return self.attempt_bounds[0]

    @property
    def allowed(self) -> float:
        """Longest time in seconds that a caller waits without progress."""
        return max(deadline.allowed for deadline in self._deadlines.values())

    @property
    def is_abandoned(self) -> bool:
        """Whether all callers were cancelled."""
        return all(deadline.is_abandoned for deadline in self._deadlines.values())

    def merge(self, other: SharedDeadline) -> None:
        """Add all callers of `other` to this call."""
        for deadline in other._deadlines.values():
            self.join(deadline)

    def join(self, deadline: Deadline) -> None:
        """Add a caller to the call."""
        if id(deadline) in self._deadlines:
            return
        self._deadlines[id(deadline)] = deadline
        timeout, limit_at = self.attempt_bounds
        self.attempt_bounds = max(timeout, deadline.timeout), max(limit_at, deadline.limit_at)
        deadline.service = self.service or deadline.service
        for clock in self._queues:
            deadline.enter_queue(clock)

    def set_service(self, service: Service) -> None:
        """Set the service of the call; the error of a caller that gives up reports the service's state."""
        self.service = service
        for deadline in self._deadlines.values():
            deadline.service = service

    def restart(self) -> None:
        """Restart the timeouts of all callers, because a part of the call was sent."""
        for deadline in self._deadlines.values():
            deadline.restart()

    def start_attempt(self) -> AttemptTimeout:
        """Restart the timeouts of all callers, because the call is sent now; return the timeout of the attempt."""
        self.restart()
        return AttemptTimeout(self, time.monotonic())

    def enter_queue(self, clock: Clock) -> None:
        """Record that the call is queued; progress of the queue extends the deadlines of all callers."""
        self._queues.append(clock)
        for deadline in self._deadlines.values():
            deadline.enter_queue(clock)

    def leave_queue(self, clock: Clock) -> None:
        """Record that the call has left the queue."""
        self._queues.remove(clock)
        for deadline in self._deadlines.values():
            deadline.leave_queue(clock)

    @contextmanager
    def in_queue(self, clock: Clock) -> Iterator[None]:
        """Treat the call as queued within this context."""
        self.enter_queue(clock)
        try:
            yield
        finally:
            self.leave_queue(clock)

    def remaining(self) -> float:
        """Return the seconds left, negative after the last caller's deadline."""
        return max([deadline.remaining() for deadline in self._deadlines.values()])


class AttemptTimeout:
    """The timeout of an attempt to send a call; callers with more time may join during the attempt.

    Args:
        deadline: the deadline that all callers share.
        since: start of the timeout, on `time.monotonic()`; not reset by a retry unless the service has answered.
    """

    __slots__ = ("deadline", "since")

    def __init__(self, deadline: SharedDeadline, since: float) -> None:
        self.deadline = deadline
        self.since = since

    def left(self) -> float:
        """Return the seconds left, negative after the timeout."""
        timeout, limit_at = self.deadline.attempt_bounds
        return min(self.since + timeout, limit_at) - time.monotonic()


def timeout_message(
    deadline: Deadline | SharedDeadline, call: SharedDeadline | None = None, otherwise: str = ""
) -> str:
    """Return the error message of a timeout, with the known state of the service.

    Args:
        deadline: the deadline of the caller that gives up.
        call: the deadline of the call; None if the call has no deadline besides `deadline`.
        otherwise: state to report if nothing was sent yet.
    """
    service = (call.service if call is not None else None) or deadline.service
    cause = service.cause() if service is not None else otherwise
    return f"no answer within {round(deadline.allowed, 2):g} s{'; ' if cause else ''}{cause}"
