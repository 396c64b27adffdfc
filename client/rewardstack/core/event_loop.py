"""Run all I/O in one event loop in a daemon thread; blocking callers and other loops submit coroutines to it.

After a fork, the child creates its own loop. The child never uses or closes the inherited loop or its HTTP sessions,
because that would unregister the parent's sockets from the epoll instance that both processes share.
"""

from __future__ import annotations

import asyncio
import atexit
import math
import os
import selectors
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from rewardstack.errors import LoopError

T = TypeVar("T")

CANCELLING_TIME = 0.25
"""Maximum seconds to wait at exit for running calls to end after they were cancelled."""
CLOSING_TIME = 3.0
"""Maximum seconds to wait at exit for all cleanup, such as pending cache writes."""


async def run_with_timeout(seconds: float, work: Awaitable[T]) -> T:
    """Return the result of `work`; cancel it on timeout, or if the caller is cancelled.

    Unlike `asyncio.wait_for` before Python 3.12, this raises CancelledError even if the caller is cancelled at the
    moment when `work` ends.

    Raises:
        asyncio.TimeoutError: `work` takes longer than `seconds`.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait((task,), timeout=None if seconds == math.inf else seconds)
        if not task.done():
            raise asyncio.TimeoutError
    finally:
        task.cancel()
    return task.result()


async def run_in_daemon_thread(name: str, work: Callable[[], T]) -> T:
    """Run `work` in a new daemon thread, and return its result or raise its exception.

    If `work` hangs, it blocks neither the event loop nor the exit of the process.

    Args:
        name: the thread's name.
        work: the blocking function.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def set_outcome(result: T | None, error: Exception | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - it is raised where it is awaited
            failure = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(set_outcome, result, failure)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await answer


def report_stretches(report: Callable[[float], object]) -> None:
    """Call `report` whenever this process's loop has handled no I/O for longer than ever before, with the seconds."""
    _TimedSelector.report = staticmethod(report)


class _TimedSelector(selectors.DefaultSelector):
    """A selector that measures how long its loop works between two looks at its files."""

    report: Callable[[float], object] = staticmethod(lambda seconds: None)

    def __init__(self) -> None:
        super().__init__()
        self._returned_at = math.inf
        self._longest = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        worked = time.monotonic() - self._returned_at
        if worked > self._longest:
            self._longest = worked
            self.report(worked)
        events = super().select(timeout)
        self._returned_at = time.monotonic()
        return events


class LoopThread:
    """An event loop in its own daemon thread.

    Attributes:
        closing: async functions to call before the loop stops.
    """

    def __init__(self) -> None:
        self._stopping = False
        self.closing: list[Callable[[], Awaitable[None]]] = []
        self.selector = _TimedSelector()
        self.loop = asyncio.SelectorEventLoop(self.selector)
        self._thread = threading.Thread(target=self._run, name="rewardstack", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def run(self, work: Coroutine[Any, Any, T], wait: Callable[[Future[T]], T] = Future.result) -> T:
        """Run `work` on the loop and block until its result.

        Args:
            work: the coroutine; it is cancelled if `wait` raises.
            wait: waits for the future and returns its result.

        Raises:
            LoopError: the caller runs in the loop's own thread, where it would deadlock, or the process is exiting.
        """
        self._require_running(work)
        if threading.current_thread() is self._thread:
            work.close()
            raise LoopError("a blocking call from rewardstack's own event loop; await the async version instead")
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return wait(future)
        except BaseException as error:
            future.cancel()
            if self._stopping:
                # The interpreter exits: end the call in this thread without a traceback.
                raise SystemExit from error
            raise

    async def run_async(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on this loop and await its result on the caller's loop; raise LoopError if the process exits."""
        self._require_running(work)
        if threading.current_thread() is self._thread:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def _require_running(self, work: Coroutine[Any, Any, Any]) -> None:
        if self._stopping:
            work.close()
            raise LoopError(
                "the process is exiting, so samples can no longer be scored; "
                "score them before exit, not in an `atexit` handler"
            )

    def stop(self) -> None:
        """Cancel running tasks, await the functions in `closing`, and stop the loop, within `CLOSING_TIME`."""
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
    """Return this process's loop; the first call starts it."""
    global _current
    with _lock:
        if _current is None:
            _current = LoopThread()
        return _current


def run(work: Coroutine[Any, Any, T], wait: Callable[[Future[T]], T] = Future.result) -> T:
    """Run `work` on this process's loop and block until its result; see `LoopThread.run`."""
    return loop_thread().run(work, wait)


async def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` on this process's loop and await its result on the caller's loop."""
    return await loop_thread().run_async(work)


def _after_fork_in_child() -> None:
    global _current, _lock
    _lock = threading.Lock()
    if _current is None:
        return
    # Finalizing the inherited loop would unregister the parent's sockets, so keep a reference to the loop. At exit, the
    # interpreter finalizes it nevertheless, so also detach it from the epoll instance that both processes share.
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
