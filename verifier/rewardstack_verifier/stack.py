"""Run a recursive function again in a new thread, which has an empty call stack, after a RecursionError."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from functools import wraps
from threading import Thread
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def with_fresh_stack(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function so that it runs again in a new thread, with an empty stack, after a RecursionError.

    Args:
        function: a function with bounded recursion that is safe to run twice.
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            return _in_thread(lambda: function(*args, **kwargs))

    return run


def _in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a new thread with the caller's context variables, and return its result."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
            errors.append(error)

    thread = Thread(target=copy_context().run, args=(run,), daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
