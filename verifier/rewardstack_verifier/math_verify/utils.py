"""Provide math_verify's `timeout` decorator for scripts that limit their functions with it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import ParamSpec, TypeVar

from rewardstack_verifier.math_verify.errors import TimeoutException

P = ParamSpec("P")
T = TypeVar("T")


def timeout(timeout_seconds: int | None = 10) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator that raises `TimeoutException` in a function that takes too long.

    The decorator uses SIGALRM, so it works only in the main thread, on Linux and macOS.

    Args:
        timeout_seconds: time limit in seconds; None or 0 for no limit.
    """

    def expire(number: int, frame: FrameType | None) -> None:
        raise TimeoutException("Operation timed out!")

    def limited(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> T:
            before = signal.signal(signal.SIGALRM, expire)
            signal.alarm(timeout_seconds or 0)
            try:
                return function(*args, **kwargs)
            finally:
                signal.alarm(0)
                signal.signal(signal.SIGALRM, before)

        return run

    return limited if timeout_seconds and timeout_seconds > 0 else lambda function: function


__all__ = ["TimeoutException", "timeout"]
