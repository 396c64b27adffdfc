"""No child runs tasks of two tenants; who has none gets one soon, whatever others ask."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rewardstack_rules.isolation.child_link import Task
from rewardstack_rules.isolation.client import IsolationClient
from rewardstack_rules.isolation.tenants import TenantQueue
from tests.isolation.processes import MakeClient, run_all, until
from tests.support.table import Table

ENOUGH = 20


def task(tenant: str, number: int = 0) -> Task:
    """A task of a tenant."""
    return Task(number, b"", 1.0, lambda _: None, False, tenant.encode())


async def pids(client: IsolationClient, tenant: str, count: int = 1) -> list[int]:
    """The children that run so many tasks of a tenant."""
    results = await run_all(client, [{"do": "pid"}] * count, timeout=60, tenant=tenant)
    return [result["value"] for result in results]


@pytest.mark.parametrize("tenants", [("a", "b", "a"), ("a", "a", "b", "c", "b", "a"), ("", "a", "")], ids=str)
async def test_own_child(make_client: MakeClient, tenants: Sequence[str]) -> None:
    """With one child, tenants one after another: each finds a process that no other one has had."""
    client = make_client(fast=1)
    had: dict[int, str] = {}
    for tenant in tenants:
        for pid in await pids(client, tenant, 3):
            assert had.setdefault(pid, tenant) == tenant


async def test_mixed(make_client: MakeClient) -> None:
    """Eight tenants at the same time on two children: every process has one tenant, and everybody has results."""
    client = make_client(fast=2)
    tenants = [f"tenant {at}" for at in range(8)]
    found = await asyncio.gather(*(pids(client, tenant, ENOUGH) for tenant in tenants))
    assert [len(one) for one in found] == [ENOUGH] * len(tenants)
    assert sum(len({*one}) for one in found) == len({pid for one in found for pid in one})


async def test_one_tenant(make_client: MakeClient, tmp_path: Path) -> None:
    """A tenant alone keeps its children, and gets those of one that has gone, too."""
    client = make_client(fast=2, slow_after=3600)
    await pids(client, "gone", ENOUGH)
    path = tmp_path / "go on"
    tasks = [{"do": "wait_for", "with": str(path)}] * 4
    waiting = asyncio.create_task(run_all(client, tasks, timeout=3600, tenant="stays"))
    await until(client, lambda stats: (stats["busy"], stats["switched_total"]) == (2, 2))
    path.touch()
    await waiting
    assert len({*await pids(client, "stays", ENOUGH)}) <= 2
    assert (await client.stats())["switched_total"] == 2


async def after_a_flood(client: IsolationClient, path: Path, *tenants: str) -> tuple[list[int], list[int]]:
    """Ask for one task per tenant after 100 of another tenant, none of which has ended before all are asked for.

    Returns:
        The children that ran the tenants' tasks, and how many of the flood had ended before each of them ended.
    """
    ended: list[int] = []
    before: list[int] = []

    async def flood(task: dict[str, Any]) -> None:
        await client.run(task, timeout=3600, tenant="flood")
        ended.append(1)

    async def ask(tenant: str) -> int:
        [pid] = await pids(client, tenant)
        before.append(len(ended))
        return pid

    tasks: list[dict[str, Any]] = [{"do": "wait_for", "with": str(path)}, *[{"do": "burn", "with": 0.02}] * 99]
    flooding = asyncio.gather(*map(flood, tasks))
    await until(client, lambda stats: stats["queued"] == 99)
    asking = asyncio.gather(*map(ask, tenants))
    await until(client, lambda stats: stats["queued"] == 99 + len(tenants))
    path.touch()
    found = await asking
    flooding.cancel()
    return found, before


async def test_turns(make_client: MakeClient, tmp_path: Path) -> None:
    """A tenant's one task is done long before another's flood, which came first."""
    _, [before] = await after_a_flood(make_client(fast=1, slow_after=3600), tmp_path / "go on", "one")
    assert before < 50


async def test_turns_on_shared_children(make_client: MakeClient, tmp_path: Path) -> None:
    """Tenants that share a child take turns on it, and it is the same for all."""
    client = make_client(fast=1, slow_after=3600, shared=True)
    [one, other], before = await after_a_flood(client, tmp_path / "go on", "one", "other")
    stats = await client.stats()
    assert one == other
    assert (max(before) < 50, stats["switched_total"], stats["recycled_total"]) == (True, 0, 0)


async def test_turns_of_slow_tasks(make_client: MakeClient, tmp_path: Path) -> None:
    """The next place in the slow pool is that of the tenant that has had none, in whatever order they came."""
    client = make_client(fast=1, slow=1)
    first, never = tmp_path / "first", tmp_path / "never"
    paths = [first, never, never]
    flood = [
        asyncio.ensure_future(client.run({"do": "wait_for", "with": str(path)}, timeout=3600, tenant="flood"))
        for path in paths
    ]
    await until(client, lambda stats: (stats["slow"], stats["slow_queued"]) == (1, 2))
    other = asyncio.ensure_future(client.run({"do": "wait_for", "with": str(first)}, timeout=3600, tenant="other"))
    await until(client, lambda stats: stats["slow_queued"] == 3)
    first.touch()
    assert await other == {"value": str(first)}
    for one in flood:
        one.cancel()


@pytest.mark.parametrize("shared", [True, False])
async def test_turns_of_long_tasks(make_client: MakeClient, tmp_path: Path, shared: bool) -> None:
    """A task that reports its progress makes room for another tenant's, and then resumes from there."""
    client = make_client(entry="isolation_entries:steps", fast=1, slow_after=3600, shared=shared)
    end, now = tmp_path / "end", tmp_path
    long = asyncio.ensure_future(client.run({"with": str(end)}, timeout=3600, tenant="long"))
    await until(client, lambda stats: stats["busy"] == 1)
    assert await client.run({"with": str(now)}, timeout=3600, tenant="other") == {"value": 0}
    assert not long.done()
    end.touch()
    assert (await long)["value"] > 0


async def test_changed_child(make_client: MakeClient) -> None:
    """What a task left in its process is not there for another tenant, whatever it was; a slow one's neither."""
    client = make_client(fast=1, slow=1)
    await run_all(client, [{"do": "leak", "with": 1}, {"do": "sleep", "with": 0.3}], timeout=60, tenant="a")
    result = await client.run({"do": "kept"}, timeout=60, tenant="b")
    assert result == {"value": 0}


async def test_forged_frames(make_client: MakeClient) -> None:
    """A child that says again that it is ready is ended; the tasks of others are done."""
    client = make_client(fast=1)
    forged, *others = await asyncio.gather(
        client.run({"do": "forge_ready"}, timeout=3600, tenant="a"),
        *(client.run({"with": at}, timeout=60, tenant="b") for at in range(3)),
    )
    assert forged == {"error": "killed"}
    assert others == [{"value": at} for at in range(3)]


@pytest.mark.parametrize(
    "fields",
    [
        ("RESULT", 1, "{}"),
        ("STATS", 0, "{}"),
        ("RESULT", 0, "null"),
        ("RESULT", 0, "[1]"),
        ("RESULT", 0, "no JSON"),
        ("RESULT", 0, "[" * 5000),
    ],
    ids=["another id", "another kind", "null", "a list", "no JSON", "too deep"],
)
async def test_wrong_frames(make_client: MakeClient, fields: tuple[str, int, str]) -> None:
    """A child that sends a wrong frame costs its own tenant alone, whose task is killed before its timeout."""
    client = make_client(fast=1)
    assert await client.run({"do": "forge_frame", "with": fields}, timeout=3600, tenant="a") == {"error": "killed"}
    assert await client.run({"with": 1}, timeout=60, tenant="b") == {"value": 1}


def test_queue(table: Table) -> None:
    """Tenants take turns, each one's tasks are in order, and dropped ones are skipped."""
    with table.case("order"):
        queue = TenantQueue()
        for number, tenant in enumerate("aabac"):
            queue.append(task(tenant, number))
        queue.appendleft(task("a", 9))
        taken = []
        while (turn := queue.next_tenant(())) is not None:
            one = queue.pop(turn)
            assert one is not None
            taken.append((one.tenant.decode(), one.id))
        assert taken == [("a", 9), ("b", 2), ("c", 4), ("a", 0), ("a", 1), ("a", 3)]
    with table.case("a newcomer is next"):
        queue = TenantQueue()
        for name in "aabb":
            queue.append(task(name))
        for first in (b"a", b"b"):
            queue.pop(first)
        queue.append(task("c"))
        assert queue.waiting() == [b"c", b"a", b"b"]
    with table.case("without a child first"):
        queue = TenantQueue()
        for name in "abc":
            queue.append(task(name))
        assert [queue.next_tenant(served) for served in ((b"a",), (b"a", b"b"), (b"a", b"b", b"c"))] == [
            b"b",
            b"c",
            b"a",
        ]
    with table.case("dropped"):
        queue = TenantQueue()
        dropped, kept = task("a", 1), task("a", 2)
        for one in (dropped, kept):
            queue.append(one)
        dropped.dropped = True
        assert [one.id for one in queue] == [2]
        assert queue.pop(b"a") is kept
        kept.dropped = True
        queue.append(kept)
        assert (queue.next_tenant(()), queue.pop(b"a"), queue.waiting()) == (None, None, [])
