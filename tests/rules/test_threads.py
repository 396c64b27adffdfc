"""The threads that answer requests: so many work at a time, and those that only wait are not counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

import pytest

from rewardstack_rules.http.threads import Threads

SECONDS = 60.0
"""Most that a step may take."""


@contextmanager
def held(threads: Threads, count: int, *, lent: bool) -> Iterator[None]:
    """While so many calls run, and wait with their thread lent or kept."""
    begun, release = [Event() for _ in range(count)], Event()

    def call(at: int) -> None:
        if not lent:
            begun[at].set()
            assert release.wait(SECONDS)
            return
        with threads.lend_thread():
            begun[at].set()
            assert release.wait(SECONDS)

    calls = [threads.submit(call, at) for at in range(count)]
    assert all(one.wait(SECONDS) for one in begun)
    yield
    release.set()
    for one in calls:
        one.result(SECONDS)


def test_results_and_errors() -> None:
    """A call's result, or what it raised, is its future's."""
    threads = Threads(1)
    assert threads.submit(divmod, 7, 2).result(SECONDS) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        threads.submit(divmod, 7, 0).result(SECONDS)


def test_a_limit() -> None:
    """With as many calls at work as may, the next one waits, and then runs."""
    threads = Threads(2)
    with held(threads, 2, lent=False):
        third = threads.submit(int, "3")
        assert not third.running() and not third.done()
    assert third.result(SECONDS) == 3


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_lent_threads_are_not_counted(limit: int) -> None:
    """However many calls wait with their thread lent, others run; when those are back, the limit holds again."""
    threads = Threads(limit)
    for _ in range(3):
        with held(threads, 20, lent=True):
            assert [threads.submit(int, f"{at}").result(SECONDS) for at in range(10)] == [*range(10)]
        with held(threads, limit, lent=False):
            late = threads.submit(int, "3")
            assert not late.running() and not late.done()
        assert late.result(SECONDS) == 3


def test_calls_that_came_before_are_run_when_a_thread_is_lent() -> None:
    """A call that waits for a thread has one as soon as one is lent."""
    threads, go = Threads(1), Event()

    def lend() -> str:
        assert go.wait(SECONDS)
        with threads.lend_thread():
            return waiting.result(SECONDS)

    lending = threads.submit(lend)
    waiting = threads.submit(str, "done")
    go.set()
    assert lending.result(SECONDS) == "done"
