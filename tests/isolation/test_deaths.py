"""Somebody kills a process of the isolation under load: every task still has a result."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from rewardstack_rules.isolation.client import IsolationClient
from tests.isolation.processes import MakeClient, alive, below, run_all, until, zygote_of
from tests.support.waiting import eventually

TASKS = [{"do": "burn", "with": 0.002}] * 300


async def _load(client: IsolationClient) -> list[dict]:
    calls = [run_all(client, TASKS[:100], timeout=60) for _ in range(3)]
    return [result for results in await asyncio.gather(*calls) for result in results]


async def test_child_killed(client: IsolationClient) -> None:
    """A killed child costs no task: the one it ran gets another child, and is `killed` only if that dies as well."""
    parent = await zygote_of(client)
    for _ in range(5):  # each time with a load of its own, so that no task meets two deaths
        load = asyncio.create_task(_load(client))
        await until(client, lambda stats: stats["busy"] > 0)
        eventually(lambda: below(parent))
        os.kill(below(parent)[0], signal.SIGKILL)
        results = await load
        assert len(results) == 300
        assert [result for result in results if "error" in result] == []


async def test_zygote_killed(client: IsolationClient) -> None:
    """A killed zygote costs no task: what ran starts over, also in the slow pool."""
    slow = asyncio.create_task(run_all(client, [{"do": "sleep", "with": 0.5}] * 4, timeout=60))
    load = asyncio.create_task(_load(client))
    for _ in range(3):
        await asyncio.sleep(0.2)  # under load, most likely
        await _kill_zygote(client)
    results = await load + await slow
    assert [result for result in results if "error" in result] == []
    await until(client, lambda stats: stats["zygotes_total"] == 4)


async def test_supervisor_killed(client: IsolationClient, tmp_path: Path) -> None:
    """A killed supervisor costs no task, ends everything below it, and has one successor."""
    held = asyncio.create_task(client.run({"do": "wait_for", "with": str(tmp_path / "go on")}, timeout=60))
    load = asyncio.create_task(_load(client))
    await until(client, lambda stats: stats["busy"] > 0)
    supervisor, child_zygote = (await client.stats())["pid"], await zygote_of(client)
    os.kill(supervisor, signal.SIGKILL)
    (tmp_path / "go on").touch()
    assert [result for result in [*await load, await held] if "error" in result] == []
    assert (await client.stats())["pid"] != supervisor
    eventually(lambda: not alive(supervisor) and not alive(child_zygote))


async def test_nothing_survives_the_supervisor(client: IsolationClient) -> None:
    """A killed supervisor takes along children that are in the middle of an endless task."""
    hogs = asyncio.create_task(run_all(client, [{"do": "hang"}] * 4, timeout=3600))
    zygote = await zygote_of(client)
    await asyncio.to_thread(eventually, lambda: len(below(zygote)) == 4)
    processes = [zygote, *below(zygote)]
    os.kill((await client.stats())["pid"], signal.SIGKILL)
    hogs.cancel()
    eventually(lambda: not any(map(alive, processes)))
    assert await client.run({"with": 1}, timeout=60) == {"value": 1}


async def test_no_zombies(client: IsolationClient) -> None:
    """Whatever was killed is reaped: below the supervisor stand the zygote and its children, all alive."""
    await run_all(client, [{"do": "exit", "with": 1}, {"do": "segfault"}, {"do": "loop"}] * 3, timeout=0.2)  # expires
    await _kill_zygote(client)
    await run_all(client, [{"do": "loop"}] * 3, timeout=0.2)  # expires
    await run_all(client, [{}] * 10, timeout=60)
    zygote = await zygote_of(client)
    eventually(lambda: [alive(pid) for pid in below(zygote)] == [True, True])
    await until(client, lambda stats: stats["children"] == 2)


async def test_forks_that_fail(make_client: MakeClient) -> None:
    """Children that cannot be forked together count as one failure: the next attempt starts them all."""
    client = make_client(fast=8, warmup="isolation_entries:refuse_forks")
    assert await run_all(client, [{"with": at} for at in range(16)], timeout=60) == [{"value": at} for at in range(16)]
    await until(client, lambda stats: stats["children"] == 8)


async def _kill_zygote(client: IsolationClient) -> None:
    """Kill the zygote, and return when it is dead."""
    zygote = await zygote_of(client)
    os.kill(zygote, signal.SIGKILL)
    await asyncio.to_thread(eventually, lambda: not alive(zygote))
