"""One event loop in a daemon thread carries everything; blocking callers and other loops hand it coroutines.

After a fork the child builds its own. It never touches what it inherited: closing an inherited session would
unregister the parent's sockets from the epoll instance that both share.
"""

from __future__ import annotations

import asyncio
import atexit
import math
import os
import selectors
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from rewardstack.errors import LoopError

T = TypeVar("T")

CANCELLING_TIME = 0.25
"""Seconds that the interpreter's exit waits for open calls to be cancelled."""
CLOSING_TIME = 3.0
"""Seconds that it waits for all that comes at the end: a cache may still be written to (`rewardstack.cache.writer`)."""


async def within(seconds: float, work: Awaitable[T]) -> T:
    """Return the result of `work`, which is cancelled if it takes longer, or with the caller.

    Unlike `asyncio.wait_for` before Python 3.12, it loses no cancellation that comes in the moment of the result:
    work would be done for a caller that has gone.

    Raises:
        asyncio.TimeoutError: it takes longer.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait((task,), timeout=None if seconds == math.inf else seconds)
        if not task.done():
            raise asyncio.TimeoutError
    finally:
        task.cancel()
    return task.result()


class LoopThread:
    """An event loop that runs in a daemon thread of its own; awaits what is in `closing` before it stops."""

    def __init__(self) -> None:
        self._stopping = False
        self.closing: list[Callable[[], Awaitable[None]]] = []
        self.selector = selectors.DefaultSelector()
        self.loop = asyncio.SelectorEventLoop(self.selector)
        self._thread = threading.Thread(target=self._run, name="rewardstack", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def run(self, work: Coroutine[Any, Any, T], wait: Callable[[Future[T]], T] = Future.result) -> T:
        """Runs `work` on the loop and waits for its result.

        Args:
            work: is cancelled if `wait` raises.
            wait: returns the future's result.

        Raises:
            LoopError: this is the loop's own thread, which would wait for itself.
        """
        if threading.current_thread() is self._thread:
            work.close()
            raise LoopError("a blocking call from rewardstack's own event loop; await the async twin instead")
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return wait(future)
        except BaseException as error:
            future.cancel()
            if self._stopping:
                # The interpreter exits, so this is a daemon thread's call: it ends with it, without a traceback.
                raise SystemExit from error
            raise

    async def run_async(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs `work` on the loop; awaits its result on the caller's."""
        if threading.current_thread() is self._thread:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def stop(self) -> None:
        """Cancels what still runs, closes what is open, stops the loop, and waits for it within a bound."""
        self._stopping = True
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._drain(), self.loop)
            self._thread.join(CLOSING_TIME)

    async def _drain(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCELLING_TIME)
        for close in self.closing:
            await close()
        self.loop.stop()


_lock = threading.Lock()
_current: LoopThread | None = None
_inherited: list[LoopThread] = []


def loop_thread() -> LoopThread:
    """This process's loop, started at the first call."""
    global _current
    with _lock:
        if _current is None:
            _current = LoopThread()
        return _current


def run(work: Coroutine[Any, Any, T], wait: Callable[[Future[T]], T] = Future.result) -> T:
    """Runs `work` on this process's loop and waits for its result; arguments and errors as of `LoopThread.run`."""
    return loop_thread().run(work, wait)


async def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Runs `work` on this process's loop; awaits its result on the caller's."""
    return await loop_thread().run_async(work)


def _after_fork_in_child() -> None:
    global _current, _lock
    _lock = threading.Lock()
    if _current is None:
        return
    # Kept alive so that nothing in it is finalised, and cut off from the epoll instance it shares with the parent
    # for what the interpreter's exit finalises all the same.
    _inherited.append(_current)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, _current.selector.fileno())
    os.close(null)
    _current = None


def _at_exit() -> None:
    if _current is not None:
        _current.stop()


os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_at_exit)
