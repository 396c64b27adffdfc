"""Runs blocking functions in daemon threads, so that a hanging function blocks neither the event loop nor the exit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def run_in_daemon_thread(name: str, work: Callable[[], T]) -> T:
    """Run `work` in a new daemon thread, and return its result or raise its exception.

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
