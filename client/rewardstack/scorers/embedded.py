"""Rules in this process, where no reward server is named and `rewardstack-rules` is installed.

That package runs them as the reward server does: what may take long runs in processes that can be killed, which a fresh
interpreter forks, never this process. Nothing is loaded or started before the first sample of a rule. This is the only
module of the client that imports the rules.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, NamedTuple, TypeVar

from rewardstack.cache.key import Key
from rewardstack.core.batching import BatchKey
from rewardstack.core.event_loop import loop_thread
from rewardstack.core.fields import Fields
from rewardstack.core.imports import importing
from rewardstack.pipeline.scorer import Context, Scorer
from rewardstack.score import Item, Score
from rewardstack.settings import Settings

DISTRIBUTION = "rewardstack-rules"
ALONE = BatchKey(1, "here")
"""Samples of a scorer that batches them itself."""

T = TypeVar("T")

log = logging.getLogger(__name__)


def runs_here(settings: Settings) -> bool:
    """Return whether rules run in this process: no reward server is named, and the rules are installed.

    A file of servers (`REWARDSTACK_ENDPOINTS`) that names none now may name one later; until then that is an error.
    """
    return not (settings.reward_server_urls or settings.endpoints) and find_spec("rewardstack_rules") is not None


class Placed(NamedTuple):
    """A prepared sample and the scorer that prepared it."""

    scorer: Scorer[Any]
    sample: Any


class EmbeddedRule(Scorer[Placed]):
    """A reward function in this process; a sample that names a reward server is scored there.

    Args:
        name: of the function.
        remote: scores samples that name a server (`extra_info.server_url`).
    """

    def __init__(self, name: str, remote: Scorer[Any]) -> None:
        self.source, self.timeout = remote.source, remote.timeout
        self._name = name
        self._remote = remote
        self._local: Scorer[Any] | None = None

    def prepare(self, item: Item) -> Placed | Score:
        """Return the sample as the scorer of its place prepares it.

        Raises:
            RequestError: the sample names its server wrongly.
            UnknownSourceError: there is no such function here; the message lists those there are.
            ConfigError: a setting of the rules is malformed.
        """
        scorer = self._remote if Fields(item.extra).get("server_url") else self._here()
        sample = scorer.prepare(item)
        return sample if isinstance(sample, Score) else Placed(scorer, sample)

    def _here(self) -> Scorer[Any]:
        """Return the scorer of this process, made at the first call; it lives on the loop that calls."""
        if self._local is None:
            with importing:
                from rewardstack_rules.scoring.local import embedded_rules

                rules = embedded_rules()
            self._local = rules.scorer(self._name)
            closing = loop_thread().closing
            if rules.close not in closing:
                closing.append(rules.close)
            _log_once()
        return self._local

    def inline(self, placed: Placed) -> Score | Placed:
        """Return the score of a sample that its scorer decides in microseconds, else the sample."""
        inline = placed.scorer.inline
        outcome = placed.sample if inline is None else inline(placed.sample)
        return outcome if isinstance(outcome, Score) else Placed(placed.scorer, outcome)

    def batch(self, placed: Placed) -> BatchKey:
        """Return the batch key that the sample's scorer gives it."""
        batch = placed.scorer.batch
        return ALONE if batch is None else batch(placed.sample)

    async def keys(self, samples: Sequence[Placed], context: Context) -> list[Key | None]:
        """Return the samples' cache keys, the same here and on a server; raise as the scorers do."""
        return await _each(samples, lambda scorer, own: scorer.keys(own, context))

    async def score(self, samples: Sequence[Placed], context: Context) -> list[Score]:
        """Return one score for each sample, in order; raise as the scorers do."""
        return await _each(samples, lambda scorer, own: scorer.score(own, context))

    def describe(self, item: Item, sample: Placed) -> Mapping[str, Any]:
        """Return what the sample's scorer says of it."""
        return sample.scorer.describe(item, sample.sample)


async def _each(placed: Sequence[Placed], ask: Callable[[Scorer[Any], list[Any]], Awaitable[list[T]]]) -> list[T]:
    """Return what the samples' scorers answer, in the order of the samples."""
    positions: dict[Scorer[Any], list[int]] = {}
    for at, one in enumerate(placed):
        positions.setdefault(one.scorer, []).append(at)
    asked = (ask(scorer, [placed[at].sample for at in members]) for scorer, members in positions.items())
    found: dict[int, T] = {}
    for members, answers in zip(positions.values(), await asyncio.gather(*asked), strict=True):
        found.update(zip(members, answers, strict=True))
    return [found[at] for at in range(len(placed))]


@lru_cache(maxsize=1)
def _log_once() -> None:
    log.warning(
        "REWARD_SERVER_URL is not set: rules run on this machine (%s %s); set it to use a reward server",
        *(DISTRIBUTION, version(DISTRIBUTION)),
    )
