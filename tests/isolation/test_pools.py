"""The slow pool: who goes there, how many, and that nobody else waits for them."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.isolation.processes import MakeClient, run_all, until


async def test_ordinary_tasks_flow(make_client: MakeClient, tmp_path: Path) -> None:
    """With five times as many slow tasks as both pools hold, ordinary ones flow, and every slow one ends well."""
    client = make_client(fast=1, slow=1)
    path = tmp_path / "go on"
    slow = asyncio.create_task(run_all(client, [{"do": "wait_for", "with": str(path)}] * 10, timeout=3600))
    await until(client, lambda stats: stats["slow"] == 1)
    for _ in range(5):
        assert await run_all(client, [{"with": 1}] * 20, timeout=60) == [{"value": 1}] * 20
    assert not slow.done()
    path.touch()
    assert await slow == [{"value": str(path)}] * 10


async def test_cap(make_client: MakeClient, tmp_path: Path) -> None:
    """No more slow tasks run at once than the pool holds, and the others wait in its queue."""
    client = make_client(fast=2, slow=2)
    path, seen = tmp_path / "go on", list[dict[str, int]]()
    slow = asyncio.create_task(run_all(client, [{"do": "wait_for", "with": str(path)}] * 6, timeout=3600))

    def is_full(stats: dict[str, int]) -> bool:
        seen.append(stats)
        return (stats["slow"], stats["slow_queued"]) == (2, 4)

    await until(client, is_full)
    path.touch()
    while not slow.done():
        seen.append(await client.stats())
        await asyncio.sleep(0.02)
    assert await slow == [{"value": str(path)}] * 6
    assert max(stats["slow"] for stats in seen) == 2
    assert max(stats["children"] for stats in seen) <= 4


@pytest.mark.parametrize("waits", [False, True], ids=["moved while it ran", "started in the slow pool"])
async def test_slow_stands_back(make_client: MakeClient, tmp_path: Path, waits: bool) -> None:
    """A slow task's child has the lowest priority, however it came to the pool; ordinary ones have the normal one."""
    client = make_client(fast=1, slow=1, slow_after=0.5)
    path = tmp_path / "go on"
    first = asyncio.create_task(run_all(client, [{"do": "wait_for", "with": str(path)}] * waits, timeout=3600))
    await until(client, lambda stats: stats["slow"] == waits)
    tasks: list[dict[str, Any]] = [{"do": "nice_above", "with": os.nice(0)}, {"do": "nice"}]
    second = asyncio.create_task(run_all(client, tasks, timeout=3600))
    await until(client, lambda stats: stats["slow_queued"] == waits)
    path.touch()
    assert await second == [{"value": 19}, {"value": os.nice(0)}]
    await first


@pytest.fixture
def one_core() -> Iterator[None]:
    """This process and what it starts have one core."""
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(usable)})
    yield
    os.sched_setaffinity(0, usable)


@contextmanager
def crowded() -> Iterator[None]:
    """A dozen that never rest share the core."""
    hog = ["sh", "-c", "while :; do :; done"]
    crowd = [subprocess.Popen(hog, start_new_session=True) for _ in range(12)]  # sessions have equal shares
    try:
        yield
    finally:
        for one in crowd:
            one.kill()
            one.wait()


async def test_starved_is_not_slow(one_core: None, make_client: MakeClient) -> None:
    """A task that needs a core for 0.05 s stays in the fast pool, though others let it have that in 0.5 s at best."""
    client = make_client(fast=1, slow=1, slow_after=0.4)
    assert await client.run({"with": 1}, timeout=60) == {"value": 1}  # all has started before the crowd comes

    with crowded():
        result = await client.run({"do": "nice_after_work", "with": 0.05}, timeout=60)

    assert result == {"value": os.nice(0)}


@pytest.mark.parametrize("action", ["loop", "sleep"])
async def test_brief(make_client: MakeClient, action: str) -> None:
    """A task that has to be brief is given up when it turns out to be slow, long before its seconds are over."""
    client = make_client(fast=1, slow=1, slow_after=0.5)

    hasty, ordinary = await asyncio.gather(
        client.run({"do": action, "with": 3600}, timeout=3600, stop_if_slow=True), client.run({"with": 1}, timeout=60)
    )

    assert (hasty, ordinary) == ({"error": "timeout"}, {"value": 1})
    assert (await client.stats())["timeouts_total"] == 1


async def test_brief_in_time(make_client: MakeClient) -> None:
    """A task that has to be brief, and is, has its result."""
    client = make_client(fast=1, slow=1, slow_after=3600)
    assert await client.run({"with": 1}, timeout=3600, stop_if_slow=True) == {"value": 1}
