"""The stack under test: its services, how they score samples, and the exceptions of a check."""

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
from rewardstack.scorers.judge.api import query_string
from rewardstack.settings import Settings
from rewardstack_cli.deep.samples import Sample, ServiceName
from rewardstack_cli.probes import embedding, judge, reward_model, reward_server
from rewardstack_cli.probes.http import Probed

REQUEST_TIMEOUT = 60.0
"""Timeout in seconds of an HTTP request: a busy machine is slow."""
PAUSE = 0.5
"""Seconds between two tests of a condition in `wait_until`."""
NAMES = {
    "rules": reward_server.NAMES,
    "judge": judge.NAMES,
    "embedding": embedding.NAMES,
    "reward-model": reward_model.NAMES,
}


class Unmet(Exception):
    """A check failed; the message says why."""


class LeftOut(Exception):
    """The stack lacks what would be checked; the message says what."""


@dataclass(frozen=True)
class Stack:
    """A running stack.

    Args:
        settings: settings with the URLs and keys of the stack's services.
        session: HTTP session for the requests.
        loading_seconds: maximum seconds until a model server that was stopped answers again.
    """

    settings: Settings
    session: aiohttp.ClientSession
    loading_seconds: float = 1800.0

    @property
    def services(self) -> list[ServiceName]:
        """The services that the stack has."""
        return [service for service in get_args(ServiceName) if self._urls(service)]

    def servers(self, service: ServiceName) -> list[Probed]:
        """Return a probe for each URL of a service.

        Raises:
            LeftOut: the service has no URL.
        """
        keys = {
            "rules": self.settings.reward_server_api_key,
            "judge": self.settings.judge_api_key,
            "embedding": self.settings.embedding_api_key,
            "reward-model": self.settings.reward_model_api_key,
        }
        urls = self._urls(service)
        if not urls:
            raise LeftOut(f"{NAMES[service].url} is not set")
        additions = (dict(self.settings.judge_headers), query_string(self.settings)) if service == "judge" else ()
        return [Probed(url, keys[service], self.session, NAMES[service], *additions) for url in urls]

    def _urls(self, service: ServiceName) -> Sequence[str]:
        return {
            "rules": self.settings.reward_server_urls,
            "judge": self.settings.judge_urls,
            "embedding": self.settings.embedding_urls,
            "reward-model": self.settings.reward_model_urls,
        }[service]

    async def score(
        self, some: Sequence[Sample], *, direct: bool = False, on_error: OnError | None = None
    ) -> list[Score]:
        """Return one score for each sample, in order.

        Args:
            some: the samples.
            direct: whether to send requests to the model servers themselves, and use the cache if its URL is set; else
                everything goes through the reward server, as from a trainer that has no other URL.
            on_error: policy for samples without a score; None for the policy of each sample's route.
        """
        # No cache in this process, and only the built-in routes.
        settings = replace(self.settings, cache_items=0, routes_files=())
        if not direct:
            settings = replace(settings, judge_urls=(), embedding_urls=(), reward_model_urls=(), cache_url="")
        requests = [sample.request for sample in some]
        return await run_async(score_on_loop(requests, settings, on_error, None))


async def wait_until(holds: Callable[[], Awaitable[bool]], seconds: float, what: str) -> None:
    """Wait until a condition holds.

    Raises:
        Unmet: it does not hold within `seconds`; the message has `what`.
    """
    end = time.monotonic() + seconds
    while not await holds():
        if time.monotonic() > end:
            raise Unmet(f"not after {seconds:g} s: {what}")
        await asyncio.sleep(PAUSE)


def require(fact: bool, otherwise: str) -> None:
    """Raise `Unmet` if `fact` is false.

    Raises:
        Unmet: `fact` is false; `otherwise` is the message.
    """
    if not fact:
        raise Unmet(otherwise)


def require_right(some: Sequence[Sample], scores: Sequence[Score]) -> None:
    """Raise `Unmet` if a sample has a wrong score.

    Raises:
        Unmet: a score is wrong; the message says which and why.
    """
    require(len(some) == len(scores), f"{len(scores)} scores for {len(some)} samples")
    faults = [fault for sample, one in zip(some, scores, strict=True) if (fault := sample.fault(one))]
    require(not faults, "; ".join(faults))
