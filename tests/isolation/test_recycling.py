"""Children are replaced before they grow old or large."""

from __future__ import annotations

from tests.isolation.processes import MakeClient, run_all


async def test_after_so_many_tasks(make_client: MakeClient) -> None:
    """A child ends after its last task, and no task is lost over it."""
    client = make_client(fast=1, tasks_per_child=10, slow_after=3600)
    results = await run_all(client, [{"do": "pid"}] * 35, timeout=60)
    pids = [result["value"] for result in results]
    assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [10, 10, 10, 5]
    assert (await client.stats())["recycled_total"] == 3


async def test_when_grown(make_client: MakeClient) -> None:
    """A child that has kept more memory than it may ends after that task."""
    client = make_client(fast=1, growth_bytes=20 << 20, slow_after=3600)
    results = await run_all(
        client, [{"do": "leak", "with": 1}, {"do": "leak", "with": 25}, {"do": "leak", "with": 1}], timeout=60
    )
    pids = [result["value"] for result in results]
    assert (pids[0] == pids[1], pids[1] == pids[2]) == (True, False)


async def test_growth_is_nobody_elses_fault(make_client: MakeClient) -> None:
    """Tasks of moderate size are never `killed` for what earlier ones left behind."""
    client = make_client(fast=1, growth_bytes=1 << 40)
    results = await run_all(client, [{"do": "leak", "with": 25}] * 12, timeout=60)
    assert [result for result in results if "error" in result] == []
