"""The stack that is checked: how its services are asked, how samples are scored there, and what a check can find."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import aiohttp

from rewardstack.client import score_on_loop
from rewardstack.core.event_loop import run_async
from rewardstack.score import OnError, Score
from rewardstack.scorers.judge.api import query_of
from rewardstack.settings import Settings
from rewardstack_cli.deep.samples import Sample, ServiceName
from rewardstack_cli.probes import embedding, judge, reward_server
from rewardstack_cli.probes.http import Probed

PATIENCE = 60.0
"""Seconds for an answer over HTTP: a busy machine takes its time."""
PAUSE = 0.5
NAMES = {"rules": reward_server.NAMES, "judge": judge.NAMES, "embedding": embedding.NAMES}


class Unmet(Exception):
    """Something that must hold does not; says what."""


class LeftOut(Exception):
    """The stack lacks what would be checked; says why."""


@dataclass(frozen=True)
class Stack:
    """A running stack.

    Args:
        settings: where its services are, and their keys.
        session: that carries questions over HTTP.
        loading_seconds: that a stopped model server may take until it answers again.
    """

    settings: Settings
    session: aiohttp.ClientSession
    loading_seconds: float = 1800.0

    @property
    def services(self) -> list[ServiceName]:
        """Those that it has."""
        return [service for service in get_args(ServiceName) if self._urls(service)]

    def servers(self, service: ServiceName) -> list[Probed]:
        """Each address of a service.

        Raises:
            LeftOut: it has none.
        """
        keys = {
            "rules": self.settings.reward_server_api_key,
            "judge": self.settings.judge_api_key,
            "embedding": self.settings.embedding_api_key,
        }
        urls = self._urls(service)
        if not urls:
            raise LeftOut(f"{NAMES[service].url} is not set")
        additions = (dict(self.settings.judge_headers), query_of(self.settings)) if service == "judge" else ()
        return [Probed(url, keys[service], self.session, NAMES[service], *additions) for url in urls]

    def _urls(self, service: ServiceName) -> Sequence[str]:
        return {
            "rules": self.settings.reward_server_urls,
            "judge": self.settings.judge_urls,
            "embedding": self.settings.embedding_urls,
        }[service]

    async def score(
        self, some: Sequence[Sample], *, direct: bool = False, on_error: OnError | None = None
    ) -> list[Score]:
        """One score for each sample, in order.

        Args:
            some: the samples.
            direct: whether judge and embedding server are asked themselves, with the cache where one is named; else
                everything goes through the reward server, as from a trainer that knows no other address.
            on_error: what a sample without a score is worth; None for its route's own policy.
        """
        # This process remembers nothing itself, and has no routes but the built-in ones.
        settings = replace(self.settings, cache_items=0, routes_files=())
        if not direct:
            settings = replace(settings, judge_urls=(), embedding_urls=(), cache_url="")
        requests = [sample.request for sample in some]
        return await run_async(score_on_loop(requests, settings, on_error, None))


async def wait_until(holds: Callable[[], Awaitable[bool]], seconds: float, what: str) -> None:
    """Returns when something holds.

    Raises:
        Unmet: it does not within `seconds`; says `what` was waited for.
    """
    end = time.monotonic() + seconds
    while not await holds():
        if time.monotonic() > end:
            raise Unmet(f"not after {seconds:g} s: {what}")
        await asyncio.sleep(PAUSE)


def require(fact: bool, otherwise: str) -> None:
    """Returns where `fact` holds.

    Raises:
        Unmet: it does not; `otherwise` says what is so instead.
    """
    if not fact:
        raise Unmet(otherwise)


def require_right(some: Sequence[Sample], scores: Sequence[Score]) -> None:
    """Returns where every sample has a right score.

    Raises:
        Unmet: one has not; says which and why.
    """
    require(len(some) == len(scores), f"{len(scores)} scores for {len(some)} samples")
    faults = [fault for sample, one in zip(some, scores, strict=True) if (fault := sample.fault(one))]
    require(not faults, "; ".join(faults))
