"""What one scorer does for a batch: cache first, then calls that are shared with whoever asks the same."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from typing import Generic, TypeVar

from rewardstack.cache.key import CACHE_ENABLED, may_be_cached, tenant_key
from rewardstack.cache.store import ResultCache
from rewardstack.core.coalescing import SLICE, Coalescer
from rewardstack.core.cost import Quote
from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.core.keys import Key
from rewardstack.errors import BudgetError, ConfigError, RequestError, ServiceError
from rewardstack.pipeline.fallback import fall_back, substitute
from rewardstack.pipeline.outcomes import (
    Reply,
    checked,
    milliseconds,
    timed,
    warn_of_missing,
    without_substitute,
    worth_keeping,
)
from rewardstack.pipeline.scorer import Scorer, Sending
from rewardstack.score import Item, Score, Usage

BREATH = 0.01
"""Seconds after which the loop gets a breath where samples are scored at once."""

FIXED = Item("1", ("1",), {"temperature": 0})
"""By whose key is seen whether what scores has changed; at temperature 0 it is bound to no run, where that is taken."""

P = TypeVar("P")

log = logging.getLogger(__name__)


class Runner(Generic[P]):
    """Runs one scorer behind the cache; the backend of its own coalescer.

    Args:
        scorer: asked for what the cache does not have.
        sending: how samples are sent to it.
        cache: of results.
    """

    def __init__(self, scorer: Scorer[P], sending: Sending[P], cache: ResultCache) -> None:
        self.scorer = scorer
        self.dropped: Reply = Score.failed("dropped: the client is shutting down", scorer.source)
        self._sending = sending
        self._cache = cache
        self._coalescer: Coalescer[P, Reply] | None = None
        if sending.lane is not None:
            self._coalescer = Coalescer(self, sending.lane)

    async def score(
        self,
        items: Sequence[Item],
        deadline: Deadline,
        tenant: str,
        *,
        fatal: list[BudgetError] | None = None,
        substitutes_until: float | None = None,
    ) -> list[Score]:
        """One score for each item, in order; what has none comes back as `unscored` or `failed`.

        Args:
            items: the samples.
            deadline: of the caller.
            tenant: separates those who may not see each other's results.
            fatal: gets the error of each sample that the run's budget refuses, where that ends the call; None where
                such a sample has failed as any other.
            substitutes_until: when the last substitute for a failed score is begun, on `time.monotonic()`; None where
                the caller wants none.

        Raises:
            ConfigError: the caller is at fault.
        """
        started = time.monotonic()
        prepared = await self._prepare(items)
        samples = {at: one for at, one in enumerate(prepared) if not isinstance(one, Score)}
        settled = {at: one for at, one in enumerate(prepared) if isinstance(one, Score)}
        kept = samples
        if any(CACHE_ENABLED in item.extra for item in items):
            kept = {at: one for at, one in samples.items() if may_be_cached(items[at].extra)}
        found = await self._score(samples, kept, settled, deadline, tenant, fatal)
        scores = [found[at] for at in range(len(items))]
        if self._sending.report is not None:
            self._sending.report(scores, time.monotonic() - started)
        if substitutes_until is None:
            scores = [without_substitute(score) for score in scores]
        elif not fatal:
            scores = await self._with_substitutes(scores, samples, substitutes_until)
        warn_of_missing(self.scorer.source, scores, len(scores))
        return scores

    async def _with_substitutes(self, scores: list[Score], samples: Mapping[int, P], until: float) -> list[Score]:
        fallback = self.scorer.fallback
        if fallback is None:
            return scores
        find = {at: partial(substitute, fallback, one) for at, one in samples.items()}
        return await fall_back(self.scorer.source, find, scores, until)

    async def quote(self, items: Sequence[Item], deadline: Deadline, tenant: str) -> Quote:
        """What the items would cost at most; equal ones are asked for once. Raises as the scorer's `keys` does."""
        prepared = await self._prepare(items)
        samples = {at: one for at, one in enumerate(prepared) if not isinstance(one, Score)}
        unscored = sum(isinstance(one, Score) and one.status == "unscored" for one in prepared)
        settled = Quote(settled=len(items) - len(samples), unscored=unscored)
        if self.scorer.quote is None or not samples:
            return settled
        kept = {at: one for at, one in samples.items() if may_be_cached(items[at].extra)}
        keys = await self._keys(kept, deadline, tenant)
        known = self._recall(keys) | await self._look_up(keys)
        asked: dict[object, P] = {}
        for at, one in samples.items():
            if at not in known:
                key = keys.get(at)
                asked.setdefault(key.text if key is not None and key.deterministic else at, one)
        usage = await self.scorer.quote(list(asked.values()), SharedDeadline(deadline)) if asked else Usage()
        return settled._replace(cached=len(known), usage=usage)

    async def fingerprint(self, deadline: Deadline) -> str | None:
        """The key of a sample that is always the same, None where it has none for good; raises as the scorer does."""
        prepared = self.scorer.prepare(FIXED)
        if isinstance(prepared, Score):
            return None
        [key] = await self.scorer.keys([prepared], SharedDeadline(deadline))
        return key.text if key is not None and key.deterministic else None

    async def _prepare(self, items: Sequence[Item]) -> list[P | Score]:
        prepared: list[P | Score] = []
        for start in range(0, len(items), SLICE):
            part = items[start : start + SLICE]
            try:
                prepared += [*map(self.scorer.prepare, part)]
            except RequestError:
                prepared += map(self._prepared, part)
            if len(prepared) < len(items):
                await asyncio.sleep(0)
        return prepared

    def _prepared(self, item: Item) -> P | Score:
        """What the scorer makes of an item; what is wrong with the item is an outcome, too."""
        try:
            return self.scorer.prepare(item)
        except RequestError as error:
            return Score.unscored(str(error), self.scorer.source, error.field)

    async def _score(
        self,
        samples: Mapping[int, P],
        kept: Mapping[int, P],
        settled: Mapping[int, Score],
        deadline: Deadline,
        tenant: str,
        fatal: list[BudgetError] | None,
    ) -> dict[int, Score]:
        """The scores, by position: those that were settled by being prepared, remembered, decided, read, asked for."""
        started = time.monotonic()
        try:
            keys = await self._keys(kept, deadline, tenant)
        except ServiceError as error:
            lost = Score.failed(str(error), self.scorer.source)
            return {**settled, **dict.fromkeys(samples, lost), **await self._score_at_once(samples, {})}
        known = self._recall(keys)
        decided = await self._score_at_once({at: one for at, one in samples.items() if at not in known}, keys)
        known |= await self._look_up({at: key for at, key in keys.items() if at not in known and at not in decided})
        elapsed = milliseconds(started)
        scores = {at: timed(score, elapsed, cached=True) for at, score in known.items()}
        missing = {at: one for at, one in samples.items() if at not in known and at not in decided}
        fresh = {**settled, **decided, **await self._ask(missing, keys, deadline, fatal)}
        elapsed = milliseconds(started)
        for at, score in fresh.items():
            scores[at] = timed(score, score.latency_ms or elapsed, cached=score.cached)
        return scores

    async def _keys(self, samples: Mapping[int, P], deadline: Deadline, tenant: str) -> dict[int, Key]:
        """The keys, by position, of the samples that have one."""
        if not self._cache.on or (self._coalescer is None and not self._cache.keeps):
            return {}
        keys: dict[int, Key] = {}
        places, prepared = list(samples), list(samples.values())
        for start in range(0, len(prepared), SLICE):
            found = await self.scorer.keys(prepared[start : start + SLICE], SharedDeadline(deadline))
            for at, key in zip(places[start : start + SLICE], found, strict=True):
                if key is not None:
                    keys[at] = tenant_key(key, tenant) if tenant else key
            await asyncio.sleep(0)
        return keys

    def _recall(self, keys: Mapping[int, Key]) -> dict[int, Score]:
        """The scores, by position, that this process remembers."""
        if not self._cache.keeps:
            return {}
        found = self._cache.recall([key.text for key in keys.values()])
        return {at: score for at, score in zip(keys, found, strict=True) if score is not None}

    async def _score_at_once(self, samples: Mapping[int, P], keys: Mapping[int, Key]) -> dict[int, Score]:
        """The scores, by position, that the scorer finds without asking anybody; this process remembers them."""
        at_once = self.scorer.at_once
        if at_once is None:
            return {}
        decided: dict[int, Score] = {}
        rested = time.monotonic()
        for at, one in samples.items():
            score = at_once(one)
            if score is not None:
                decided[at] = checked(score)
            if time.monotonic() - rested > BREATH:
                await asyncio.sleep(0)
                rested = time.monotonic()
        if self._cache.keeps:
            self._cache.remember(worth_keeping((keys.get(at), score) for at, score in decided.items()))
        return decided

    async def _look_up(self, keys: Mapping[int, Key]) -> dict[int, Score]:
        """The scores, by position, that Redis has."""
        if not keys or not self._cache.keeps:
            return {}
        ranges = {key.text: key.range for key in keys.values()}
        found = await self._cache.get([key.text for key in keys.values()], partial(self._can_be, ranges))
        return {at: score for at, score in zip(keys, found, strict=True) if score is not None}

    def _can_be(self, ranges: Mapping[str, tuple[float, float]], key: str, score: Score) -> bool:
        """Whether this scorer can have given a score: whoever writes to Redis may have put anything there."""
        low, high = ranges[key]
        return score.source == self.scorer.source and score.value is not None and low <= score.value <= high

    async def _ask(
        self,
        samples: Mapping[int, P],
        keys: Mapping[int, Key],
        deadline: Deadline,
        fatal: list[BudgetError] | None,
    ) -> dict[int, Score]:
        """The scores, by position, of what is in no cache; they are kept there."""
        if not samples:
            return {}
        if self._coalescer is None:
            found = await self.send(list(samples.values()), [keys.get(at) for at in samples], SharedDeadline(deadline))
            outcomes = dict(zip(samples, found, strict=True))
        else:
            outcomes = await self._submit(self._coalescer, samples, keys, deadline)
        return self._accepted(outcomes, fatal)

    def _accepted(self, outcomes: Mapping[int, Reply], fatal: list[BudgetError] | None) -> dict[int, Score]:
        """The outcomes, by position, as scores; raises the ConfigError that is one of them."""
        scores: dict[int, Score] = {}
        for at, outcome in outcomes.items():
            if isinstance(outcome, ConfigError):
                if not isinstance(outcome, BudgetError):
                    raise outcome
                if fatal is not None:
                    fatal.append(outcome)
                usage, outcome.usage = outcome.usage, None
                outcome = Score(None, "failed", str(outcome), self.scorer.source, usage=usage)
            scores[at] = outcome
        return scores

    async def _submit(
        self,
        coalescer: Coalescer[P, Reply],
        samples: Mapping[int, P],
        keys: Mapping[int, Key],
        deadline: Deadline,
    ) -> dict[int, Reply]:
        """What became of the samples, by position, in calls that others share."""
        places = list(samples)
        if self._sending.order is not None:
            places = [places[at] for at in self._sending.order(list(samples.values()))]
        asked = [samples[at] for at in places]
        outcomes = await coalescer.ask(asked, [keys.get(at) for at in places], deadline)
        return dict(zip(places, outcomes, strict=True))

    def late(self, reason: str) -> Reply:
        """A sample that nobody waits for any longer."""
        return Score.failed(reason, self.scorer.source)

    async def send(self, items: Sequence[P], keys: Sequence[Key | None], deadline: SharedDeadline) -> Sequence[Reply]:
        """One outcome for each sample, in order; scores with status `ok` are kept under the samples' keys."""
        outcomes = await self._outcomes(items, deadline)
        if self._cache.keeps:
            self._cache.put(worth_keeping(zip(keys, outcomes, strict=True)))
        return outcomes

    async def _outcomes(self, items: Sequence[P], deadline: SharedDeadline) -> Sequence[Reply]:
        """What the scorer makes of each sample, in order; its errors are outcomes, too."""
        source = self.scorer.source
        try:
            scores = await self._scored(items, deadline)
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

    def _scored(self, items: Sequence[P], deadline: SharedDeadline) -> Awaitable[list[Score]]:
        return self.scorer.score(items, deadline)

    def has_failed(self, outcome: Reply) -> bool:
        """Whether it is a failure of the service's."""
        return isinstance(outcome, Score) and outcome.status == "failed"
