"""Deadlines, limits and cancellation."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import pytest_asyncio

from rewardstack_rules.isolation import zygote_link
from rewardstack_rules.isolation.child_link import Task
from rewardstack_rules.isolation.client import IsolationClient
from rewardstack_rules.isolation.config import IsolationConfig
from rewardstack_rules.isolation.frames import NO_TENANT, dump, load
from rewardstack_rules.isolation.scheduler import Scheduler
from rewardstack_rules.process import import_path
from tests.isolation.conftest import DEFAULTS
from tests.isolation.processes import below, run_all, until, zygote_of
from tests.support.waiting import eventually

ORDINARY = [{"with": number} for number in range(200)]
MakeScheduler: TypeAlias = Callable[..., Awaitable["OwnScheduler"]]
ANSWERS = [{"value": number} for number in range(200)]


async def test_hogs_and_others(client: IsolationClient) -> None:
    """While eight tasks that never end run, 200 ordinary ones pass; such tasks end at their deadline."""
    hogs: list[dict[str, Any]] = [{"do": "loop"}, {"do": "hang"}] * 4
    endless = asyncio.create_task(run_all(client, hogs, timeout=3600))
    await until(client, lambda stats: stats["busy"] > 0)
    assert await run_all(client, ORDINARY, timeout=60) == ANSWERS
    assert not endless.done()
    endless.cancel()
    assert await run_all(client, hogs, timeout=0.5) == [{"error": "timeout"}] * 8  # expires


async def test_own_deadlines(client: IsolationClient) -> None:
    """Tasks of two calls have two deadlines."""
    short, long = await asyncio.gather(
        client.run({"do": "sleep", "with": 3600}, timeout=0.05),  # expires
        client.run({"do": "sleep", "with": 0.5}, timeout=60),
    )
    assert (short, long) == ({"error": "timeout"}, {"value": 0.5})


class OwnScheduler:
    """A scheduler in this process, whose clock a test can put forward.

    Args:
        monkeypatch: replaces this process's clock.
        config: the entry and the limits.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, config: IsolationConfig) -> None:
        real_time, self.ahead = time.monotonic, 0.0
        monkeypatch.setattr(time, "monotonic", lambda: real_time() + self.ahead)
        monkeypatch.setattr(zygote_link, "end_children", lambda: None)  # it would end those of other tests
        monkeypatch.setenv("PYTHONPATH", import_path())
        self._ids, self._ready = itertools.count(1), asyncio.Event()
        self._scheduler = Scheduler(config, asyncio.get_running_loop(), self._ready.set, pytest.fail)

    async def start(self) -> None:
        """Start it, and return when it has a child."""
        self._scheduler.start()
        await asyncio.wait_for(self._ready.wait(), 60)

    def submit(self, task: dict[str, Any], seconds: float) -> asyncio.Future[dict[str, Any]]:
        """Submit a task, which may run for so long; its result."""
        future = asyncio.get_running_loop().create_future()

        def reply(body: bytes) -> None:
            future.set_result(load(body))

        self._scheduler.submit(Task(next(self._ids), dump(task), seconds, reply, False, NO_TENANT))
        return future

    async def until(self, **counts: int) -> None:
        """Wait until the scheduler has these counts."""
        for _ in range(3000):
            if counts.items() <= (stats := self._scheduler.stats()).items():
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"waited in vain for {counts}: {stats}")

    async def stop(self) -> None:
        """End its processes."""
        self._scheduler.stop()
        for child in self._scheduler._children.values():
            child.close()
        await asyncio.sleep(0)


@pytest_asyncio.fixture
async def make_scheduler(needs_process: None, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MakeScheduler]:
    """Return a function that starts a scheduler with one fast child, and at most one slow one."""
    made: list[OwnScheduler] = []

    async def make(**fields: Any) -> OwnScheduler:
        made.append(OwnScheduler(monkeypatch, IsolationConfig(**(DEFAULTS | {"fast": 1, "slow": 1} | fields))))
        await made[-1].start()
        return made[-1]

    yield make
    for one in made:
        await one.stop()


async def test_waiting_does_not_count(make_scheduler: MakeScheduler, tmp_path: Path) -> None:
    """A task that may run for a minute ends well, though it waits for an hour until the only child is free."""
    scheduler = await make_scheduler(slow_after=80_000)
    path = tmp_path / "go on"
    first = scheduler.submit({"do": "wait_for", "with": str(path)}, 80_000)
    second = scheduler.submit({"with": 1}, 60)
    scheduler.ahead += 3600
    await asyncio.sleep(0.1)  # timers of the hour may fire
    await scheduler.until(busy=1, queued=1)
    path.touch()
    assert (await first, await second) == ({"value": str(path)}, {"value": 1})


async def test_deadline_over_both_lanes(make_scheduler: MakeScheduler, tmp_path: Path) -> None:
    """A task that was sent back to wait runs out of its own seconds, not of those it waited."""
    scheduler = await make_scheduler()
    paths = [tmp_path / "first", tmp_path / "second"]
    first, second = (
        scheduler.submit({"do": "wait_for", "with": str(path)}, seconds)
        for path, seconds in zip(paths, (80_000, 60), strict=True)
    )
    endless = scheduler.submit({"do": "loop"}, 60)
    await scheduler.until(slow=1, slow_queued=2)
    scheduler.ahead += 3600
    await asyncio.sleep(0.1)  # timers of the hour may fire
    await scheduler.until(slow=1, slow_queued=2)
    paths[0].touch()
    assert await first == {"value": str(paths[0])}
    await scheduler.until(slow=1, slow_queued=1)
    paths[1].touch()
    assert await second == {"value": str(paths[1])}
    await scheduler.until(slow=1, slow_queued=0)
    assert not endless.done()
    scheduler.ahead += 3600
    assert await endless == {"error": "timeout"}


async def test_cancel(client: IsolationClient) -> None:
    """Cancelling a call ends its tasks, running or waiting, in either pool."""
    call = asyncio.create_task(run_all(client, [{"do": "loop"}] * 20, timeout=3600))
    await until(client, lambda stats: stats["slow"] == 2 and stats["slow_queued"] > 0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await _idle(client)
    assert await run_all(client, ORDINARY, timeout=60) == ANSWERS


async def test_client_gone(client: IsolationClient) -> None:
    """A server process that is killed takes its tasks along, running or waiting."""
    user = os.fork()
    if user == 0:
        with contextlib.suppress(BaseException):
            asyncio.run(run_all(client, [{"do": "loop"}] * 20, timeout=3600))
        os._exit(0)
    await until(client, lambda stats: stats["slow"] == 2 and stats["slow_queued"] > 0)
    os.kill(user, signal.SIGKILL)
    os.waitpid(user, 0)
    await _idle(client)


async def test_killed_for_good(client: IsolationClient) -> None:
    """The processes of tasks that ran out of time are gone, not only forgotten."""
    await run_all(client, [{"do": "hang"}] * 6, timeout=0.2)  # expires
    zygote = await zygote_of(client)
    eventually(lambda: len(below(zygote)) == 2)


async def _idle(client: IsolationClient) -> None:
    """Waits until no child is busy and nothing waits."""
    await until(client, lambda stats: not (stats["busy"] or stats["queued"] or stats["slow_queued"]))
