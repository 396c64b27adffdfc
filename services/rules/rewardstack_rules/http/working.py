"""Limit the requests that a process works on at the same time. Others wait for their turn, in a thread each.

A request that waits for a model or an isolated process lends its place to others (`Places.lend`). There are more
threads than all these requests together (`gunicorn_conf`), so probes and refusals, which need no place, are always
answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock

from flask import Flask, current_app, g, request

from rewardstack.errors import OverloadError
from rewardstack_rules.http.request_log import QUIET

EXTENSION = "rewardstack_places"


class Places:
    """The places of requests that a process works on.

    Args:
        limit: maximum number of requests at the same time. Those inside `lend` do not count; when they leave it, the
            limit may be exceeded for a while.
        queue: maximum number of requests that wait for a place.
    """

    def __init__(self, limit: int, queue: int) -> None:
        self._free = limit
        """Number of free places. It is negative if requests have left `lend` while all places were in use."""
        self._queue: deque[Event] = deque()
        self._max_queue = queue
        self._lock = Lock()

    def enter(self) -> None:
        """Take a place; wait for it if none is free, behind those that came before.

        Raises:
            OverloadError: too many requests wait for a place.
        """
        with self._lock:
            if self._free > 0:
                self._free -= 1
                return
            if len(self._queue) >= self._max_queue:
                raise OverloadError(f"{self._max_queue} requests wait for a thread of this process; try again")
            turn = Event()
            self._queue.append(turn)
        turn.wait()

    def leave(self) -> None:
        """Give a place back."""
        with self._lock:
            if self._free >= 0 and self._queue:
                self._queue.popleft().set()
            else:
                self._free += 1

    @contextmanager
    def lend(self) -> Iterator[None]:
        """Let other requests have the place within the block."""
        self.leave()
        try:
            yield
        finally:
            with self._lock:
                self._free -= 1


def install(app: Flask, limit: int, queue: int) -> None:
    """Let every request of `app` take a place, except for probes.

    Call this after installing hooks that refuse requests.

    Args:
        app: the application of this process.
        limit: maximum number of requests at the same time.
        queue: maximum number of requests that wait.
    """
    here = app.extensions[EXTENSION] = Places(limit, queue)

    def begin() -> None:
        if request.path not in QUIET:
            here.enter()
            g.has_place = True

    def end(_: BaseException | None) -> None:
        if g.pop("has_place", False):
            here.leave()

    app.before_request(begin)
    app.teardown_request(end)


@contextmanager
def lend_place() -> Iterator[None]:
    """Let other requests have the current request's place within the block, if it has one."""
    if not g.get("has_place"):
        yield
        return
    places: Places = current_app.extensions[EXTENSION]
    with places.lend():
        yield
