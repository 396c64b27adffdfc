"""Access the services of the stack under test; define the exceptions of a check."""

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
from rewardstack_cli.probes.http import ProbedService

REQUEST_TIMEOUT = 60.0
"""Timeout in seconds of an HTTP request: a busy machine is slow."""
CHECK_INTERVAL = 0.5
"""Seconds between two tests of a condition in `wait_until`."""
NAMES = {
    "rules": reward_server.NAMES,
    "judge": judge.NAMES,
    "embedding": embedding.NAMES,
    "reward-model": reward_model.NAMES,
}


class CheckFailedError(Exception):
    """A check failed; the message says why."""


class CheckSkippedError(Exception):
    """A check does not apply to the stack; the message says why."""


@dataclass(frozen=True)
class Stack:
    """A running stack.

    Args:
        settings: settings with the URLs and keys of the stack's services.
        session: HTTP session for the requests.
        loading_seconds: maximum seconds until the judge answers after a start.
    """

    settings: Settings
    session: aiohttp.ClientSession
    loading_seconds: float = 1800.0

    @property
    def services(self) -> list[ServiceName]:
        """The services whose URLs are set."""
        return [service for service in get_args(ServiceName) if self._urls(service)]

    def servers(self, service: ServiceName) -> list[ProbedService]:
        """Return a client for each URL of a service.

        Raises:
            CheckSkippedError: the service has no URL.
        """
        keys = {
            "rules": self.settings.reward_server_api_key,
            "judge": self.settings.judge_api_key,
            "embedding": self.settings.embedding_api_key,
            "reward-model": self.settings.reward_model_api_key,
        }
        urls = self._urls(service)
        if not urls:
            raise CheckSkippedError(f"{NAMES[service].url} is not set")
        headers_and_query = (
            (dict(self.settings.judge_headers), query_string(self.settings)) if service == "judge" else ()
        )
        return [ProbedService(url, keys[service], self.session, NAMES[service], *headers_and_query) for url in urls]

    def _urls(self, service: ServiceName) -> Sequence[str]:
        return {
            "rules": self.settings.reward_server_urls,
            "judge": self.settings.judge_urls,
            "embedding": self.settings.embedding_urls,
            "reward-model": self.settings.reward_model_urls,
        }[service]

    async def score(
        self, samples: Sequence[Sample], *, direct: bool = False, on_error: OnError | None = None
    ) -> list[Score]:
        """Return one score for each sample, in order.

        Args:
            samples: the samples.
            direct: if True, samples for a model server are sent to that model server, and the shared cache is used if
                REWARD_CACHE_URL is set. If False, all samples are sent to the reward server.
            on_error: policy for samples without a score; None for the policy of each sample's route.
        """
        # Disable the in-memory cache of this process, and use only the built-in routes.
        settings = replace(self.settings, cache_items=0, routes_files=())
        if not direct:
            settings = replace(settings, judge_urls=(), embedding_urls=(), reward_model_urls=(), cache_url="")
        requests = [sample.request for sample in samples]
        return await run_async(score_on_loop(requests, settings, on_error, None))


async def wait_until(condition: Callable[[], Awaitable[bool]], seconds: float, description: str) -> None:
    """Wait until a condition holds.

    Args:
        condition: returns whether the condition holds.
        seconds: maximum seconds to wait.
        description: end of the error message; says what is wrong if the condition does not hold.

    Raises:
        CheckFailedError: the condition does not hold within `seconds`.
    """
    end = time.monotonic() + seconds
    while not await condition():
        if time.monotonic() > end:
            raise CheckFailedError(f"after {seconds:g} s, {description}")
        await asyncio.sleep(CHECK_INTERVAL)


def require(condition: bool, message: str) -> None:
    """Raise `CheckFailedError` with `message` if `condition` is false."""
    if not condition:
        raise CheckFailedError(message)


def require_right(samples: Sequence[Sample], scores: Sequence[Score]) -> None:
    """Raise `CheckFailedError` if a sample has a wrong score; the message says which sample and why."""
    require(len(samples) == len(scores), f"{len(scores)} scores for {len(samples)} samples")
    problems = [fault for sample, one in zip(samples, scores, strict=True) if (fault := sample.describe_fault(one))]
    require(not problems, "; ".join(problems))
