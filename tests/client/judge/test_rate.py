"""`requests_per_minute` and `tokens_per_minute` of a judge by name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from rewardstack import Request, Score, register_judge, score
from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.scorers import rate
from rewardstack.scorers.rate import RateLimit
from tests.client.judge.conftest import JudgeClock
from tests.support.servers import FaultServer
from tests.support.table import Table
from tests.support.waiting import eventually


class RateClock:
    """A clock that sleeping moves on."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        """The time."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Move on at once."""
        self.now += seconds


@pytest.fixture
def rate_clock(monkeypatch: pytest.MonkeyPatch) -> RateClock:
    """The clock of rate limits."""
    one = RateClock()
    monkeypatch.setattr(rate, "time", one)
    monkeypatch.setattr(asyncio, "sleep", one.sleep)
    return one


def starts(clock: RateClock, limit: RateLimit, costs: list[tuple[int, int]]) -> list[float]:
    """When samples of these requests and tokens are sent, in seconds from now."""

    async def run() -> list[float]:
        since = clock.now
        deadline = SharedDeadline(Deadline(10.0))
        return [(await limit.admit(*cost, deadline)).at - since for cost in costs]

    return asyncio.run(run())


def test_windows(rate_clock: RateClock, table: Table) -> None:
    """In no 60 seconds are more requests or tokens sent than the limits; one that is larger goes alone."""
    for name, limits, costs, expected in (
        ("requests", (2, 0), [(1, 9)] * 5, [0, 0, 60, 60, 120]),
        ("tokens", (0, 100), [(1, 60), (1, 40), (1, 1)], [0, 0, 60]),
        ("both", (2, 100), [(1, 99), (1, 1), (1, 1)], [0, 0, 60]),
        ("too large alone", (0, 100), [(1, 500), (1, 1), (1, 500)], [0, 60, 120]),
        ("several requests a sample", (4, 0), [(3, 0), (1, 0), (3, 0)], [0, 0, 60]),
    ):
        with table.case(name):
            assert starts(rate_clock, RateLimit(*limits), costs) == pytest.approx(expected)


def test_corrected(rate_clock: RateClock) -> None:
    """What a sample has really taken counts as soon as it is known, and no longer than a minute."""

    async def run() -> None:
        limit, deadline = RateLimit(0, 100), SharedDeadline(Deadline(10.0))
        first = await limit.admit(1, 100, deadline)
        await limit.admit_attempt(first, deadline)
        limit.correct(first, 40)
        since = rate_clock.now
        assert (await limit.admit(1, 60, deadline)).at == since
        second = await limit.admit(1, 100, deadline)
        assert second.at == pytest.approx(since + 60)
        rate_clock.now += 60
        await limit.admit(1, 1, deadline)
        limit.correct(second, 7)
        since = rate_clock.now
        assert (await limit.admit(1, 99, deadline)).at == since

    asyncio.run(run())


def test_attempts(rate_clock: RateClock) -> None:
    """Requests that are sent again count, and the minute begins when a request is sent."""

    async def run() -> list[float]:
        limit, deadline, since = RateLimit(3, 0), SharedDeadline(Deadline(10.0)), rate_clock.now
        first = await limit.admit(1, 0, deadline)
        rate_clock.now += 20
        moments = []
        for _ in range(4):
            await limit.admit_attempt(first, deadline)
            moments.append(rate_clock.now - since)
        second = await limit.admit(1, 0, deadline)
        return [*moments, second.at - since]

    assert asyncio.run(run()) == pytest.approx([20, 20, 20, 80, 80])


@pytest.fixture
def paid(judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], list[Score]]:
    """Return a function that scores three samples with a timeout, on a judge that takes one in a window."""
    monkeypatch.setattr("rewardstack.client._registered", {})
    register_judge("paid", {"base_url": judge.url, "model": "small", "requests_per_minute": 1})

    def samples(timeout: float) -> list[Score]:
        extra = {"timeout": timeout, "cache_enabled": False}
        return score([Request("paid", f"answer {at}", "x", extra) for at in range(3)])

    return samples


@pytest.mark.usefixtures("needs_process")
def test_waiting_uses_no_timeout(paid: Callable[[float], list[Score]], judge: FaultServer, clock: JudgeClock) -> None:
    """Samples that wait for longer than their timeout are scored all the same, and the limit outlives the call."""
    with ThreadPoolExecutor(1) as thread:
        scoring = thread.submit(lambda: [*paid(30), *paid(30)])
        for number in range(1, 6):
            eventually(lambda number=number: number <= clock.verdicts)  # type: ignore[misc]
            assert number == judge.stats()["requests"]
            for _ in range(2):  # the timeout passes first, then the minute
                clock.forward(31)
        assert ["ok"] * 6 == [one.status for one in scoring.result()]
    assert 6 == judge.stats()["requests"]


@pytest.mark.usefixtures("needs_process")
def test_judge_that_hangs(
    paid: Callable[[float], list[Score]], judge: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sample's timeout counts from when it is sent."""
    monkeypatch.setattr(rate, "WINDOW", 0.4)
    paid(60)
    judge.set(delay=3600)
    one = paid(0.3)[0]  # expires
    assert one.status == "failed" and "no answer within 0.3 s" in one.reason
