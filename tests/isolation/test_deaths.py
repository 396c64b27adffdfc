"""Somebody kills a process of the isolation under load: every task still has a result."""

from __future__ import annotations

import asyncio
import os
import signal

from rewardstack_rules.isolation.client import IsolationClient
from tests.isolation.processes import alive, below, run_all, zygote_of
from tests.support.waiting import eventually

TASKS = [{"do": "burn", "with": 0.002}] * 300


async def _load(client: IsolationClient) -> list[dict]:
    calls = [run_all(client, TASKS[:100], timeout=5) for _ in range(3)]
    return [result for results in await asyncio.gather(*calls) for result in results]


async def test_child_killed(client: IsolationClient) -> None:
    """A killed child costs no task: the one it ran gets another child, and is `killed` only if that dies as well."""
    load = asyncio.create_task(_load(client))
    parent = await zygote_of(client)
    for _ in range(5):
        await asyncio.sleep(0.05)
        eventually(lambda: below(parent))
        os.kill(below(parent)[0], signal.SIGKILL)
    results = await load
    assert len(results) == 300
    assert [result for result in results if "error" in result] == []


async def test_zygote_killed(client: IsolationClient) -> None:
    """A killed zygote costs no task: what ran starts over, also in the slow pool."""
    slow = asyncio.create_task(run_all(client, [{"do": "sleep", "with": 0.5}] * 4, timeout=5))
    load = asyncio.create_task(_load(client))
    for _ in range(3):
        await asyncio.sleep(0.2)
        os.kill(await zygote_of(client), signal.SIGKILL)
    results = await load + await slow
    assert [result for result in results if "error" in result] == []
    assert (await client.stats())["zygotes_total"] == 4


async def test_supervisor_killed(client: IsolationClient) -> None:
    """A killed supervisor costs no task, ends everything below it, and has one successor."""
    load = asyncio.create_task(_load(client))
    await asyncio.sleep(0.1)
    supervisor, child_zygote = (await client.stats())["pid"], await zygote_of(client)
    os.kill(supervisor, signal.SIGKILL)
    assert [result for result in await load if "error" in result] == []
    assert (await client.stats())["pid"] != supervisor
    eventually(lambda: not alive(supervisor) and not alive(child_zygote))


async def test_nothing_survives_the_supervisor(client: IsolationClient) -> None:
    """A killed supervisor takes along children that are in the middle of an endless task."""
    hogs = asyncio.create_task(run_all(client, [{"do": "hang"}] * 4, timeout=60))
    zygote = await zygote_of(client)
    await asyncio.to_thread(eventually, lambda: len(below(zygote)) == 4)
    processes = [zygote, *below(zygote)]
    os.kill((await client.stats())["pid"], signal.SIGKILL)
    hogs.cancel()
    eventually(lambda: not any(map(alive, processes)))
    assert await client.run({"with": 1}, timeout=5) == {"value": 1}


async def test_no_zombies(client: IsolationClient) -> None:
    """Whatever was killed is reaped: below the supervisor stand the zygote and its children, all alive."""
    await run_all(client, [{"do": "exit", "with": 1}, {"do": "segfault"}, {"do": "loop"}] * 3, timeout=0.2)
    os.kill(await zygote_of(client), signal.SIGKILL)
    await run_all(client, [{"do": "loop"}] * 3, timeout=0.2)
    await run_all(client, [{}] * 10, timeout=1)
    zygote = await zygote_of(client)
    eventually(lambda: len(below(zygote)) == 2)
    processes = below(zygote)
    assert len(processes) == (await client.stats())["children"] == 2
    assert [alive(pid) for pid in processes] == [True, True]
