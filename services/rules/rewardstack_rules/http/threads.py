"""Threads that answer requests, so many at a time; a thread that waits for a model lets another one work."""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")

log = logging.getLogger(__name__)


class Threads:
    """Run calls in the order in which they come, in threads.

    Args:
        limit: calls that run at the same time, except those that are `lent`.
    """

    def __init__(self, limit: int) -> None:
        self._free = limit
        """Below 0 while some that were lent are back and their substitutes have not ended yet."""
        self._calls: deque[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = deque()
        self._pool = ThreadPoolExecutor(sys.maxsize)  # makes a thread when none is idle
        self._lock = Lock()

    def submit(self, call: Callable[..., T], *arguments: Any) -> Future[T]:
        """Run a call as soon as a thread is free; return the future of its result."""
        future: Future[T] = Future()
        with self._lock:
            self._calls.append((future, call, arguments))
            starts = self._free > 0
            self._free -= starts
        if starts:
            self._start()
        return future

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let another call run while this one, which calls this method, waits."""
        with self._lock:
            starts = bool(self._calls) and self._free >= 0
            self._free += not starts
        if starts:
            self._start()
        try:
            yield
        finally:
            with self._lock:
                self._free -= 1

    def shutdown(self, wait: bool = True) -> None:
        """Take no more calls."""
        self._pool.shutdown(wait)

    def _start(self) -> None:
        try:
            self._pool.submit(self._work)
        except RuntimeError as error:  # the system allows no more threads, or the server is shutting down
            log.warning("no further thread: %s; fewer requests are answered at the same time", error)
            with self._lock:
                self._free += 1

    def _work(self) -> None:
        while (found := self._next()) is not None:
            future, call, arguments = found
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = call(*arguments)
            except BaseException as error:  # noqa: BLE001 - the future raises it
                future.set_exception(error)
            else:
                future.set_result(result)

    def _next(self) -> tuple[Future[Any], Callable[..., Any], tuple[Any, ...]] | None:
        with self._lock:
            if self._calls and self._free >= 0:
                return self._calls.popleft()
            self._free += 1
            return None
