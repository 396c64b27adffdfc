"""The load and the disturbances together: from a quiet stack to the counts of each phase."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rewardstack import Request, Score
from rewardstack.client import score_on_loop
from rewardstack.core.event_loop import run
from rewardstack.settings import Settings
from tests.chaos import disturbances, models
from tests.support.compose import ComposeStack
from tests.support.load import lanes, report
from tests.support.load.lanes import Lane
from tests.support.load.load import steady
from tests.support.load.phases import Disturbance, Phase, disturb
from tests.support.load.report import Row

SETTINGS = {
    # What a server process remembers itself would keep the load from the judge, and from the cache.
    "REWARD_CACHE_ITEMS": "0",
    # Model samples come round every 24 s, so half of them are read from the cache.
    "REWARD_CACHE_TTL": "30",
}
"""Of the stack that is disturbed."""
JUDGED_BY = re.compile(r"port=8000 POST .*? upstream=([0-9.:]+)")
"""A line of the gateway's log."""
SPREAD_SECONDS = 90.0
"""The most that a phase lasts until the gateway has asked every replica of the judge; a busy machine delays this."""


class Weather(NamedTuple):
    """What a storm was like.

    Args:
        rows: the counts of each phase.
        judges: by phase, how many replicas of the judge the gateway sent requests to once all was done.
        faults: what must not be, in words.
    """

    rows: list[Row]
    judges: dict[str, int]
    faults: list[str]


def rage(stack: ComposeStack, seconds: float, replicas: int, count: int) -> Weather:
    """Disturbs a stack under a steady load over all routes.

    Args:
        stack: a healthy one.
        seconds: of load at least.
        replicas: of the judge, to which it is scaled up.
        count: different samples for each model server.
    """
    urls = {
        "REWARD_SERVER_URL": stack.url("REWARD_PORT"),
        "LLM_JUDGE_SERVER_URL": stack.url("JUDGE_PORT"),
        "EMBEDDING_SERVER_URL": stack.url("EMBEDDING_PORT"),
    }
    some = [lanes.rules(), *_models(urls, count)]
    addresses = {"direct": urls, "server": {"REWARD_SERVER_URL": urls["REWARD_SERVER_URL"]}}
    wanted = disturbances.judges(replicas)
    phases: list[Phase] = []
    asked: dict[str, int] = {}

    def settle(one: Disturbance, done: float) -> None:
        asked[one.name] = _judges(stack, done)
        while asked[one.name] < wanted.get(one.name, 0) and time.monotonic() < done + SPREAD_SECONDS:
            time.sleep(1)
            asked[one.name] = _judges(stack, done)

    with steady(some, addresses) as load:
        for phase in disturb(disturbances.plan(stack, seconds, replicas), settle=settle):
            phases.append(phase)
            print(f"    {phase.name}: done in {phase.done - phase.begun:.0f} s", flush=True)
        load.end()
    rows = report.make(phases, load.outcomes, {lane.name: lane.samples for lane in some})
    return Weather(rows, asked, [*load.faults, *_faults(rows, wanted, asked)])


def _models(urls: dict[str, str], count: int) -> list[Lane]:
    settings = Settings.from_env({**urls, "REWARD_CACHE_ITEMS": "0"})

    def score(request: Request) -> Score:
        (one,) = run(score_on_loop([request], settings, None, None))
        return one

    return models.models(score, count)


def _judges(stack: ComposeStack, since: float) -> int:
    """How many replicas were sent requests since a time on the monotonic clock."""
    # A duration would count from when Compose gets to reading it, which is later.
    moment = f"{time.time() - (time.monotonic() - since):.3f}"
    return len(set(JUDGED_BY.findall(stack.run("logs", "--no-log-prefix", "--since", moment, "gateway"))))


def _faults(rows: Sequence[Row], wanted: Mapping[str, int], asked: Mapping[str, int]) -> Iterator[str]:
    for row in rows:
        yield from row.faults
    for name, count in wanted.items():
        if asked[name] < count:
            yield f"{name}: the gateway asked {asked[name]} replicas of the judge, not {count}"
