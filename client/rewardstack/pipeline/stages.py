"""The stages between a route and its scorer: error policy, preparation, cache, batches. `pipeline` shows their order.

Each stage is called as `await stage(samples, context)` and returns the scores in order. The stages up to `Prepare`
accept an `Item` for each sample. `Cache`, `Batch` and `ScoreAndCache` accept a `Sample` for each item that `Prepare`
did not score.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from rewardstack.cache.key import CACHE_ENABLED, Key, may_be_cached, tenant_key
from rewardstack.cache.store import ResultCache
from rewardstack.cause import Cause
from rewardstack.core.batching import Batcher, BatchKey
from rewardstack.core.cost import Quote
from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.core.steps import drop_none
from rewardstack.core.stretch import Stretch, slices
from rewardstack.core.wire import Record
from rewardstack.errors import BudgetError, ConfigError, ReplyError, RequestError, ServiceError
from rewardstack.pipeline import missing
from rewardstack.pipeline.items import has_same_option, is_single, raise_if_all_invalid
from rewardstack.pipeline.scorer import Context, Scorer
from rewardstack.routing.composite import Composite
from rewardstack.routing.routes import Route
from rewardstack.routing.shaping import Shaping
from rewardstack.routing.syntax import definition
from rewardstack.score import Item, Score, Usage

SUBSTITUTES_SECONDS = 30.0
"""Maximum time in seconds to compute the substitutes (scores with status `fallback`) for one batch's failed samples."""
RESERVED_SHARE = 0.2
"""Share of a call's time limit that is reserved for substitutes."""
RESERVED_SECONDS = 5.0
"""Maximum time in seconds that is reserved for substitutes."""
SUBSTITUTES_PER_CHECK = 8
"""Number of substitutes that a thread computes before the time limit is checked."""
FINGERPRINT_ITEM = Item("1", ("1",), {"problem": "1", "temperature": 0})
"""A scorer's fingerprint is its cache key for this item; at temperature 0, a judge's key does not depend on the run."""

P = TypeVar("P")
Stage = Callable[[Sequence[Item], Context], Awaitable[list[Score]]]

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Sample(Generic[P]):
    """An item, the sample that the scorer prepared from it, and the cache key of its score (None for no caching)."""

    item: Item
    prepared: P
    key: Key | None = None


SampleStage = Callable[[Sequence[Sample[P]], Context], Awaitable[list[Score]]]


class Chain(Generic[P]):
    """A scorer and the stages that call it.

    Attributes:
        scorer: the scorer.
        stage: the first stage.
    """

    def __init__(self, scorer: Scorer[P], cache: ResultCache, tenant: str) -> None:
        self.scorer = scorer
        self._cache = Cache(scorer, cache, Batch(scorer, ScoreAndCache(scorer, cache), tenant))
        self._prepare = Prepare(scorer, self._cache)
        self.stage: Stage = ErrorPolicy(scorer, self._prepare)

    async def quote(self, items: Sequence[Item], context: Context) -> Quote:
        """Return the maximum cost of the items; equal items that can share a score count once.

        Raises:
            ServiceError, ConfigError: see `Scorer.keys`.
        """
        prepared = await self._prepare.prepare(items)
        samples = _samples(items, prepared)
        unscored = sum(isinstance(outcome, Score) and outcome.status == "unscored" for outcome in prepared)
        settled = Quote(0, len(items) - len(samples), unscored)
        if self.scorer.quote is None or not samples:
            return settled
        keys, cached_scores = await self._cache.find(samples, context)
        uncached: dict[object, P] = {}
        for index, (key, score) in enumerate(zip(keys, cached_scores, strict=True)):
            if score is None:
                share = key.text if key is not None and key.deterministic else index
                uncached.setdefault(share, samples[index].prepared)
        usage = await self.scorer.quote([*uncached.values()], context) if uncached else Usage()
        groups = self.scorer.count_groups([*uncached.values()]) if self.scorer.count_groups else 0
        return settled._replace(cached=len(samples) - cached_scores.count(None), usage=usage, groups=groups)

    async def fingerprint(self, context: Context) -> str | None:
        """Return the cache key of `FINGERPRINT_ITEM`; None if this item has no deterministic key.

        Raises:
            ServiceError, ConfigError: see `Scorer.keys`.
        """
        if self.scorer.count_groups is not None:  # scores of a group's members depend on the other members
            return None
        prepared = self.scorer.prepare(FINGERPRINT_ITEM)
        if isinstance(prepared, Score):
            return None
        [key] = await self.scorer.keys([prepared], context)
        return key.text if key is not None and key.deterministic else None

    def check_settings(self) -> None:
        """Raise ConfigError if a setting that the scorer needs for every sample is missing."""
        with suppress(RequestError):  # `FINGERPRINT_ITEM` may lack options, or have invalid ones
            self.scorer.prepare(FINGERPRINT_ITEM)


@dataclass(frozen=True, slots=True)
class Compose:
    """Combines the scores of other routes.

    Args:
        route: the composite route.
        composite: the target of `route`.
        parts: route and stage of each part, by the part's source.
    """

    route: Route
    composite: Composite
    parts: Mapping[str, tuple[Route, Stage]]

    async def __call__(self, items: Sequence[Item], context: Context) -> list[Score]:
        started = time.monotonic()
        usages: dict[int, Usage] = {}

        async def evaluate(part: str, batch: Sequence[Item]) -> list[Score]:
            scores = await self._part(part, batch, context)
            for item, score in zip(batch, scores, strict=True):
                if score.usage is not None:
                    usages[id(item)] = Usage.total((usages.get(id(item)), score.usage))
            return scores

        scores = await self.composite.score(items, evaluate)
        elapsed = elapsed_ms(started)
        for item, score in zip(items, scores, strict=True):
            score.latency_ms, score.usage = elapsed, usages.get(id(item))
        if context.trace is not None:
            context.trace.note("combined", {**definition(self.route), **describe_score(scores[0])})
        return scores

    async def _part(self, part: str, items: Sequence[Item], context: Context) -> list[Score]:
        route, stage = self.parts[part]
        if context.trace is not None:
            with context.trace.substep(f"part {part}", definition(route)) as trace:
                return await stage(items, replace(context, trace=trace))
        scores = await stage(items, context)
        if context.batch and has_same_option(context.batch, scores[0].field):
            raise_if_all_invalid(scores)
        return scores


@dataclass(frozen=True, slots=True)
class Singles:
    """Sends samples with `group_size` 1 to another route, because a judge that compares groups cannot score them.

    Args:
        group: the stage of a judge that compares the members of a group.
        single: the stage of the judge's `single_route`.
    """

    group: Stage
    single: Stage

    async def __call__(self, items: Sequence[Item], context: Context) -> list[Score]:
        are_single = [*map(is_single, items)]
        parts: dict[bool, list[Item]] = {}
        for item, single in zip(items, are_single, strict=True):
            parts.setdefault(single, []).append(item)
        stages = (self.single if single else self.group for single in parts)
        work = zip(stages, parts.values(), strict=True)
        part_scores = await asyncio.gather(*(stage(part, context) for stage, part in work))
        scores = {single: iter(part) for single, part in zip(parts, part_scores, strict=True)}
        return [next(scores[single]) for single in are_single]


@dataclass(frozen=True, slots=True)
class Shape:
    """Scales, shifts and clips the values of a route; the cache has the unshaped values."""

    shaping: Shaping
    stage: Stage

    async def __call__(self, items: Sequence[Item], context: Context) -> list[Score]:
        scores = await self.stage(items, context)
        for score in scores:
            if score.value is not None:
                score.value = self.shaping.apply(score.value)
        if context.trace is not None and scores[0].value is not None:
            context.trace.note("shaped", {**self.shaping.definition, "value": scores[0].value})
        return scores


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    """Warns about samples without a score, and gives failed samples substitute scores if the policy is `lexical`.

    Under any other policy, a sample that a reward server scored with a substitute becomes `failed`.
    """

    scorer: Scorer[Any]
    stage: Stage

    async def __call__(self, items: Sequence[Item], context: Context) -> list[Score]:
        scores = await self.stage(items, context)
        if not context.lexical:
            scores = [_without_substitute(score) for score in scores]
        elif self.scorer.fallback is not None and not context.budget_errors:
            substitutes = {index: partial(self.scorer.fallback, item) for index, item in enumerate(items)}
            await fall_back(self.scorer.source, substitutes, scores, context.ends_at)
            if context.trace is not None and scores[0].status == "fallback":
                context.trace.note("substitute", describe_score(scores[0]))
        missing.warn_of_missing(self.scorer.source, scores, len(scores))
        return scores


@dataclass(frozen=True, slots=True)
class Prepare(Generic[P]):
    """Lets the scorer prepare items; an item that is invalid or needs no service gets its score here."""

    scorer: Scorer[P]
    stage: SampleStage[P]

    async def __call__(self, items: Sequence[Item], context: Context) -> list[Score]:
        started = time.monotonic()
        deadline = Deadline(context.timeout_of(self.scorer), _service_time(context))
        errors, trace = context.budget_errors, context.trace
        context = Context(SharedDeadline(deadline), deadline, context.tenant, budget_errors=errors, trace=trace)
        prepared = await self.prepare(items)
        if context.trace is not None:
            [outcome] = prepared
            facts = describe_score(outcome) if isinstance(outcome, Score) else self.scorer.describe(items[0], outcome)
            context.trace.note("prepared", {"scorer": self.scorer.source, **facts})
        samples = _samples(items, prepared)
        scored = iter(await self.stage(samples, context) if samples else ())
        elapsed = elapsed_ms(started)
        scores = [
            copy_for_caller(outcome, elapsed) if isinstance(outcome, Score) else next(scored) for outcome in prepared
        ]
        if self.scorer.report is not None:
            self.scorer.report(scores, time.monotonic() - started)
        return scores

    async def prepare(self, items: Sequence[Item]) -> list[P | Score]:
        """Return each item as prepared by the scorer, or the item's score."""
        prepared: list[P | Score] = []
        stretch = Stretch()
        for item in items:
            prepared.append(self._prepare(item))
            if stretch.is_over():
                await stretch.rest()
        return prepared

    def _prepare(self, item: Item) -> P | Score:
        try:
            return self.scorer.prepare(item)
        except RequestError as error:
            return error.as_score(self.scorer.source)


@dataclass(frozen=True, slots=True)
class Cache(Generic[P]):
    """Looks up scores in memory, then scores inline, then looks in Redis; the next stage scores the rest."""

    scorer: Scorer[P]
    cache: ResultCache
    stage: SampleStage[P]

    async def __call__(self, samples: Sequence[Sample[P]], context: Context) -> list[Score]:
        started = time.monotonic()
        try:
            keys = await self._keys(samples, context)
        except ServiceError as error:
            if context.trace is not None:
                context.trace.note("key", {"error": str(error), "cause": error.cause.value})
            return [error.as_score(self.scorer.source) for _ in samples]
        cached = self._read_memory(keys, context)
        uncached = [index for index, score in enumerate(cached) if score is None]
        scored, unscored = await self._score_inline(samples, keys, uncached, context)
        await self._read_redis([*unscored], keys, cached, context)
        missing = [index for index in unscored if cached[index] is None]
        if missing:
            scored.update(zip(missing, await self.stage([unscored[index] for index in missing], context), strict=True))
        if context.trace is not None and context.trace.rescore and cached[0] is not None:
            with context.trace.substep("scored again", {"note": "the result is still the cached score"}) as trace:
                rescore_context = replace(context, trace=trace)
                _, unscored = await self._score_inline(samples, [None], [0], rescore_context)
                await self.stage([*unscored.values()], rescore_context) if unscored else None
        elapsed = elapsed_ms(started)
        return [
            copy_for_caller(scored[index] if score is None else score, elapsed, cached=score is not None)
            for index, score in enumerate(cached)
        ]

    async def find(self, samples: Sequence[Sample[P]], context: Context) -> tuple[list[Key | None], list[Score | None]]:
        """Return the samples' keys and their cached scores, without scoring."""
        keys = await self._keys(samples, context)
        cached = self._read_memory(keys, context)
        await self._read_redis([index for index, score in enumerate(cached) if score is None], keys, cached, context)
        return keys, cached

    async def _keys(self, samples: Sequence[Sample[P]], context: Context) -> list[Key | None]:
        """Return each sample's cache key in the tenant's namespace; None if its score must not be cached."""
        keys: list[Key | None] = [None] * len(samples)
        cacheable: list[int] = []
        if self.cache.is_enabled and (self.cache.has_storage or self.scorer.batch is not None):
            extras = (sample.item.extra for sample in samples)
            cacheable = [i for i, extra in enumerate(extras) if CACHE_ENABLED not in extra or may_be_cached(extra)]
        for part in slices(len(cacheable)):
            indices = cacheable[part]
            part_keys = await self.scorer.keys([samples[index].prepared for index in indices], context)
            for index, key in zip(indices, part_keys, strict=True):
                keys[index] = tenant_key(key, context.tenant) if key is not None and context.tenant else key
            await asyncio.sleep(0)
        if context.trace is not None:
            context.trace.note("key", self._key_facts(samples[0], keys[0]))
        return keys

    def _key_facts(self, sample: Sample[P], key: Key | None) -> Record:
        if key is not None:
            note = "scores are not deterministic, so the key is valid only within one run or process"
            return drop_none({"key": key.text, "note": None if key.deterministic else note})
        if not self.cache.is_enabled:
            return {"key": "none: the cache is off"}
        if may_be_cached(sample.item.extra):
            return {"key": "none: the scorer does not report its identity"}
        return {"key": "none: caching is off for this sample"}

    def _read_memory(self, keys: Sequence[Key | None], context: Context) -> list[Score | None]:
        """Return the scores in this process's memory."""
        if not self.cache.has_storage:
            return [None] * len(keys)
        scores = self.cache.get_from_memory(["" if key is None else key.text for key in keys])
        if context.trace is not None and scores[0] is not None:
            context.trace.note("memory", _describe_cached(scores[0]))
        return scores

    async def _score_inline(
        self, samples: Sequence[Sample[P]], keys: Sequence[Key | None], indices: Sequence[int], context: Context
    ) -> tuple[dict[int, Score], dict[int, Sample[P]]]:
        """Score samples inline and cache the scores; return the scores, and the samples left to score, by position."""
        inline = self.scorer.inline
        scored: dict[int, Score] = {}
        unscored: dict[int, Sample[P]] = {}
        stretch = Stretch()
        for index in indices:
            sample = samples[index]
            outcome = sample.prepared if inline is None else inline(sample.prepared)
            if isinstance(outcome, Score):
                scored[index] = replace_invalid(outcome)
            else:
                sample.key = keys[index]
                unscored[index] = sample if inline is None else Sample(sample.item, outcome, sample.key)
            if stretch.is_over():
                await stretch.rest()
        if context.trace is not None and scored:
            context.trace.note("scored inline", describe_score(scored[0]))
        elif self.cache.has_storage and scored:
            self.cache.put_in_memory(_cacheable((keys[index], score) for index, score in scored.items()))
        return scored, unscored

    async def _read_redis(
        self, indices: Sequence[int], keys: Sequence[Key | None], scores: list[Score | None], context: Context
    ) -> None:
        """Put the scores that Redis has for the samples at `indices` into `scores`."""
        lookups = {index: key for index in indices if (key := keys[index]) is not None}
        if not lookups or not self.cache.has_storage:
            return
        ranges = {key.text: key.range for key in lookups.values()}
        if cached := await self.cache.read_redis([*ranges], partial(self._is_plausible, ranges)):
            for index, key in lookups.items():
                scores[index] = cached.get(key.text)
        if context.trace is not None:
            place = "Redis" if self.cache.link.is_configured else "no Redis: REWARD_CACHE_URL is not set"
            context.trace.note("the cache", {"place": place, **_describe_cached(scores[0])})

    def _is_plausible(self, ranges: Mapping[str, tuple[float, float]], key: str, score: Score) -> bool:
        """Return whether a cached score is plausible for this scorer; Redis is untrusted."""
        low, high = ranges[key]
        return score.source == self.scorer.source and score.value is not None and low <= score.value <= high


class Batch(Generic[P]):
    """Batches the samples of all callers, and sends equal samples once."""

    def __init__(self, scorer: Scorer[P], stage: SampleStage[P], tenant: str) -> None:
        self._scorer = scorer
        self._stage = stage
        self._tenant = tenant
        self._batcher: Batcher[Sample[P], Score | ConfigError] = Batcher(self._send, has_failed=_is_failed)

    async def __call__(self, samples: Sequence[Sample[P]], context: Context) -> list[Score]:
        batch = self._scorer.batch
        outcomes: Sequence[Score | Exception]
        if batch is None or context.trace is not None:
            outcomes = await self._send(samples, context.deadline, context)
        else:
            caller = object()
            keys = [batch(sample.prepared).for_caller(caller) for sample in samples]
            share_keys = [*map(_share_key, samples, keys)]
            outcomes = await self._batcher.ask(samples, keys, context.waiter_deadline, share_keys)
        scores = [
            outcome if isinstance(outcome, Score) else self._failed_score(outcome, context) for outcome in outcomes
        ]
        if context.trace is not None:
            context.trace.note("outcome", describe_score(scores[0]))
        return scores

    async def _send(
        self, samples: Sequence[Sample[P]], deadline: SharedDeadline, context: Context | None = None
    ) -> Sequence[Score | ConfigError]:
        """Return the scores of a batch.

        If the scorer raises a ConfigError, return this error for each sample. If it raises another exception, return a
        `failed` score for each sample.

        Args:
            samples: samples of one or several callers.
            deadline: deadline that all callers share.
            context: context of a single caller; None for several callers.
        """
        try:
            return await self._stage(samples, context or Context(deadline, deadline, self._tenant))
        except ConfigError as error:
            return [error] * len(samples)
        except ServiceError as error:
            score = error.as_score(self._scorer.source)
        except Exception as error:
            log.exception("%s: internal error in the scorer", self._scorer.source)
            reason = f"internal error: {type(error).__name__}"
            score = Score.failed(reason, self._scorer.source, Cause.INTERNAL_ERROR)
        return [score] * len(samples)

    def _failed_score(self, error: Exception, context: Context) -> Score:
        """Return a `failed` score if the error is a ServiceError or BudgetError; raise any other error."""
        if not isinstance(error, (BudgetError, ServiceError)):
            raise error
        score = error.as_score(self._scorer.source)
        if isinstance(error, BudgetError):
            if context.budget_errors is not None:
                context.budget_errors.append(error)
            score.usage, error.usage = error.usage, None
        return score


@dataclass(frozen=True, slots=True)
class ScoreAndCache(Generic[P]):
    """Calls the scorer and caches scores with status `ok`."""

    scorer: Scorer[P]
    cache: ResultCache

    async def __call__(self, samples: Sequence[Sample[P]], context: Context) -> list[Score]:
        scores = await self.scorer.score([sample.prepared for sample in samples], context)
        if len(scores) != len(samples):
            raise ReplyError(f"got {len(scores)} scores for {len(samples)} samples")
        scores = [*map(replace_invalid, scores)]
        if self.cache.has_storage and context.trace is None:
            self.cache.put(_cacheable((sample.key, score) for sample, score in zip(samples, scores, strict=True)))
        return scores


def _samples(items: Sequence[Item], prepared: Sequence[P | Score]) -> list[Sample[P]]:
    return [
        Sample(item, outcome) for item, outcome in zip(items, prepared, strict=True) if not isinstance(outcome, Score)
    ]


def _service_time(context: Context) -> float | None:
    """Return the time limit of the service in seconds; None for no limit.

    Under the policy `lexical`, a part of the call's time is reserved for substitutes.
    """
    if context.ends_at == math.inf:
        return None
    left = context.ends_at - time.monotonic()
    return left - min(left * RESERVED_SHARE, RESERVED_SECONDS) if context.lexical else left


def _share_key(sample: Sample[Any], key: BatchKey) -> Hashable:
    """Return a value that is equal for samples that can share one score; None if this sample cannot share a score."""
    if key.slot is not None:
        return key.name, key.slot, sample.item.solution
    return sample.key.text if sample.key is not None and sample.key.deterministic else None


def _is_failed(outcome: Score | Exception) -> bool:
    return isinstance(outcome, Score) and outcome.status == "failed"


def _cacheable(outcomes: Iterable[tuple[Key | None, Score]]) -> list[tuple[str, Score]]:
    """Return the scores that may be cached, with their keys and without usage."""
    return [
        (key.text, score if score.usage is None else score.copy())
        for key, score in outcomes
        if key is not None and score.status == "ok" and not score.volatile
    ]


def replace_invalid(score: Score) -> Score:
    """Return `score`, or a `failed` score if its numbers are invalid.

    An `ok` or `fallback` score is invalid if it has no value, or if one of its numbers is NaN or infinite.
    """
    value = score.value
    if score.status not in ("ok", "fallback"):
        return score
    if value is None or not math.isfinite(value):
        return Score.failed(f"the value is {value}, not a finite number", score.source, Cause.FUNCTION_VALUE)
    others = {"label_mass": score.label_mass, "agreement": score.agreement, **(score.parts or {})}
    for name, number in others.items():
        if number is not None and not math.isfinite(number):
            return Score.failed(f"{name} is {number}, not a finite number", score.source, Cause.FUNCTION_VALUE)
    return score


def copy_for_caller(score: Score, elapsed: float, *, cached: bool = False) -> Score:
    """Return a copy of a shared score, so that the caller may change the copy; only the first copy gets the usage.

    Args:
        score: a score that the cache and other callers may share; its usage is removed.
        elapsed: milliseconds since the start of the call. They become the latency of the copy if the score is cached or
            has no latency.
        cached: whether this process read the score from a cache.
    """
    copied = score.copy(score.usage)
    score.usage = None
    copied.cached = cached or score.cached
    copied.latency_ms = elapsed if cached else score.latency_ms or elapsed
    return copied


def _without_substitute(score: Score) -> Score:
    """Return a `failed` score if a reward server returned a substitute; return any other score unchanged."""
    return replace(score, value=None, status="failed") if score.status == "fallback" else score


async def fall_back(
    source: str, substitutes: Mapping[int, Callable[[], Score]], scores: list[Score], ends_at: float
) -> None:
    """Compute substitutes for failed scores in a thread, and replace the scores in place.

    Args:
        source: name of the scorer.
        substitutes: functions that compute the substitutes, by position in `scores`.
        scores: scores of the samples, in order.
        ends_at: end of the call, on `time.monotonic()`. Samples that have no substitute by then, or after
            `SUBSTITUTES_SECONDS`, stay failed.
    """
    failed = [index for index in substitutes if scores[index].status == "failed"]
    if not failed:
        return
    missing.missing_warnings.warn(source, missing.FALLBACK, len(failed), len(scores), scores[failed[0]])
    ends_at = min(ends_at, time.monotonic() + SUBSTITUTES_SECONDS)
    for start in range(0, len(failed), SUBSTITUTES_PER_CHECK):
        indices = failed[start : start + SUBSTITUTES_PER_CHECK]
        if (seconds := ends_at - time.monotonic()) <= 0:
            return
        compute = partial(_compute_substitutes, [substitutes[index] for index in indices])
        work = asyncio.ensure_future(asyncio.to_thread(compute))
        await asyncio.wait({work}, timeout=seconds)
        if not work.done():  # the thread cannot be stopped; leave it
            return
        for index, substitute in zip(indices, work.result(), strict=True):
            failure = scores[index]
            reason = substitute.reason or f"lexical similarity, because: {failure.reason}"
            scores[index] = replace(
                substitute,
                reason=reason,
                latency_ms=failure.latency_ms,
                usage=failure.usage,
                cause=failure.cause,
            )


def _compute_substitutes(substitutes: Sequence[Callable[[], Score]]) -> list[Score]:
    return [replace_invalid(compute()) for compute in substitutes]


def elapsed_ms(since: float) -> float:
    """Return the milliseconds since a time on `time.monotonic()`."""
    return round((time.monotonic() - since) * 1000, 3)


def describe_score(score: Score) -> Record:
    """Return the facts of a score for a trace."""
    cause = None if score.cause is None else score.cause.value
    details = drop_none(
        {"reason": score.reason or None, "cause": cause, "field": score.field or None, "parts": score.parts}
    )
    details |= drop_none({"label_mass": score.label_mass, "agreement": score.agreement})
    return {"value": score.value, "status": score.status, "source": score.source, **details}


def _describe_cached(score: Score | None) -> Record:
    return {"found": False} if score is None else {"found": True, **describe_score(score)}
