"""Limit the number of slow requests: those that wait for judges, embedding servers or isolated processes.

While it waits, a slow request does not count toward REWARD_THREADS (`working.lend_place`). Otherwise, requests that
wait for a hanging judge or for busy isolated processes would use up the threads, and block all other requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from flask import Flask, current_app, g
from prometheus_client import Gauge

from rewardstack.errors import OverloadError
from rewardstack_rules.http.admission import Budget
from rewardstack_rules.http.working import lend_place

EXTENSION = "rewardstack_waiting"

WAITING = Gauge(
    "rewardstack_waiting_requests",
    "Requests that wait for models or isolated processes; they do not count toward REWARD_THREADS.",
    multiprocess_mode="livesum",
)


class WaitingRequests:
    """The slow requests of this process, counted by tenant.

    Args:
        limit: maximum number of requests that wait at the same time.
        max_bytes: maximum total size of their bodies, in bytes, not counting the first `FREE_BYTES` of each.
    """

    def __init__(self, limit: int, max_bytes: int) -> None:
        self._limit = limit
        self._counts: Counter[str] = Counter()
        self._lock = Lock()
        self._bytes = Budget(max_bytes)

    def is_full(self) -> bool:
        """Return whether the limit is reached, or a tenant with waiting requests would be refused another request."""
        with self._lock:
            total = self._counts.total()
            return total >= self._limit or any(map(self._is_refused, self._counts))

    @contextmanager
    def count_waiting(self) -> Iterator[None]:
        """Count the current request as waiting while the block runs, and let another request run in the meantime.

        Raises:
            OverloadError: the limit of waiting requests or of their bytes is reached.
        """
        self._enter(g.tenant)
        try:
            g.charge.move(self._bytes)
            with lend_place():
                yield
        finally:
            self._leave(g.tenant)

    def _is_refused(self, tenant: str) -> bool:
        """Return whether another request of a tenant would be refused.

        A tenant gets another slot only while it holds fewer slots than are free. Therefore a tenant never holds more
        than half of all slots (rounded up). Without keys, all clients are one tenant, which may hold all slots.
        """
        total = self._counts.total()
        return self._counts[tenant] >= self._limit - (total if tenant else 0)

    def _enter(self, tenant: str) -> None:
        with self._lock:
            if self._is_refused(tenant):
                raise OverloadError(
                    "too many requests wait for judges, embeddings or slow rules "
                    f"({self._counts[tenant]} from this client); REWARD_WAITING_REQUESTS allows {self._limit} in "
                    "total, and each API key may have at most half; try again"
                )
            self._counts[tenant] += 1
        WAITING.inc()

    def _leave(self, tenant: str) -> None:
        with self._lock:
            self._counts[tenant] -= 1
            if not self._counts[tenant]:
                del self._counts[tenant]
        WAITING.dec()


def install(app: Flask, limit: int, max_bytes: int) -> None:
    """Attach a `WaitingRequests` with these arguments to `app`."""
    app.extensions[EXTENSION] = WaitingRequests(limit, max_bytes)


def waiting_requests() -> WaitingRequests:
    """Return the `WaitingRequests` of the app that answers the current request."""
    found: WaitingRequests = current_app.extensions[EXTENSION]
    return found
