"""How the server runs its rules: neighbours in time do not wait for each other, and nothing runs for nobody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from rewardstack.errors import DeadlineError
from rewardstack.score import Item
from rewardstack_rules.functions.catalog import load_registry
from rewardstack_rules.functions.registry import Registry, Rule
from rewardstack_rules.isolation.client import IsolationClient
from rewardstack_rules.isolation.config import IsolationConfig
from rewardstack_rules.isolation.launch import start_supervisor
from rewardstack_rules.scoring.pools import Pool, isolation_config
from rewardstack_rules.scoring.rule import MAX_ISOLATED_RESPONSE, InlineRule, IsolatedRule, Isolation, LocalSample
from rewardstack_rules.settings import Settings
from tests.support.scoring import context, pipeline_of, scored

HOSTILE = Path(__file__).parent / "functions" / "hostile.py"


@pytest.fixture(scope="module")
def config(needs_process: None) -> Iterator[IsolationConfig]:
    """Isolated processes, two fast and two slow, that know the hostile functions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REWARD_FUNCTIONS", str(HOSTILE))
        made = replace(isolation_config(Settings.from_env(), Pool.OPEN), fast=2, slow=2)
        home = start_supervisor(made)
        yield made
        home.close()


@pytest_asyncio.fixture
async def isolated(config: IsolationConfig) -> AsyncIterator[IsolationClient]:
    """A client of the isolated processes."""
    one = IsolationClient(config)
    yield one
    one.close()
    await asyncio.sleep(0)


@pytest.fixture
def registry() -> Registry:
    """The rules that the isolated processes know."""
    return load_registry([HOSTILE])


def rule(registry: Registry, name: str, isolated: IsolationClient, timeout: float = 60.0) -> IsolatedRule:
    """The scorer of a rule."""
    return IsolatedRule(registry.get(name), Isolation(isolated, timeout))


async def test_neighbours_in_time(registry: Registry, isolated: IsolationClient, tmp_path: Path) -> None:
    """Of two samples that arrive at the same moment the quick one has its score before the slow one."""
    pipeline = pipeline_of(rule(registry, "waits", isolated, timeout=3600))
    awaited = tmp_path / "awaited"

    slow = asyncio.create_task(scored(pipeline, Item(str(awaited)), limit=3600))
    [quick] = await asyncio.create_task(scored(pipeline, Item(str(tmp_path)), limit=3600))

    assert (quick.status, slow.done()) == ("ok", False)
    awaited.touch()
    assert [score.status for score in await slow] == ["ok"]


async def test_nothing_runs_for_nobody(registry: Registry, isolated: IsolationClient) -> None:
    """A sample whose callers have given up is neither run nor kept waiting."""
    hang = rule(registry, "hang", isolated, timeout=3600)

    with pytest.raises(DeadlineError):
        await asyncio.wait_for(hang.score([LocalSample(Item("slow"))], context(limit=0.5)), 60)  # expires after 0.5 s

    for _ in range(1200):
        stats = await isolated.stats()
        if not stats["busy"]:
            break
        await asyncio.sleep(0.05)
    assert (stats["busy"], stats["queued"], stats["slow_queued"]) == (0, 0, 0)


async def test_response_without_bound(registry: Registry, isolated: IsolationClient) -> None:
    """An isolated rule scores 0 for a response beyond the bound on its length, whatever the time it would take."""
    hang = rule(registry, "hang", isolated)

    [fits] = await hang.score([LocalSample(Item("x" * MAX_ISOLATED_RESPONSE))], context())
    [too_long] = await hang.score([LocalSample(Item("x" * (MAX_ISOLATED_RESPONSE + 1)))], context())

    assert ((fits.value, fits.status), (too_long.value, too_long.status)) == ((1.0, "ok"), (0.0, "ok"))
    assert "longer than" in too_long.reason


async def test_inline_rule_that_raises(isolated: IsolationClient) -> None:
    """A fault in a rule that runs inline fails its sample alone."""

    def picky(response: str, references: object, extra: object) -> object:
        raise RuntimeError("a fault")

    faulty = InlineRule(Rule("picky", picky, "f", needs_reference=False, isolated=False), Isolation(isolated, 60.0))  # type: ignore[arg-type]

    [score] = await faulty.score([LocalSample(Item("a"))], context())

    assert (score.status, score.reason) == ("failed", "picky raised RuntimeError")


async def test_fields_that_are_read(registry: Registry, isolated: IsolationClient) -> None:
    """A rule's key depends on the fields it reads, and on no others."""
    needs_rubric = rule(registry, "needs_rubric", isolated)
    extras: list[dict[str, Any]] = [{"rubric": "a"}, {"rubric": "b"}, {"rubric": "a", "other": 1}]

    keys = await needs_rubric.keys([LocalSample(Item("r", ("r",), extra)) for extra in extras], context())

    assert keys[0] == keys[2] != keys[1]
