"""A thread pool that answers a limited number of requests at a time, not counting those that wait (`lend_thread`)."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

T = TypeVar("T")
Call = tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]

log = logging.getLogger(__name__)


class Threads:
    """Runs calls in threads, in order of submission.

    Args:
        limit: maximum number of calls that run at the same time. Calls inside `lend_thread` do not count; when they
            leave it, the limit may be exceeded for a while.
    """

    def __init__(self, limit: int) -> None:
        self._free = limit
        """Number of calls that may still start. It is negative if calls have left `lend_thread` while all threads were
        in use."""
        self._idle = 0
        self._calls: deque[Call] = deque()
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._lock = Lock()

    def submit(self, call: Callable[..., T], *arguments: Any) -> Future[T]:
        """Queue a call, which runs once a thread is free; return the future of its result."""
        future: Future[T] = Future()
        with self._lock:
            self._calls.append((future, call, arguments))
            if self._free > 0:
                self._free -= 1
                self._start()
        return future

    @contextmanager
    def lend_thread(self) -> Iterator[None]:
        """Do not count the current thread toward the limit while it waits within the block."""
        with self._lock:
            if self._calls and self._free >= 0:
                self._start()
            else:
                self._free += 1
        try:
            yield
        finally:
            with self._lock:
                self._free -= 1

    def shutdown(self, wait: bool = True) -> None:
        """Do nothing: gunicorn's worker waits for requests in flight, and the threads end with the process."""

    def _start(self) -> None:
        """Wake an idle thread, or start one. The caller has already taken it from `_free`; on failure, put it back."""
        if self._idle:
            self._idle -= 1
            self._wake.put(None)
            return
        try:
            Thread(target=self._run, name="request", daemon=True).start()
        except RuntimeError as error:  # the system allows no more threads
            log.warning("cannot start a thread: %s; fewer requests are answered at the same time", error)
            self._free += 1

    def _run(self) -> None:
        while True:
            while (call := self._next()) is not None:
                _run_call(*call)
                del call
            self._wake.get()

    def _next(self) -> Call | None:
        with self._lock:
            if self._calls and self._free >= 0:
                return self._calls.popleft()
            self._free += 1
            self._idle += 1
            return None


def _run_call(future: Future[Any], call: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call(*arguments)
    except BaseException as error:  # noqa: BLE001 - the future raises it
        future.set_exception(error)
    else:
        future.set_result(result)
