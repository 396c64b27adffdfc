"""Deadlines of samples.

A sample's timeout starts when the sample arrives, and restarts when the sample is first sent. While the sample is
queued, the timeout restarts whenever the service answers any request. A retry restarts the timeout only if the service
has answered some request since the last restart, which shows that it is alive. A large batch therefore does not time
out in the queue, but samples for a dead service do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from rewardstack.cause import Cause
from rewardstack.core.json_types import is_finite
from rewardstack.errors import DeadlineError

HEADER = "X-Request-Deadline-Ms"
"""HTTP header with the milliseconds that the sender still waits; after that, servers drop the work."""
MAX_TIMEOUT = 86_400.0
"""Maximum timeout that a caller may set, in seconds: a day, as in the settings."""
TIMEOUT_RANGE = f"seconds above 0 and at most {MAX_TIMEOUT:g}"
"""The valid range of a timeout, for errors."""


def read_timeout(value: Any) -> float | None:
    """Return a timeout in seconds; None if the value is not valid (see `TIMEOUT_RANGE`)."""
    return float(value) if is_finite(value) and 0 < value <= MAX_TIMEOUT else None


def read_header(text: str) -> float | None:
    """Parse the value of `HEADER`; return seconds, at most `MAX_TIMEOUT`; None if the value is invalid."""
    try:
        milliseconds = float(text)
    except ValueError:
        return None
    return min(milliseconds / 1000, MAX_TIMEOUT) if 0 <= milliseconds < math.inf else None


class ProgressSource(Protocol):
    """A queue or service that callers wait for; its progress extends their deadlines."""

    @property
    def last_progress(self) -> float:
        """Time of the last progress, on `time.monotonic()`."""
        ...


class Service(Protocol):
    """A service that a call waits for."""

    def cause(self) -> str:
        """Return why the service has not answered, as far as it is known."""
        ...

    def known_cause(self) -> Cause:
        """Return the cause of the current failure; `TIMEOUT` if there is none."""
        ...


class Deadline:
    """The deadline of one caller, which waits for one or more requests.

    Attributes:
        service: the service that handles the caller's last request, even if the request is still queued; None before
            the first request.
        effective_timeout: `timeout`, or `limit` if that is shorter.
        limit_at: when `limit` ends, on `time.monotonic()`; infinity without a limit.
        is_abandoned: whether the caller was cancelled.

    Args:
        timeout: idle timeout in seconds, which restarts when a request is sent, or a request's queue makes progress.
        limit: total timeout in seconds, which never restarts; None for no total timeout.
    """

    __slots__ = ("_expires", "_queues", "effective_timeout", "is_abandoned", "limit_at", "service", "timeout")

    def __init__(self, timeout: float, limit: float | None = None) -> None:
        now = time.monotonic()
        self.timeout = timeout
        self.effective_timeout = timeout if limit is None else min(timeout, limit)
        self.limit_at = math.inf if limit is None else now + limit
        self._expires = now + timeout
        self._queues: dict[ProgressSource, int] = {}
        self.service: Service | None = None
        self.is_abandoned = False

    def restart(self) -> None:
        """Restart the timeout, because a request of the caller was sent; the limit does not change."""
        self._expires = max(self._expires, time.monotonic() + self.timeout)

    def enter_queue(self, queue: ProgressSource) -> None:
        """Record that a request of the caller is queued; progress of the queue extends the deadline."""
        self._queues[queue] = self._queues.get(queue, 0) + 1

    def leave_queue(self, queue: ProgressSource) -> None:
        """Record that a request of the caller has left the queue."""
        self._queues[queue] -= 1
        if not self._queues[queue]:
            del self._queues[queue]

    def remaining(self) -> float:
        """Return the seconds left, negative after the deadline."""
        expires = self._expires
        for queue in self._queues:
            expires = max(expires, queue.last_progress + self.timeout)
        return min(expires, self.limit_at) - time.monotonic()


class SharedDeadline:
    """The deadline of a call (a request or a batch) that several callers share: the latest of their deadlines.

    Attributes:
        attempt_bounds: the limits of an attempt to send the call, as a pair: the longest `timeout` of the callers, and
            their latest `limit_at`.
        service: the service that handles the call, even if the call is still queued; None before a service handles it.

    Args:
        deadline: the first caller's deadline.
        others: the deadlines of further callers.
    """

    __slots__ = ("_deadlines", "_queues", "attempt_bounds", "service")

    def __init__(self, deadline: Deadline, *others: Deadline) -> None:
        self._deadlines = {id(deadline): deadline}
        self._queues: list[ProgressSource] = []
        self.service: Service | None = None
        self.attempt_bounds = deadline.timeout, deadline.limit_at
        for other in others:
            self.join(other)

    @property
    def timeout(self) -> float:
        """The longest timeout of the callers, in seconds."""
        return self.attempt_bounds[0]

    @property
    def effective_timeout(self) -> float:
        """The longest effective timeout of the callers, in seconds."""
        return max(deadline.effective_timeout for deadline in self._deadlines.values())

    @property
    def is_abandoned(self) -> bool:
        """Whether all callers were cancelled."""
        # Callers are usually cancelled in the order in which they joined, so check the last one first.
        return all(deadline.is_abandoned for deadline in reversed(self._deadlines.values()))

    def merge(self, other: Deadline | SharedDeadline) -> None:
        """Add the caller of `other` to this call; if `other` is a `SharedDeadline`, add all its callers."""
        for deadline in (other,) if isinstance(other, Deadline) else other._deadlines.values():
            self.join(deadline)

    def join(self, deadline: Deadline) -> None:
        """Add a caller to the call."""
        if id(deadline) in self._deadlines:
            return
        self._deadlines[id(deadline)] = deadline
        timeout, limit_at = self.attempt_bounds
        self.attempt_bounds = max(timeout, deadline.timeout), max(limit_at, deadline.limit_at)
        deadline.service = self.service or deadline.service
        for queue in self._queues:
            deadline.enter_queue(queue)

    def set_service(self, service: Service) -> None:
        """Set the service that handles the call; if a caller gives up, its error reports the state of this service."""
        self.service = service
        for deadline in self._deadlines.values():
            deadline.service = service

    def restart(self) -> None:
        """Restart the timeouts of all callers, because a request of the call was sent."""
        for deadline in self._deadlines.values():
            deadline.restart()

    def start_attempt(self) -> AttemptTimeout:
        """Restart the timeouts of all callers, because the call is sent now; return the time limit of the attempt."""
        self.restart()
        return AttemptTimeout(self, time.monotonic())

    def enter_queue(self, queue: ProgressSource) -> None:
        """Record that the call is queued; progress of the queue extends the deadlines of all callers."""
        self._queues.append(queue)
        for deadline in self._deadlines.values():
            deadline.enter_queue(queue)

    def leave_queue(self, queue: ProgressSource) -> None:
        """Record that the call has left the queue."""
        self._queues.remove(queue)
        for deadline in self._deadlines.values():
            deadline.leave_queue(queue)

    @contextmanager
    def in_queue(self, queue: ProgressSource) -> Iterator[None]:
        """Treat the call as queued within this context."""
        self.enter_queue(queue)
        try:
            yield
        finally:
            self.leave_queue(queue)

    def remaining(self) -> float:
        """Return the seconds left, negative after the last caller's deadline."""
        return max([deadline.remaining() for deadline in self._deadlines.values()])


class AttemptTimeout:
    """The time limit of the attempts to send a call; it grows when callers with more time join.

    A retry continues the time limit of the previous attempt. But if the service has answered any request since that
    time limit started, the service is alive, and the retry starts a new time limit.

    Args:
        deadline: the deadline that all callers share.
        since: start of the time limit, on `time.monotonic()`.
    """

    __slots__ = ("deadline", "since")

    def __init__(self, deadline: SharedDeadline, since: float) -> None:
        self.deadline = deadline
        self.since = since

    def remaining(self) -> float:
        """Return the seconds left, negative after the time limit."""
        timeout, limit_at = self.deadline.attempt_bounds
        return min(self.since + timeout, limit_at) - time.monotonic()


def timeout_error(
    deadline: Deadline | SharedDeadline, call_deadline: Deadline | SharedDeadline, queue_state: str
) -> DeadlineError:
    """Return the error about a timeout, with the known state of the service.

    Args:
        deadline: the deadline that has passed.
        call_deadline: the deadline of the call that the caller has joined; if it knows a service, this is reported.
        queue_state: state of the queue, to report if no request was passed to a service yet.
    """
    service = call_deadline.service or deadline.service
    state = service.cause() if service is not None else queue_state
    return DeadlineError(
        f"no answer within {round(deadline.effective_timeout, 2):g} s{'; ' if state else ''}{state}",
        cause=None if service is None else service.known_cause(),
    )
