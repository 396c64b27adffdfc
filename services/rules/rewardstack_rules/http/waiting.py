"""Requests that wait for a model hold no thread, are limited in number, and end when their client goes.

A judge that hangs would otherwise take every thread of the server, and with them the requests for rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, TimeoutError
from contextlib import contextmanager, nullcontext
from threading import Lock
from typing import TypeVar

from flask import Flask, current_app, g, request
from prometheus_client import Gauge

from rewardstack.errors import OverloadError
from rewardstack_rules.http.admission import Budget
from rewardstack_rules.http.connection import client_of
from rewardstack_rules.http.errors import ApiError

EXTENSION = "rewardstack_waiting"
CHECK_SECONDS = 1.0
"""How often a request that is being scored looks whether its client is still there."""
CLIENT_GONE = 499
"""The status that nginx logs for it; nobody reads the reply."""

WAITING = Gauge(
    "rewardstack_waiting_requests",
    "Requests that wait for a judge or an embedding server.",
    multiprocess_mode="livesum",
)

T = TypeVar("T")


class WaitingRequests:
    """The requests of this process that wait for models, counted by tenant.

    Args:
        limit: how many may wait at the same time.
        max_bytes: of their bodies, small ones aside.
    """

    def __init__(self, limit: int, max_bytes: int) -> None:
        self._limit = limit
        self._counts: Counter[str] = Counter()
        self._lock = Lock()
        self._bytes = Budget(max_bytes)

    def is_full(self) -> bool:
        """Return whether a new tenant's request would be refused."""
        return self._counts.total() >= self._limit

    @contextmanager
    def place(self) -> Iterator[None]:
        """Count the current request while the block runs, and lend its thread to another one.

        Raises:
            OverloadError: as many requests wait, or as many bytes of bodies, as may.
        """
        self._enter(g.tenant)
        try:
            g.charge.move(self._bytes)
            client = client_of(request.environ)
            with nullcontext() if client is None else client.lent_thread():
                yield
        finally:
            self._leave(g.tenant)

    def _enter(self, tenant: str) -> None:
        """Count a request; a tenant may take as many places as are free, so that others find some, too."""
        with self._lock:
            total = self._counts.total()
            if self._counts[tenant] >= self._limit - total:
                raise OverloadError(
                    f"{total} requests of this process wait for a judge or an embedding server "
                    f"(REWARD_WAITING_REQUESTS={self._limit}, half of them for one key); try again"
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
    """Give `app` its `WaitingRequests`; arguments as theirs."""
    app.extensions[EXTENSION] = WaitingRequests(limit, max_bytes)


def waiting_requests() -> WaitingRequests:
    """Return those of the app that answers the current request."""
    found: WaitingRequests = current_app.extensions[EXTENSION]
    return found


def result_for_client(work: Future[T]) -> T:
    """Return the result of the current request's work, as long as its client is there.

    Raises:
        ApiError: 499; the client has gone.
        Exception: whatever the work raised.
    """
    client = client_of(request.environ)
    while True:
        try:
            return work.result(CHECK_SECONDS)
        except TimeoutError:
            if work.done():
                return work.result()
        if client is not None and client.is_gone():
            raise ApiError(CLIENT_GONE, "the client has gone; its samples are dropped")
