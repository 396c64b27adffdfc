"""Batches of samples on their way to a scorer: its answers, and what it makes of errors, as outcomes."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence

from rewardstack.cache.store import ResultCache
from rewardstack.core.deadline import SharedDeadline
from rewardstack.errors import ConfigError, ServiceError
from rewardstack.score import Item, Score
from rewardstack.scorers.base import Scorer

log = logging.getLogger(__name__)

Outcome = Score | ConfigError


class ScoreCarrier:
    """The carrier (`rewardstack.core.coalescing`) of samples.

    Args:
        scorer: asked for a batch at a time.
        cache: keeps what it scored.
    """

    def __init__(self, scorer: Scorer, cache: ResultCache) -> None:
        self.dropped: Outcome = Score.failed("dropped: the client is shutting down", scorer.source)
        self._scorer = scorer
        self._cache = cache

    @property
    def batch_size(self) -> int:
        """How many samples the scorer takes at a time."""
        return self._scorer.batch_size

    async def carry(self, items: Sequence[Item], deadline: SharedDeadline) -> Sequence[Outcome]:
        """One outcome for each item, in order; the scorer's errors are outcomes, too."""
        source = self._scorer.source
        try:
            scores = await self._scorer.score(items, deadline)
        except ConfigError as error:
            return [error] * len(items)
        except ServiceError as error:
            return [Score.failed(str(error), source)] * len(items)
        except Exception as error:
            log.exception("%s: a fault in its scorer", source)
            return [Score.failed(f"internal error: {type(error).__name__}", source)] * len(items)
        if len(scores) != len(items):
            return [Score.failed(f"{len(scores)} scores came for {len(items)} samples", source)] * len(items)
        return [checked(score) for score in scores]

    def landed(self, outcomes: Iterable[tuple[str, Outcome]]) -> None:
        """Keeps the scores with status `ok`."""
        self._cache.put([(key, one) for key, one in outcomes if isinstance(one, Score) and one.status == "ok"])

    def has_failed(self, outcome: Outcome) -> bool:
        """Whether it is a failure of the service's."""
        return isinstance(outcome, Score) and outcome.status == "failed"


def checked(score: Score) -> Score:
    """`score`, or a failure where it is not what its status says: NaN and infinity are no rewards."""
    value = score.value
    if score.status in ("ok", "fallback") and (value is None or not math.isfinite(value)):
        return Score.failed(f"{value} is no reward", score.source)
    return score
