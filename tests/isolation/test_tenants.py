"""No child runs tasks of two tenants; who has none gets one soon, whatever others ask."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

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
    results = await run_all(client, [{"do": "pid"}] * count, timeout=5, tenant=tenant)
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


async def test_one_tenant(make_client: MakeClient) -> None:
    """A tenant alone keeps its children, and gets those of one that has gone, too."""
    client = make_client(fast=2)
    await pids(client, "gone", ENOUGH)
    await run_all(client, [{"do": "burn", "with": 0.05}] * 4, timeout=5, tenant="stays")
    before = await client.stats()
    assert len({*await pids(client, "stays", ENOUGH)}) <= 2
    assert (await client.stats())["switched_total"] == before["switched_total"] <= 2


async def test_turns(make_client: MakeClient) -> None:
    """A tenant's one task is done long before another's flood, which came first."""
    client = make_client(fast=1, slow_after=5.0)
    flood = asyncio.create_task(run_all(client, [{"do": "burn", "with": 0.02}] * 100, timeout=60, tenant="flood"))
    await until(client, lambda stats: stats["queued"] > 90)
    await pids(client, "one")
    assert (await client.stats())["queued"] > 50
    flood.cancel()


async def test_turns_on_shared_children(make_client: MakeClient) -> None:
    """Tenants that share a child take turns on it, and it is the same for all."""
    client = make_client(fast=1, slow_after=5.0, shared=True)
    flood = asyncio.create_task(run_all(client, [{"do": "burn", "with": 0.02}] * 100, timeout=60, tenant="flood"))
    await until(client, lambda stats: stats["queued"] > 90)
    [one], [other] = await asyncio.gather(pids(client, "one"), pids(client, "other"))
    stats = await client.stats()
    assert one == other
    assert (stats["queued"] > 50, stats["switched_total"], stats["recycled_total"]) == (True, 0, 0)
    flood.cancel()


async def test_changed_child(make_client: MakeClient) -> None:
    """What a task left in its process is not there for another tenant, whatever it was; a slow one's neither."""
    client = make_client(fast=1, slow=1)
    await run_all(client, [{"do": "leak", "with": 1}, {"do": "sleep", "with": 0.3}], timeout=5, tenant="a")
    result = await client.run({"do": "kept"}, timeout=5, tenant="b")
    assert result == {"value": 0}


async def test_forged_frames(make_client: MakeClient) -> None:
    """A child that says again that it is ready is ended; the tasks of others are done."""
    client = make_client(fast=1)
    forged, *others = await asyncio.gather(
        client.run({"do": "forge_ready"}, timeout=5, tenant="a"),
        *(client.run({"with": at}, timeout=5, tenant="b") for at in range(3)),
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
    forged = client.run({"do": "forge_frame", "with": fields}, timeout=60, tenant="a")
    assert await asyncio.wait_for(forged, 30) == {"error": "killed"}
    assert await client.run({"with": 1}, timeout=5, tenant="b") == {"value": 1}


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
