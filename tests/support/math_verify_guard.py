"""Keep math_verify out of pytest's process, where its CPU limit can raise an exception in any callback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import ParamSpec, TypeVar

import pytest

P = ParamSpec("P")
T = TypeVar("T")


class _MathVerifyAskedError(BaseException):
    """A question reached math_verify; no `except Exception` may turn this into a verdict."""


def without_math_verify(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """Call a function that decides questions; return None if a question reaches math_verify, which is not asked."""
    from rewardstack_rules.mathematics import symbolic  # loads sympy, which few tests need

    def refuse(*texts: str) -> bool:
        raise _MathVerifyAskedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(symbolic, "equal", refuse)
        patch.setattr(symbolic, "is_readable", refuse)
        try:
            return function(*args, **kwargs)
        except _MathVerifyAskedError:
            return None


@contextmanager
def child_process() -> Iterator[Executor]:
    """Yield a child process that calls functions of modules, math_verify included."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as child:
        yield child
