"""Rules (reward functions) in this process, if no reward server is set and `rewardstack-rules` is installed.

The package runs rules as the reward server does: slow rules run in worker processes that can be killed. The worker
processes are forked from a separate interpreter, never from this process. Nothing is loaded or started before the first
sample that needs a rule. No other module of the client imports the package.
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
from rewardstack.core.imports import import_lock
from rewardstack.pipeline.scorer import Context, Scorer
from rewardstack.score import Item, Score
from rewardstack.settings import Settings

DISTRIBUTION = "rewardstack-rules"
ALONE = BatchKey(1, "here")
"""Batch key (one sample per batch) for samples of a scorer that does its own batching."""

T = TypeVar("T")

log = logging.getLogger(__name__)


def runs_here(settings: Settings) -> bool:
    """Return whether rules run in this process: no reward server is set, and the rules are installed.

    With `REWARDSTACK_ENDPOINTS`, rules never run here, because the file that it names may add a server later.
    """
    return not (settings.reward_server_urls or settings.endpoints) and find_spec("rewardstack_rules") is not None


class Placed(NamedTuple):
    """A prepared sample and the scorer that prepared it."""

    scorer: Scorer[Any]
    sample: Any


class EmbeddedRule(Scorer[Placed]):
    """Scores with a reward function in this process; samples with `extra_info.server_url` are scored on that server.

    Args:
        name: the name of the reward function.
        remote: the scorer for samples with `extra_info.server_url`.
    """

    def __init__(self, name: str, remote: Scorer[Any]) -> None:
        self.source, self.timeout = remote.source, remote.timeout
        self._name = name
        self._remote = remote
        self._local: Scorer[Any] | None = None

    def prepare(self, item: Item) -> Placed | Score:
        """Return the sample as prepared by the local or remote scorer.

        Raises:
            RequestError: the sample's `server_url` is malformed.
            UnknownSourceError: the function does not exist; the error lists the known functions.
            ConfigError: a setting of the rules is malformed.
        """
        scorer = self._remote if Fields(item.extra).get("server_url") else self._local_scorer()
        sample = scorer.prepare(item)
        return sample if isinstance(sample, Score) else Placed(scorer, sample)

    def _local_scorer(self) -> Scorer[Any]:
        """Return the scorer in this process, which the first call creates on the running loop."""
        if self._local is None:
            with import_lock:
                from rewardstack_rules.scoring.local import embedded_rules

                rules = embedded_rules()
            self._local = rules.scorer(self._name)
            closing = loop_thread().closing
            if rules.close not in closing:
                closing.append(rules.close)
            _log_once()
        return self._local

    def inline(self, placed: Placed) -> Score | Placed:
        """Return the score if the sample's scorer can score it inline (in microseconds), else the sample."""
        inline = placed.scorer.inline
        outcome = placed.sample if inline is None else inline(placed.sample)
        return outcome if isinstance(outcome, Score) else Placed(placed.scorer, outcome)

    def batch(self, placed: Placed) -> BatchKey:
        """Return the batch key of the sample's scorer."""
        batch = placed.scorer.batch
        return ALONE if batch is None else batch(placed.sample)

    async def keys(self, samples: Sequence[Placed], context: Context) -> list[Key | None]:
        """Return the samples' cache keys, which are the same as on a server; raise as the samples' scorers do."""
        return await _each(samples, lambda scorer, own: scorer.keys(own, context))

    async def score(self, samples: Sequence[Placed], context: Context) -> list[Score]:
        """Return one score for each sample, in order; raise as the samples' scorers do."""
        return await _each(samples, lambda scorer, own: scorer.score(own, context))

    def describe(self, item: Item, sample: Placed) -> Mapping[str, Any]:
        """Return what the sample's scorer reports about the sample."""
        return sample.scorer.describe(item, sample.sample)


async def _each(placed: Sequence[Placed], ask: Callable[[Scorer[Any], list[Any]], Awaitable[list[T]]]) -> list[T]:
    """Call `ask` once for each scorer, with its samples; return the results in the order of `placed`."""
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
