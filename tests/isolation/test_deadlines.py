"""Deadlines, limits and cancellation."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal

import pytest

from rewardstack_rules.isolation.client import IsolationClient
from tests.isolation.processes import MakeClient, below, run_all, until, zygote_of
from tests.support.waiting import eventually

ORDINARY = [{"with": number} for number in range(200)]
ANSWERS = [{"value": number} for number in range(200)]


async def test_hogs_and_others(client: IsolationClient) -> None:
    """Eight tasks that never end do so at their deadline, and 200 ordinary ones pass meanwhile."""
    hogs = asyncio.create_task(run_all(client, [{"do": "loop"}, {"do": "hang"}] * 4, timeout=1))
    await until(client, lambda stats: stats["busy"] > 0)
    assert await run_all(client, ORDINARY, timeout=5) == ANSWERS
    assert not hogs.done()
    assert await hogs == [{"error": "timeout"}] * 8


async def test_own_deadlines(client: IsolationClient) -> None:
    """Tasks of two calls have two deadlines."""
    short, long = await asyncio.gather(
        client.run({"do": "sleep", "with": 0.5}, timeout=0.05), client.run({"do": "sleep", "with": 0.5}, timeout=5)
    )
    assert (short, long) == ({"error": "timeout"}, {"value": 0.5})


async def test_waiting_does_not_count(make_client: MakeClient) -> None:
    """Twenty tasks of 0.05 s on one child all end well with 0.5 s each, though the last waits for a second."""
    client = make_client(fast=1)
    assert await run_all(client, [{"do": "sleep", "with": 0.05}] * 20, timeout=0.5) == [{"value": 0.05}] * 20


async def test_cancel(client: IsolationClient) -> None:
    """Cancelling a call ends its tasks, running or waiting, in either pool."""
    call = asyncio.create_task(run_all(client, [{"do": "loop"}] * 20, timeout=60))
    await asyncio.sleep(0.5)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await _idle(client)
    assert await run_all(client, ORDINARY, timeout=5) == ANSWERS


async def test_client_gone(client: IsolationClient) -> None:
    """A server process that is killed takes its tasks along, running or waiting."""
    user = os.fork()
    if user == 0:
        with contextlib.suppress(BaseException):
            asyncio.run(run_all(client, [{"do": "loop"}] * 20, timeout=60))
        os._exit(0)
    await until(client, lambda stats: stats["slow"] == 2 and stats["slow_queued"] > 0)
    os.kill(user, signal.SIGKILL)
    os.waitpid(user, 0)
    await _idle(client)


async def test_killed_for_good(client: IsolationClient) -> None:
    """The processes of tasks that ran out of time are gone, not only forgotten."""
    await run_all(client, [{"do": "hang"}] * 6, timeout=0.2)
    zygote = await zygote_of(client)
    eventually(lambda: len(below(zygote)) == 2)


async def _idle(client: IsolationClient) -> None:
    """Waits until no child is busy and nothing waits."""
    await until(client, lambda stats: not (stats["busy"] or stats["queued"] or stats["slow_queued"]))
