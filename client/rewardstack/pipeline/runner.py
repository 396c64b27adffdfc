"""What one scorer does for a batch: cache first, then calls that are shared with whoever asks the same."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from rewardstack.cache.key import tenant_key
from rewardstack.cache.store import ResultCache
from rewardstack.core.coalescing import Flights, landing
from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.core.keys import Key
from rewardstack.errors import ConfigError, ServiceError
from rewardstack.pipeline.batches import Outcome, ScoreCarrier, checked
from rewardstack.pipeline.fallback import fall_back
from rewardstack.pipeline.lanes import Lanes
from rewardstack.score import Item, Score
from rewardstack.scorers.base import DirectScorer, FallbackScorer, QuickScorer, Scorer, SlowScorer

SLICE = 512
"""Samples handled before the loop gets a breath: its other callers wait no longer than these take."""
BREATH = 0.01
"""Seconds after which it gets one where a sample can take long."""

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
        self._quick = scorer if isinstance(scorer, QuickScorer) else None
        self._slow = scorer if isinstance(scorer, SlowScorer) else None
        self._cache = cache
        carrier = ScoreCarrier(scorer, cache)
        self._flights = Flights(carrier) if self._slow is None else Lanes(carrier, self._slow.lane)

    async def score(
        self, items: Sequence[Item], deadline: Deadline, tenant: str, *, substitutes_until: float | None = None
    ) -> list[Score]:
        """One score for each item, in order; what has none comes back as `unscored` or `failed`.

        Args:
            items: the samples.
            deadline: of the caller.
            tenant: separates those who may not see each other's results.
            substitutes_until: when the last substitute for a failed score is begun, on `time.monotonic()`; None where
                the caller wants none.

        Raises:
            ConfigError: the caller is at fault.
        """
        started = time.monotonic()
        scores = await self._score(items, deadline, tenant)
        if self._slow is not None:
            self._slow.report(scores, time.monotonic() - started)
        if substitutes_until is None:
            scores = [_without_substitute(score) for score in scores]
        elif isinstance(self.scorer, FallbackScorer):
            scores = await fall_back(self.scorer, items, scores, substitutes_until)
        return self._reported(scores)

    async def _score(self, items: Sequence[Item], deadline: Deadline, tenant: str) -> list[Score]:
        started = time.monotonic()
        try:
            keys = await self._keys(items, deadline, tenant)
        except ServiceError as error:
            lost = Score.failed(str(error), self.scorer.source)
            begun = await self._begin(items, range(len(items)))
            return [one if isinstance(one, Score) else lost for one in begun.values()]
        known = self._recalled(keys)
        begun = await self._begin(items, [at for at in range(len(items)) if at not in known])
        quick = {at: one for at, one in begun.items() if isinstance(one, Score)}
        self._cache.remember(_worth_keeping(quick, keys))
        known |= await self._read(keys, [at for at in begun if at not in quick])
        elapsed = milliseconds(started)
        scores = {at: _timed(score, elapsed, cached=True) for at, score in known.items()}
        missing = {at: one for at, one in begun.items() if at not in quick and at not in known}
        fresh = quick | await self._ask(items, keys, missing, deadline)
        elapsed = milliseconds(started)
        for at, score in fresh.items():
            scores[at] = _timed(score, score.latency_ms or elapsed, cached=score.cached)
        return [scores[at] for at in range(len(items))]

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

    def _recalled(self, keys: Sequence[Key | None]) -> dict[int, Score]:
        """The scores, by position, that this process remembers."""
        found = self._cache.recall(key.text if key is not None else "" for key in keys)
        return {at: score for at, score in enumerate(found) if score is not None}

    async def _begin(self, items: Sequence[Item], missing: Sequence[int]) -> dict[int, object]:
        """What the scorer has at once, by position: scores, and what its `answer` goes on with."""
        if self._quick is None:
            return dict.fromkeys(missing)
        begun: dict[int, object] = {}
        rested = time.monotonic()
        for at in missing:
            one = self._quick.at_once(items[at])
            begun[at] = checked(one) if isinstance(one, Score) else one
            if time.monotonic() - rested > BREATH:
                await asyncio.sleep(0)
                rested = time.monotonic()
        return begun

    async def _read(self, keys: Sequence[Key | None], missing: Sequence[int]) -> dict[int, Score]:
        """The scores, by position, that Redis has."""
        asked = {at: key for at in missing if (key := keys[at]) is not None}
        ranges = {key.text: key.range for key in asked.values()}
        found = await self._cache.get([key.text for key in asked.values()], partial(self._can_be, ranges))
        return {at: score for at, score in zip(asked, found, strict=True) if score is not None}

    def _can_be(self, ranges: Mapping[str, tuple[float, float]], key: str, score: Score) -> bool:
        """Whether this scorer can have given a score: whoever writes to Redis may have put anything there."""
        low, high = ranges[key]
        return score.source == self.scorer.source and score.value is not None and low <= score.value <= high

    async def _ask(
        self, items: Sequence[Item], keys: Sequence[Key | None], missing: Mapping[int, object], deadline: Deadline
    ) -> dict[int, Score]:
        """The scores, by position, of what is in no cache; they are kept there."""
        if self._direct is None:
            return await self._fly(items, keys, missing, deadline)
        found = await self._direct.answer(list(missing.values()), deadline)
        scores = {at: checked(score) for at, score in zip(missing, found, strict=True)}
        self._cache.put(_worth_keeping(scores, keys))
        return scores

    async def _fly(
        self, items: Sequence[Item], keys: Sequence[Key | None], missing: Mapping[int, object], deadline: Deadline
    ) -> dict[int, Score]:
        """The scores, by position, of a scorer that is asked in batches."""
        order = missing if self._slow is None else self._slow.order(items)
        waits = await self._board(items, keys, [at for at in order if at in missing], deadline)
        await landing(waits.values(), deadline)
        late = Score.failed(f"no answer within {deadline.timeout:g} s", self.scorer.source)
        scores: dict[int, Score] = {}
        for at, wait in waits.items():
            outcome = wait.result() if wait.done() else late
            if isinstance(outcome, ConfigError):
                raise outcome
            scores[at] = outcome
        return scores

    async def _board(
        self, items: Sequence[Item], keys: Sequence[Key | None], asked: Sequence[int], deadline: Deadline
    ) -> dict[int, asyncio.Future[Outcome]]:
        """What will become of the items at the positions `asked`."""
        waits: dict[int, asyncio.Future[Outcome]] = {}
        with self._flights.boarding():
            for at in asked:
                waits[at] = self._flights.board(items[at], keys[at], SharedDeadline(deadline))
                if len(waits) % SLICE == 0:
                    await asyncio.sleep(0)
        return waits

    def _reported(self, scores: list[Score]) -> list[Score]:
        """Says once a batch, not once a sample, that some have no score."""
        lost = [score for score in scores if score.status == "failed"]
        if lost:
            log.warning(
                "%s: %d of %d samples failed; the first: %s", self.scorer.source, len(lost), len(scores), lost[0].reason
            )
        return scores


def _worth_keeping(scores: Mapping[int, Score], keys: Sequence[Key | None]) -> list[tuple[str, Score]]:
    return [(key.text, one) for at, one in scores.items() if one.status == "ok" and (key := keys[at]) is not None]


def _without_substitute(score: Score) -> Score:
    """A reward server may have used a substitute that this caller does not want."""
    return replace(score, value=None, status="failed") if score.status == "fallback" else score


def milliseconds(since: float) -> float:
    """Milliseconds since `since`, which is a time of `time.monotonic()`."""
    return round((time.monotonic() - since) * 1000, 3)


def _timed(score: Score, elapsed: float, *, cached: bool) -> Score:
    """A copy of its own: what the cache and other waiters hold is not the caller's to change."""
    parts = None if score.parts is None else dict(score.parts)
    return Score(score.value, score.status, score.reason, score.source, cached, elapsed, score.label_mass, parts)
