"""Deadlines, limits and cancellation."""

from __future__ import annotations

import asyncio

import pytest

from rewardstack_rules.isolation.client import IsolatedRunner
from tests.isolation.processes import MakeRunner

ORDINARY = [{"with": number} for number in range(200)]
ANSWERS = [{"value": number} for number in range(200)]


@pytest.mark.parametrize("hog", ["loop", "hang"])
async def test_hogs_and_others(runner: IsolatedRunner, hog: str) -> None:
    """Eight tasks that never end do so at their deadline, and 200 ordinary ones pass meanwhile."""
    hogs = asyncio.create_task(runner.run([{"do": hog}] * 8, timeout=0.4))
    await asyncio.sleep(0.01)
    assert await runner.run(ORDINARY, timeout=5) == ANSWERS
    assert not hogs.done()
    assert await hogs == [{"error": "timeout"}] * 8


async def test_own_deadlines(runner: IsolatedRunner) -> None:
    """Tasks of two calls have two deadlines."""
    short, long = await asyncio.gather(
        runner.run([{"do": "sleep", "with": 0.5}], timeout=0.05), runner.run([{"do": "sleep", "with": 0.5}], timeout=5)
    )
    assert (short, long) == ([{"error": "timeout"}], [{"value": 0.5}])


async def test_waiting_does_not_count(make_runner: MakeRunner) -> None:
    """Twenty tasks of 0.05 s on one child all end well with 0.5 s each, though the last waits for a second."""
    runner = make_runner(fast=1)
    assert await runner.run([{"do": "sleep", "with": 0.05}] * 20, timeout=0.5) == [{"value": 0.05}] * 20


async def test_limit(make_runner: MakeRunner) -> None:
    """At the limit of the call, what is done is kept, what is not has timed out, and nothing goes on."""
    runner = make_runner(fast=1, slow=1)
    results = await runner.run([{"with": 1}, {"do": "loop"}, {"do": "loop"}], timeout=60, limit=0.5)
    assert results == [{"value": 1}, {"error": "timeout"}, {"error": "timeout"}]
    await _idle(runner)


async def test_cancel(runner: IsolatedRunner) -> None:
    """Cancelling a call ends its tasks, running or waiting, in either lane."""
    call = asyncio.create_task(runner.run([{"do": "loop"}] * 20, timeout=60))
    await asyncio.sleep(0.5)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await _idle(runner)
    assert await runner.run(ORDINARY, timeout=5) == ANSWERS


async def test_client_gone(runner: IsolatedRunner) -> None:
    """A server process that goes away takes its tasks along."""
    call = asyncio.create_task(runner.run([{"do": "loop"}] * 20, timeout=60))
    await asyncio.sleep(0.3)
    call.add_done_callback(lambda done: done.cancelled() or done.exception())
    call.cancel()
    runner.close()
    await asyncio.sleep(0)
    await _idle(runner)


async def _idle(runner: IsolatedRunner) -> None:
    """Waits until no child is busy and nothing waits."""
    for _ in range(200):
        stats = await runner.stats()
        if not (stats["busy"] or stats["queued"] or stats["slow_queued"]):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"still busy: {stats}")
