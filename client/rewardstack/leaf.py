"""What one scorer does for a batch: cache first, then calls that are shared with whoever asks the same."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

from rewardstack.cache.key import tenant_key
from rewardstack.cache.store import ResultCache
from rewardstack.deadline import Deadline, SharedDeadline
from rewardstack.errors import ConfigError, ServiceError
from rewardstack.flights import Flights, Outcome, checked, landing
from rewardstack.score import Item, Score
from rewardstack.scorer import DirectScorer, Key, Scorer

SLICE = 512
"""Samples handled before the loop gets a breath: its other callers wait no longer than these take."""

log = logging.getLogger(__name__)


class Runner:
    """Runs one scorer behind the cache.

    Args:
        scorer: asked for what the cache does not have.
        cache: of results.
    """

    def __init__(self, scorer: Scorer, cache: ResultCache) -> None:
        self.scorer = scorer
        self._direct = scorer if isinstance(scorer, DirectScorer) else None
        self._cache = cache
        self._flights = Flights(scorer, cache.put)

    async def score(self, items: Sequence[Item], deadline: Deadline, tenant: str) -> list[Score]:
        """One score for each item, in order; what has none comes back as `unscored` or `failed`.

        Args:
            items: the samples.
            deadline: of the caller.
            tenant: separates those who may not see each other's results.

        Raises:
            ConfigError: the caller is at fault.
        """
        started = time.monotonic()
        try:
            keys = await self._keys(items, deadline, tenant)
        except ServiceError as error:
            return self._reported([Score.failed(str(error), self.scorer.source) for _ in items])
        scores = await self._known(keys)
        elapsed = milliseconds(started)
        missing = [at for at, score in enumerate(scores) if score is None]
        scores = [_timed(score, elapsed, cached=True) if score is not None else score for score in scores]
        ask = self._answer if self._direct is not None else self._fly
        fresh = await ask([items[at] for at in missing], [keys[at] for at in missing], deadline)
        elapsed = milliseconds(started)
        for at, score in zip(missing, fresh, strict=True):
            scores[at] = _timed(score, elapsed, cached=score.cached)
        return self._reported([score for score in scores if score is not None])

    async def _keys(self, items: Sequence[Item], deadline: Deadline, tenant: str) -> list[Key | None]:
        if self._direct is not None and not self._cache.keeps:
            return [None] * len(items)
        keys: list[Key | None] = []
        for start in range(0, len(items), SLICE):
            keys += await self.scorer.keys(items[start : start + SLICE], SharedDeadline(deadline))
            await asyncio.sleep(0)
        if not tenant:
            return keys
        return [None if key is None else tenant_key(key, tenant) for key in keys]

    async def _known(self, keys: Sequence[Key | None]) -> list[Score | None]:
        found: list[Score | None] = [None] * len(keys)
        asked = [at for at, key in enumerate(keys) if key is not None]
        read = await self._cache.get([key.text for key in keys if key is not None])
        for at, score in zip(asked, read, strict=True):
            found[at] = score
        return found

    async def _fly(self, items: Sequence[Item], keys: Sequence[Key | None], deadline: Deadline) -> list[Score]:
        """The scores of a scorer that is asked in batches."""
        waits: list[asyncio.Future[Outcome]] = []
        for item, key in zip(items, keys, strict=True):
            waits.append(self._flights.board(item, key, deadline))
            if len(waits) % SLICE == 0:
                await asyncio.sleep(0)
        await landing(waits, deadline)
        late = Score.failed(f"no answer within {deadline.timeout:g} s", self.scorer.source)
        scores = []
        for wait in waits:
            outcome = wait.result() if wait.done() else late
            if isinstance(outcome, ConfigError):
                raise outcome
            scores.append(outcome)
        return scores

    async def _answer(self, items: Sequence[Item], keys: Sequence[Key | None], deadline: Deadline) -> list[Score]:
        """The scores of a scorer that takes a caller's items itself; they are kept like all others."""
        assert self._direct is not None
        scores = [checked(score) for score in await self._direct.answer(items, deadline)]
        kept = [
            (key.text, one) for key, one in zip(keys, scores, strict=True) if key is not None and one.status == "ok"
        ]
        await self._cache.put(kept)
        return scores

    def _reported(self, scores: list[Score]) -> list[Score]:
        """Says once a batch, not once a sample, that some have no score."""
        lost = [score for score in scores if score.status == "failed"]
        if lost:
            log.warning(
                "%s: %d of %d samples failed; the first: %s", self.scorer.source, len(lost), len(scores), lost[0].reason
            )
        return scores


def milliseconds(since: float) -> float:
    """Milliseconds since `since`, which is a time of `time.monotonic()`."""
    return round((time.monotonic() - since) * 1000, 3)


def _timed(score: Score, elapsed: float, *, cached: bool) -> Score:
    """A copy of its own: what the cache and other waiters hold is not the caller's to change."""
    parts = None if score.parts is None else dict(score.parts)
    return Score(score.value, score.status, score.reason, score.source, cached, elapsed, score.label_mass, parts)
