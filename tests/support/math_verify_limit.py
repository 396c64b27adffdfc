"""Keep the CPU limit of math_verify out of tests: it raises from a signal handler, so verdicts depend on a clock.

Where the exception hits a callback of Python's own, e.g. of a weak reference, it is lost and pytest reports it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import wraps
from threading import Thread
from typing import ParamSpec, TypeVar

import pytest

P = ParamSpec("P")
T = TypeVar("T")


def without_limit(test: Callable[P, T]) -> Callable[P, T]:
    """Run a test in a thread of its own, which gets no signals, so that the limit has no effect."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        outcome: Future[T] = Future()

        def work() -> None:
            try:
                outcome.set_result(test(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - also a failure or a skip of pytest's
                outcome.set_exception(error)

        Thread(target=work, daemon=True).start()
        return outcome.result()

    return run


class _MathVerifyAskedError(BaseException):
    """A question reached math_verify; no `except Exception` may turn this into a verdict."""


def without_math_verify(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """Call a function that decides questions; return None if a question reaches math_verify, which is not asked."""
    from rewardstack_rules.mathematics import symbolic  # loads sympy, which few tests need
    from rewardstack_rules.mathematics.readable import readable

    def refuse(*texts: str) -> bool:
        raise _MathVerifyAskedError

    readable.cache_clear()  # it may hold what math_verify found out for an earlier test
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(symbolic, "equal", refuse)
        patch.setattr(symbolic, "is_readable", refuse)
        try:
            return function(*args, **kwargs)
        except _MathVerifyAskedError:
            return None
