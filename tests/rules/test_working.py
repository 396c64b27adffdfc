"""The places of requests: so many work at a time, in order, and those that only wait are not counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from threading import Event
from typing import TypeVar

import pytest

from rewardstack.errors import OverloadError
from rewardstack_rules.http.working import Places
from tests.support.waiting import eventually

SECONDS = 60.0
"""Most that a step may take."""
T = TypeVar("T")


class Requests:
    """Requests that take places, each in its own thread.

    Args:
        limit: number of places.
        queue: maximum number of requests that wait.
    """

    def __init__(self, limit: int, queue: int = 100) -> None:
        self.places = Places(limit, queue)
        self._threads = ThreadPoolExecutor(100)

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Start a request that calls this once it has a place."""
        return self._threads.submit(self._run, call)

    def _run(self, call: Callable[[], T]) -> T:
        self.places.enter()
        try:
            return call()
        finally:
            self.places.leave()

    @contextmanager
    def held(self, count: int, *, lent: bool) -> Iterator[None]:
        """While so many requests work, and wait with their place lent or kept."""
        begun, release = [Event() for _ in range(count)], Event()

        def call(at: int) -> None:
            with self.places.lend() if lent else nullcontext():
                begun[at].set()
                assert release.wait(SECONDS)

        calls = [self.submit(lambda at=at: call(at)) for at in range(count)]  # type: ignore[misc]
        assert all(one.wait(SECONDS) for one in begun)
        yield
        release.set()
        for one in calls:
            one.result(SECONDS)


def test_a_limit() -> None:
    """With as many requests at work as may, the next one waits, and then runs."""
    requests = Requests(2)
    with requests.held(2, lent=False):
        third = requests.submit(lambda: 3)
        eventually(lambda: len(requests.places._queue) == 1)
        assert not third.done()
    assert third.result(SECONDS) == 3


def test_a_full_queue() -> None:
    """With as many requests waiting as may, the next one is refused; those that wait run in their order."""
    requests, order = Requests(1, queue=3), list[int]()
    with requests.held(1, lent=False):
        waiting = []
        for at in range(3):
            waiting.append(requests.submit(lambda at=at: order.append(at)))  # type: ignore[misc]
            eventually(lambda at=at: len(requests.places._queue) == at + 1)  # type: ignore[misc]
        with pytest.raises(OverloadError, match="try again"):
            requests.submit(lambda: None).result(SECONDS)
    for one in waiting:
        one.result(SECONDS)
    assert order == [0, 1, 2]


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_lent_places_are_not_counted(limit: int) -> None:
    """However many requests wait with their place lent, others run; when those are back, the limit holds again."""
    requests = Requests(limit)
    for _ in range(3):
        with requests.held(20, lent=True):
            assert [requests.submit(lambda: 1).result(SECONDS) for _ in range(10)] == [1] * 10
        with requests.held(limit, lent=False):
            late = requests.submit(lambda: 3)
            eventually(lambda: len(requests.places._queue) == 1)
            assert not late.done()
        assert late.result(SECONDS) == 3


def test_a_request_that_came_before_runs_when_a_place_is_lent() -> None:
    """A request that waits for a place has one as soon as one is lent."""
    requests, go = Requests(1), Event()

    def lend() -> str:
        assert go.wait(SECONDS)
        with requests.places.lend():
            return waiting.result(SECONDS)

    lending = requests.submit(lend)
    waiting = requests.submit(lambda: "done")
    go.set()
    assert lending.result(SECONDS) == "done"
