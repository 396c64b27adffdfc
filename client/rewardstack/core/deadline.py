"""How long a sample may take.

A timeout counts from the last sign of progress: the sample's arrival, its being sent, or, while it waits for its turn,
whatever the service answered last. A large batch therefore does not time out behind itself, while a service that is
gone fails its samples in time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from rewardstack.core.json_types import is_finite

HEADER = "X-Request-Deadline-Ms"
"""Milliseconds that the sender will still wait; servers drop work that nobody waits for."""
LONGEST = 86_400.0
"""Seconds of the longest timeout that a caller may name: a day, as in the settings."""
TIMEOUT = f"seconds above 0 and at most {LONGEST:g}"
"""What a timeout may be, for errors."""


def read_timeout(value: Any) -> float | None:
    """Return the seconds of a timeout that a caller names, None if the value is none (see `TIMEOUT`)."""
    return float(value) if is_finite(value) and 0 < value <= LONGEST else None


def read_header(text: str) -> float | None:
    """Return the seconds that `HEADER` leaves, at most `LONGEST`; None if it is no finite number of 0 or more."""
    try:
        milliseconds = float(text)
    except ValueError:
        return None
    return min(milliseconds / 1000, LONGEST) if 0 <= milliseconds < math.inf else None


class Clock(Protocol):
    """Something that makes progress."""

    @property
    def last_progress(self) -> float:
        """When it last made progress, on `time.monotonic()`."""
        ...


class Awaited(Protocol):
    """Something that is waited for."""

    def cause(self) -> str:
        """Why it has not answered, as far as that is known."""
        ...


class Deadline:
    """How long one caller waits.

    Its attribute `awaited` is the service that something of the call was last sent to, None before that; `allowed` are
    the seconds that it waits where there is no progress; `abandoned` says that the caller has gone.

    Args:
        timeout: seconds without progress after which the caller gives up.
        limit: seconds after which it gives up whatever happens; None for no limit.
    """

    __slots__ = ("_expires", "_queues", "abandoned", "allowed", "awaited", "limit_at", "timeout")

    def __init__(self, timeout: float, limit: float | None = None) -> None:
        now = time.monotonic()
        self.timeout = timeout
        self.allowed = timeout if limit is None else min(timeout, limit)
        self.limit_at = math.inf if limit is None else now + limit
        self._expires = now + timeout
        self._queues: dict[Clock, int] = {}
        self.awaited: Awaited | None = None
        self.abandoned = False

    def progress(self) -> None:
        """Notes that something of the call was sent: the timeout counts anew, the limit stays."""
        self._expires = max(self._expires, time.monotonic() + self.timeout)

    def enter_queue(self, clock: Clock) -> None:
        """Notes that something of the call waits for its turn at a service, whose progress counts."""
        self._queues[clock] = self._queues.get(clock, 0) + 1

    def leave_queue(self, clock: Clock) -> None:
        """Notes that it waits no longer."""
        self._queues[clock] -= 1
        if not self._queues[clock]:
            del self._queues[clock]

    def remaining(self) -> float:
        """Seconds left, negative once it has passed."""
        expires = self._expires
        for clock in self._queues:
            expires = max(expires, clock.last_progress + self.timeout)
        return min(expires, self.limit_at) - time.monotonic()


class SharedDeadline:
    """How long all who share one call wait: as long as the most patient of them.

    Its attribute `attempt_bounds` is the seconds that one attempt may take, and when it ends at the latest on
    `time.monotonic()`: both are said to the service. `awaited` is the service that the call was last sent to.

    Args:
        deadline: of the one who asks.
        others: of who else waits.
    """

    __slots__ = ("_deadlines", "_queues", "attempt_bounds", "awaited")

    def __init__(self, deadline: Deadline, *others: Deadline) -> None:
        self._deadlines = {id(deadline): deadline}
        self._queues: list[Clock] = []
        self.awaited: Awaited | None = None
        self.attempt_bounds = deadline.timeout, deadline.limit_at
        for other in others:
            self.join(other)

    @property
    def timeout(self) -> float:
        """Seconds one attempt may take."""
        return self.attempt_bounds[0]

    @property
    def allowed(self) -> float:
        """Seconds that the most patient waits where there is no progress."""
        return max(deadline.allowed for deadline in self._deadlines.values())

    @property
    def abandoned(self) -> bool:
        """Whether all who waited have gone."""
        return all(deadline.abandoned for deadline in self._deadlines.values())

    def absorb(self, other: SharedDeadline) -> None:
        """Lets all who wait under `other` wait for this call."""
        for deadline in other._deadlines.values():
            self.join(deadline)

    def join(self, deadline: Deadline) -> None:
        """Lets one more caller wait for the call."""
        if id(deadline) in self._deadlines:
            return
        self._deadlines[id(deadline)] = deadline
        timeout, limit_at = self.attempt_bounds
        self.attempt_bounds = max(timeout, deadline.timeout), max(limit_at, deadline.limit_at)
        deadline.awaited = self.awaited or deadline.awaited
        for clock in self._queues:
            deadline.enter_queue(clock)

    def waits_for(self, service: Awaited) -> None:
        """Notes which service the call is for, so that whoever gives up can say why it has not answered."""
        self.awaited = service
        for deadline in self._deadlines.values():
            deadline.awaited = service

    def progress(self) -> None:
        """Notes that something of the call was sent: everyone's timeout counts anew."""
        for deadline in self._deadlines.values():
            deadline.progress()

    def sent(self) -> AttemptTimeout:
        """Notes that the call is sent now: everyone's timeout counts anew; gives how long its attempts may take."""
        self.progress()
        return AttemptTimeout(self, time.monotonic())

    def enter_queue(self, clock: Clock) -> None:
        """Notes that the call waits for its turn at a service, whose progress counts for everyone."""
        self._queues.append(clock)
        for deadline in self._deadlines.values():
            deadline.enter_queue(clock)

    def leave_queue(self, clock: Clock) -> None:
        """Notes that it waits no longer."""
        self._queues.remove(clock)
        for deadline in self._deadlines.values():
            deadline.leave_queue(clock)

    @contextmanager
    def queued(self, clock: Clock) -> Iterator[None]:
        """While the call waits for its turn at a service."""
        self.enter_queue(clock)
        try:
            yield
        finally:
            self.leave_queue(clock)

    def remaining(self) -> float:
        """Seconds left, negative once the last has given up."""
        return max([deadline.remaining() for deadline in self._deadlines.values()])


class AttemptTimeout:
    """How long one attempt may take: others with more time may join while it runs.

    Args:
        deadline: of all who wait.
        since: when the call was first sent, or sent again after the service had made progress.
    """

    __slots__ = ("deadline", "since")

    def __init__(self, deadline: SharedDeadline, since: float) -> None:
        self.deadline = deadline
        self.since = since

    def left(self) -> float:
        """Seconds, negative once it is over."""
        timeout, limit_at = self.deadline.attempt_bounds
        return min(self.since + timeout, limit_at) - time.monotonic()


def why_late(deadline: Deadline | SharedDeadline, call: SharedDeadline | None = None, otherwise: str = "") -> str:
    """That no answer came in time, and what is known of the service that was to give it.

    Args:
        deadline: of who gives up.
        call: that it has waited for; None for its own.
        otherwise: what is known where nothing was sent yet.
    """
    awaited = (call.awaited if call is not None else None) or deadline.awaited
    cause = awaited.cause() if awaited is not None else otherwise
    return f"no answer within {round(deadline.allowed, 2):g} s{'; ' if cause else ''}{cause}"
