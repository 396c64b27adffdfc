"""Run rules (reward functions) on this machine, if no reward server is set and `rewardstack-rules` is installed.

`rewardstack-rules` runs rules as the reward server does: slow rules run in worker processes that can be killed. The
workers are forked from a separate interpreter, never from this process. The package is not imported before the first
sample that needs a rule. No other module of the client imports `rewardstack_rules`.
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
NO_BATCHING = BatchKey(1, "here")
"""Batch key (one sample per batch) for samples of a scorer that does its own batching."""

T = TypeVar("T")

log = logging.getLogger(__name__)


def is_rule_local(settings: Settings) -> bool:
    """Return whether rules run on this machine: no reward server is set, and the rules are installed.

    If `REWARDSTACK_ENDPOINTS` names a file, rules never run here, because the file may later name a reward server.
    """
    return not (settings.reward_server_urls or settings.endpoints) and find_spec("rewardstack_rules") is not None


class LocalOrRemote(NamedTuple):
    """A prepared sample, and the local or remote scorer that prepared it."""

    scorer: Scorer[Any]
    sample: Any


class EmbeddedRule(Scorer[LocalOrRemote]):
    """Scores with a reward function on this machine; samples with `extra_info.server_url` are scored on that server.

    Args:
        name: the name of the reward function.
        remote: the scorer for samples with `extra_info.server_url`.
    """

    def __init__(self, name: str, remote: Scorer[Any]) -> None:
        self.source, self.timeout = remote.source, remote.timeout
        self._name = name
        self._remote = remote
        self._local: Scorer[Any] | None = None

    def prepare(self, item: Item) -> LocalOrRemote | Score:
        """Return the sample as prepared by the local or remote scorer.

        Raises:
            RequestError: the sample's `server_url` is malformed.
            UnknownSourceError: the function does not exist; the error lists the known functions.
            ConfigError: a setting of the rules is malformed.
        """
        scorer = self._remote if Fields(item.extra).get("server_url") else self._local_scorer()
        sample = scorer.prepare(item)
        return sample if isinstance(sample, Score) else LocalOrRemote(scorer, sample)

    def _local_scorer(self) -> Scorer[Any]:
        """Return the local scorer, which the first call creates on the running event loop."""
        if self._local is None:
            with import_lock:
                from rewardstack_rules.scoring.local import embedded_rules

                rules = embedded_rules()
            self._local = rules.scorer(self._name)
            closing = loop_thread().closing
            if rules.close not in closing:
                closing.append(rules.close)
            _warn_once()
        return self._local

    def inline(self, sample: LocalOrRemote) -> Score | LocalOrRemote:
        """Return the score if the sample's scorer can compute it inline (in microseconds), else the sample."""
        inline = sample.scorer.inline
        outcome = sample.sample if inline is None else inline(sample.sample)
        return outcome if isinstance(outcome, Score) else LocalOrRemote(sample.scorer, outcome)

    def batch(self, sample: LocalOrRemote) -> BatchKey:
        """Return the batch key of the sample's scorer."""
        batch = sample.scorer.batch
        return NO_BATCHING if batch is None else batch(sample.sample)

    async def keys(self, samples: Sequence[LocalOrRemote], context: Context) -> list[Key | None]:
        """Return the samples' cache keys, which are the same as on a reward server; raise as their scorers do."""
        return await _call_scorers(samples, lambda scorer, prepared: scorer.keys(prepared, context))

    async def score(self, samples: Sequence[LocalOrRemote], context: Context) -> list[Score]:
        """Return one score for each sample, in order; raise as the samples' scorers do."""
        return await _call_scorers(samples, lambda scorer, prepared: scorer.score(prepared, context))

    def describe(self, item: Item, sample: LocalOrRemote) -> Mapping[str, Any]:
        """Return what the sample's scorer reports about the sample."""
        return sample.scorer.describe(item, sample.sample)


async def _call_scorers(
    samples: Sequence[LocalOrRemote], call: Callable[[Scorer[Any], list[Any]], Awaitable[list[T]]]
) -> list[T]:
    """Call `call` once for each scorer, with its prepared samples; return the results in the order of `samples`."""
    positions: dict[Scorer[Any], list[int]] = {}
    for index, sample in enumerate(samples):
        positions.setdefault(sample.scorer, []).append(index)
    calls = (call(scorer, [samples[index].sample for index in members]) for scorer, members in positions.items())
    results: dict[int, T] = {}
    for members, outcomes in zip(positions.values(), await asyncio.gather(*calls), strict=True):
        results.update(zip(members, outcomes, strict=True))
    return [results[index] for index in range(len(samples))]


@lru_cache(maxsize=1)
def _warn_once() -> None:
    log.warning(
        "REWARD_SERVER_URL is not set: rules run on this machine (%s %s); set it to use a reward server",
        *(DISTRIBUTION, version(DISTRIBUTION)),
    )
