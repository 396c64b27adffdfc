"""The stages between a route and its scorer: errors, preparation, cache, batches. `pipeline` shows their order.

Each stage is called as `await stage(samples, context)` and returns the scores in order. `Cache`, `Batch` and `Keep`
accept a `Sample` for each item that needs scoring; the stages before them accept items.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from rewardstack.cache.key import CACHE_ENABLED, Key, may_be_cached, tenant_key
from rewardstack.cache.store import ResultCache
from rewardstack.core.batching import SLICE, Batcher, BatchKey
from rewardstack.core.cost import Quote
from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.core.steps import known
from rewardstack.core.wire import Record
from rewardstack.errors import BudgetError, ConfigError, ReplyError, RequestError, ServiceError
from rewardstack.pipeline import missing
from rewardstack.pipeline.items import has_same_option, is_single, raise_if_all_wrong
from rewardstack.pipeline.scorer import Context, Scorer
from rewardstack.routing.composite import Composite
from rewardstack.routing.routes import Route
from rewardstack.routing.shaping import Shaping
from rewardstack.routing.syntax import definition
from rewardstack.score import Item, Score, Usage

INLINE_SECONDS = 0.01
"""Yield to the event loop after this many seconds of inline scoring."""
SUBSTITUTES_SECONDS = 30.0
"""Maximum time in seconds for the substitutes of one batch."""
RESERVED_SHARE = 0.2
"""Share of a call's time limit that is reserved for substitutes."""
RESERVED_SECONDS = 5.0
"""Maximum time in seconds that is reserved for substitutes."""
SUBSTITUTES = 8
"""Number of substitutes that a thread computes before the time limit is checked."""
FIXED = Item("1", ("1",), {"temperature": 0})
"""An item whose cache key changes with the scorer; at temperature 0 a judge's key does not depend on the run."""

P = TypeVar("P")
Stage = Callable[[Sequence[Item], Context], Awaitable[list[Score]]]

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Sample(Generic[P]):
    """An item, the item as prepared by the scorer, and the cache key of its score (None if it is not cached)."""

    item: Item
    prepared: P
    key: Key | None = None


SampleStage = Callable[[Sequence[Sample[P]], Context], Awaitable[list[Score]]]


class Chain(Generic[P]):
    """One scorer behind its stages.

    Attributes:
        scorer: the scorer.
        stage: the first of its stages.
    """

    def __init__(self, scorer: Scorer[P], cache: ResultCache, tenant: str) -> None:
        self.scorer = scorer
        self._cached = Cache(scorer, cache, Batch(scorer, Keep(scorer, cache), tenant))
        self._prepared = Prepare(scorer, self._cached)
        self.stage: Stage = ErrorPolicy(scorer, self._prepared)

    async def quote(self, items: Sequence[Item], context: Context) -> Quote:
        """Return the maximum cost of the items, counting equal items once; raise as the scorer's `keys` does."""
        prepared = await self._prepared.prepare(items)
        samples = _samples(items, prepared)
        unscored = sum(isinstance(one, Score) and one.status == "unscored" for one in prepared)
        settled = Quote(0, len(items) - len(samples), unscored)
        if self.scorer.quote is None or not samples:
            return settled
        keys, found = await self._cached.find(samples, context)
        asked: dict[object, P] = {}
        for at, (key, score) in enumerate(zip(keys, found, strict=True)):
            if score is None:
                asked.setdefault(key.text if key is not None and key.deterministic else at, samples[at].prepared)
        usage = await self.scorer.quote([*asked.values()], context) if asked else Usage()
        groups = self.scorer.count_groups([*asked.values()]) if self.scorer.count_groups else 0
        return settled._replace(cached=len(samples) - found.count(None), usage=usage, groups=groups)

    async def fingerprint(self, context: Context) -> str | None:
        """Return the cache key of `FIXED`, None if it has no deterministic key; raise as the scorer does."""
        if self.scorer.count_groups is not None:  # scores of a group's members depend on the other members
            return None
        prepared = self.scorer.prepare(FIXED)
        if isinstance(prepared, Score):
            return None
        [key] = await self.scorer.keys([prepared], context)
        return key.text if key is not None and key.deterministic else None


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
        spent: dict[int, Usage] = {}

        async def evaluate(part: str, some: Sequence[Item]) -> list[Score]:
            scores = await self._part(part, some, context)
            for item, score in zip(some, scores, strict=True):
                if score.usage is not None:
                    spent[id(item)] = Usage.total((spent.get(id(item)), score.usage))
            return scores

        scores = await self.composite.score(items, evaluate)
        elapsed = milliseconds(started)
        for item, score in zip(items, scores, strict=True):
            score.latency_ms, score.usage = elapsed, spent.get(id(item))
        if context.trace is not None:
            context.trace.note("put together", {**definition(self.route), **score_facts(scores[0])})
        return scores

    async def _part(self, part: str, items: Sequence[Item], context: Context) -> list[Score]:
        route, stage = self.parts[part]
        if context.trace is not None:
            with context.trace.within(f"part {part}", definition(route)) as trace:
                return await stage(items, replace(context, trace=trace))
        scores = await stage(items, context)
        if context.batch and has_same_option(context.batch, scores[0].field):
            raise_if_all_wrong(scores)
        return scores


@dataclass(frozen=True, slots=True)
class Singles:
    """Sends samples whose group has one member, by their own declaration, to another route's stage.

    Args:
        group: the stage of a judge that compares the members of a group.
        single: the stage of its `single_route`.
    """

    group: Stage
    single: Stage

    async def __call__(self, items: Sequence[Item], context: Context) -> list[Score]:
        kinds = [*map(is_single, items)]
        some = {kind: [item for item, one in zip(items, kinds, strict=True) if one is kind] for kind in {*kinds}}
        stages = [self.single if kind else self.group for kind in some]
        found = await asyncio.gather(*(stage(of, context) for stage, of in zip(stages, some.values(), strict=True)))
        scores = {kind: iter(ones) for kind, ones in zip(some, found, strict=True)}
        return [next(scores[kind]) for kind in kinds]


@dataclass(frozen=True, slots=True)
class Shape:
    """Shapes the values of a route; samples without a value are unchanged, and the cache keeps unshaped values."""

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
    """Warns about samples without a score; replaces failed samples by substitutes under the policy `lexical`."""

    scorer: Scorer[Any]
    stage: Stage

    async def __call__(self, items: Sequence[Item], context: Context) -> list[Score]:
        scores = await self.stage(items, context)
        if not context.lexical:
            scores = [_without_substitute(score) for score in scores]
        elif self.scorer.fallback is not None and not context.refused:
            find = {at: partial(self.scorer.fallback, item) for at, item in enumerate(items)}
            await fall_back(self.scorer.source, find, scores, context.ends_at)
            if context.trace is not None and scores[0].status == "fallback":
                context.trace.note("substitute", score_facts(scores[0]))
        missing.warn_of_missing(self.scorer.source, scores, len(scores))
        return scores


@dataclass(frozen=True, slots=True)
class Prepare(Generic[P]):
    """Lets the scorer prepare items; an item that is invalid, or needs no service, gets its score here."""

    scorer: Scorer[P]
    stage: SampleStage[P]

    async def __call__(self, items: Sequence[Item], context: Context) -> list[Score]:
        started = time.monotonic()
        caller = Deadline(context.timeout_of(self.scorer), _service_time(context))
        refused, trace = context.refused, context.trace
        context = Context(SharedDeadline(caller), caller, context.tenant, refused=refused, trace=trace)
        prepared = await self.prepare(items)
        if context.trace is not None:
            [one] = prepared
            facts = score_facts(one) if isinstance(one, Score) else self.scorer.describe(items[0], one)
            context.trace.note("prepared", {"scorer": self.scorer.source, **facts})
        samples = _samples(items, prepared)
        found = iter(await self.stage(samples, context) if samples else ())
        elapsed = milliseconds(started)
        scores = [own(one, elapsed) if isinstance(one, Score) else next(found) for one in prepared]
        if self.scorer.report is not None:
            self.scorer.report(scores, time.monotonic() - started)
        return scores

    async def prepare(self, items: Sequence[Item]) -> list[P | Score]:
        """Return each item as prepared by the scorer, or the item's score."""
        prepared: list[P | Score] = []
        for start in range(0, len(items), SLICE):
            part = items[start : start + SLICE]
            try:
                prepared += map(self.scorer.prepare, part)
            except RequestError:
                del prepared[start:]
                prepared += map(self._prepare, part)
            if len(prepared) < len(items):
                await asyncio.sleep(0)
        return prepared

    def _prepare(self, item: Item) -> P | Score:
        try:
            return self.scorer.prepare(item)
        except RequestError as error:
            return Score.unscored(str(error), self.scorer.source, error.field)


@dataclass(frozen=True, slots=True)
class Cache(Generic[P]):
    """Looks up scores in this process's memory, then scores inline, then looks in Redis."""

    scorer: Scorer[P]
    cache: ResultCache
    stage: SampleStage[P]

    async def __call__(self, samples: Sequence[Sample[P]], context: Context) -> list[Score]:
        started = time.monotonic()
        try:
            keys = await self._keys(samples, context)
        except ServiceError as error:
            if context.trace is not None:
                context.trace.note("key", {"error": str(error)})
            return [Score.failed(str(error), self.scorer.source) for _ in samples]
        read = self._memory(keys, context)
        made, rest = await self._inline(samples, keys, [at for at, one in enumerate(read) if one is None], context)
        await self._read_redis([*rest], keys, read, context)
        missing = [at for at in rest if read[at] is None]
        if missing:
            made.update(zip(missing, await self.stage([rest[at] for at in missing], context), strict=True))
        if context.trace is not None and context.trace.rescore and read[0] is not None:
            with context.trace.within("asked again", {"note": "the score is the one from the cache"}) as trace:
                again = replace(context, trace=trace)
                _, rest = await self._inline(samples, [None], [0], again)
                await self.stage([*rest.values()], again) if rest else None
        elapsed = milliseconds(started)
        return [own(made[at] if one is None else one, elapsed, cached=one is not None) for at, one in enumerate(read)]

    async def find(self, samples: Sequence[Sample[P]], context: Context) -> tuple[list[Key | None], list[Score | None]]:
        """Return the samples' keys and their cached scores, without scoring."""
        keys = await self._keys(samples, context)
        found = self._memory(keys, context)
        await self._read_redis([at for at, score in enumerate(found) if score is None], keys, found, context)
        return keys, found

    async def _keys(self, samples: Sequence[Sample[P]], context: Context) -> list[Key | None]:
        """Return the cache keys of the samples."""
        keys: list[Key | None] = [None] * len(samples)
        wanted: list[int] = []
        if self.cache.on and (self.cache.keeps or self.scorer.batch is not None):
            extras = (one.item.extra for one in samples)
            wanted = [at for at, one in enumerate(extras) if CACHE_ENABLED not in one or may_be_cached(one)]
        for start in range(0, len(wanted), SLICE):
            places = wanted[start : start + SLICE]
            found = await self.scorer.keys([samples[at].prepared for at in places], context)
            for at, key in zip(places, found, strict=True):
                keys[at] = tenant_key(key, context.tenant) if key is not None and context.tenant else key
            await asyncio.sleep(0)
        if context.trace is not None:
            context.trace.note("key", self._key_facts(samples[0], keys[0]))
        return keys

    def _key_facts(self, sample: Sample[P], key: Key | None) -> Record:
        if key is not None:
            bound = None if key.deterministic else "scores of this key vary, so it is valid in one run or process only"
            return known({"key": key.text, "note": bound})
        if not self.cache.on:
            return {"key": "none: the cache is off"}
        if may_be_cached(sample.item.extra):
            return {"key": "none: the scorer does not report its identity"}
        return {"key": "none: caching is off for this sample"}

    def _memory(self, keys: Sequence[Key | None], context: Context) -> list[Score | None]:
        """Return the scores in this process's memory."""
        if not self.cache.keeps:
            return [None] * len(keys)
        found = self.cache.recall(["" if key is None else key.text for key in keys])
        if context.trace is not None and found[0] is not None:
            context.trace.note("memory", _found(found[0]))
        return found

    async def _inline(
        self, samples: Sequence[Sample[P]], keys: Sequence[Key | None], places: Sequence[int], context: Context
    ) -> tuple[dict[int, Score], dict[int, Sample[P]]]:
        """Score samples inline and remember the scores; return scores and remaining samples by position."""
        inline = self.scorer.inline
        made: dict[int, Score] = {}
        rest: dict[int, Sample[P]] = {}
        rested = time.monotonic()
        for at in places:
            sample = samples[at]
            outcome = sample.prepared if inline is None else inline(sample.prepared)
            if isinstance(outcome, Score):
                made[at] = checked(outcome)
            else:
                rest[at] = Sample(sample.item, outcome, keys[at])
            if time.monotonic() - rested > INLINE_SECONDS:
                await asyncio.sleep(0)
                rested = time.monotonic()
        if context.trace is not None and made:
            context.trace.note("scored inline", score_facts(made[0]))
        elif self.cache.keeps and made:
            self.cache.remember(_cacheable((keys[at], score) for at, score in made.items()))
        return made, rest

    async def _read_redis(
        self, places: Sequence[int], keys: Sequence[Key | None], found: list[Score | None], context: Context
    ) -> None:
        """Add the scores from Redis for these positions to `found`."""
        wanted = {at: key for at in places if (key := keys[at]) is not None}
        if not wanted or not self.cache.keeps:
            return
        ranges = {key.text: key.range for key in wanted.values()}
        if read := await self.cache.read_redis([*ranges], partial(self._is_plausible, ranges)):
            for at, key in wanted.items():
                found[at] = read.get(key.text)
        if context.trace is not None:
            place = "Redis" if self.cache.link.present else "none beside this process's memory (REWARD_CACHE_URL)"
            context.trace.note("the cache", {"place": place, **_found(found[0])})

    def _is_plausible(self, ranges: Mapping[str, tuple[float, float]], key: str, score: Score) -> bool:
        """Return whether a cached score is plausible for this scorer; Redis is untrusted."""
        low, high = ranges[key]
        return score.source == self.scorer.source and score.value is not None and low <= score.value <= high


class Batch(Generic[P]):
    """Forms batches from the samples of all callers, and sends equal samples once."""

    def __init__(self, scorer: Scorer[P], stage: SampleStage[P], tenant: str) -> None:
        self._scorer = scorer
        self._stage = stage
        self._tenant = tenant
        self._batcher: Batcher[Sample[P], Score | ConfigError] = Batcher(self._send, has_failed=_has_failed)

    async def __call__(self, samples: Sequence[Sample[P]], context: Context) -> list[Score]:
        batch = self._scorer.batch
        outcomes: Sequence[Score | Exception]
        if batch is None or context.trace is not None:
            outcomes = await self._send(samples, context.deadline, context)
        else:
            caller = object()
            keys = [batch(one.prepared).of(caller) for one in samples]
            shares = [*map(_share, samples, keys)]
            outcomes = await self._batcher.ask(samples, keys, context.waits, shares)
        scores = [one if isinstance(one, Score) else self._without_score(one, context) for one in outcomes]
        if context.trace is not None:
            context.trace.note("outcome", score_facts(scores[0]))
        return scores

    async def _send(
        self, samples: Sequence[Sample[P]], deadline: SharedDeadline, context: Context | None = None
    ) -> Sequence[Score | ConfigError]:
        """Return the outcomes of a batch; if the scorer raises, each sample gets the error or a `failed` score.

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
            reason = str(error)
        except Exception as error:
            log.exception("%s: internal error in the scorer", self._scorer.source)
            reason = f"internal error: {type(error).__name__}"
        return [Score.failed(reason, self._scorer.source)] * len(samples)

    def _without_score(self, error: Exception, context: Context) -> Score:
        """Return a `failed` score for an error of the service or the budget; raise any other error."""
        usage = None
        if isinstance(error, BudgetError):
            if context.refused is not None:
                context.refused.append(error)
            usage, error.usage = error.usage, None
        elif not isinstance(error, ServiceError):
            raise error
        return Score(None, "failed", str(error), self._scorer.source, usage=usage)


@dataclass(frozen=True, slots=True)
class Keep(Generic[P]):
    """Calls the scorer and caches scores with status `ok`."""

    scorer: Scorer[P]
    cache: ResultCache

    async def __call__(self, samples: Sequence[Sample[P]], context: Context) -> list[Score]:
        scores = await self.scorer.score([one.prepared for one in samples], context)
        if len(scores) != len(samples):
            raise ReplyError(f"got {len(scores)} scores for {len(samples)} samples")
        scores = [*map(checked, scores)]
        if self.cache.keeps and context.trace is None:
            self.cache.put(_cacheable((one.key, score) for one, score in zip(samples, scores, strict=True)))
        return scores


def _samples(items: Sequence[Item], prepared: Sequence[P | Score]) -> list[Sample[P]]:
    return [Sample(item, one) for item, one in zip(items, prepared, strict=True) if not isinstance(one, Score)]


def _service_time(context: Context) -> float | None:
    """Return the time limit for a service in seconds, None for no limit; if `lexical`, reserve time for substitutes."""
    if context.ends_at == math.inf:
        return None
    left = context.ends_at - time.monotonic()
    return left - min(left * RESERVED_SHARE, RESERVED_SECONDS) if context.lexical else left


def _share(sample: Sample[Any], key: BatchKey) -> Hashable:
    """Return a value that is equal for samples that can share one score; None if the sample needs its own."""
    if key.slot is not None:
        return key.name, key.slot, sample.item.solution
    return sample.key.text if sample.key is not None and sample.key.deterministic else None


def _has_failed(outcome: Score | Exception) -> bool:
    return isinstance(outcome, Score) and outcome.status == "failed"


def _cacheable(outcomes: Iterable[tuple[Key | None, Score]]) -> list[tuple[str, Score]]:
    """Return the cacheable scores with their keys, without usage: reading a cached score uses nothing."""
    return [
        (key.text, one if one.usage is None else replace(one, usage=None))
        for key, one in outcomes
        if key is not None and one.status == "ok" and not one.volatile
    ]


def checked(score: Score) -> Score:
    """Return `score`, or a failure if its value is missing, or one of its numbers is NaN or infinite."""
    value = score.value
    if score.status not in ("ok", "fallback"):
        return score
    if value is None or not math.isfinite(value):
        return Score.failed(f"{value} is no reward", score.source)
    others = {"label_mass": score.label_mass or 0.0, "agreement": score.agreement or 0.0, **(score.parts or {})}
    for name, number in others.items():
        if not math.isfinite(number):
            return Score.failed(f"{name} is {number}, not a finite number", score.source)
    return score


def own(score: Score, elapsed: float, *, cached: bool = False) -> Score:
    """Return a copy that the caller may change; only the first copy of a shared score gets its usage.

    Args:
        score: a score that may be shared with the cache and other callers; its usage is removed.
        elapsed: milliseconds since the call, used if the score is cached or has no latency.
        cached: whether this process read the score from a cache.
    """
    usage, score.usage = score.usage, None
    return Score(
        score.value,
        score.status,
        score.reason,
        score.source,
        cached or score.cached,
        elapsed if cached else score.latency_ms or elapsed,
        score.label_mass,
        None if score.parts is None else dict(score.parts),
        score.agreement,
        score.field,
        usage,
        score.volatile,
    )


def _without_substitute(score: Score) -> Score:
    """Return a failure in place of a reward server's substitute; return any other score unchanged."""
    return replace(score, value=None, status="failed") if score.status == "fallback" else score


async def fall_back(
    source: str, substitutes: Mapping[int, Callable[[], Score]], scores: list[Score], ends_at: float
) -> None:
    """Replace failed scores by substitutes, which are computed in a thread.

    Args:
        source: name of the scorer.
        substitutes: functions that compute the substitutes, by position in `scores`.
        scores: scores of the samples, in order; changed in place.
        ends_at: end of the call, on `time.monotonic()`; samples without a substitute by then stay failed.
    """
    lost = [at for at in substitutes if scores[at].status == "failed"]
    if not lost:
        return
    missing.missing_warnings.warn(source, missing.FALLBACK, len(lost), len(scores), scores[lost[0]].reason)
    ends_at = min(ends_at, time.monotonic() + SUBSTITUTES_SECONDS)
    for start in range(0, len(lost), SUBSTITUTES):
        part = lost[start : start + SUBSTITUTES]
        if (left := ends_at - time.monotonic()) <= 0:
            return
        make = partial(_made, [substitutes[at] for at in part])
        work = asyncio.ensure_future(asyncio.to_thread(make))
        await asyncio.wait({work}, timeout=left)
        if not work.done():  # the thread cannot be stopped; leave it
            return
        for at, one in zip(part, work.result(), strict=True):
            before = scores[at]
            reason = one.reason or f"lexical similarity, because: {before.reason}"
            scores[at] = replace(one, reason=reason, latency_ms=before.latency_ms, usage=before.usage)


def _made(substitutes: Sequence[Callable[[], Score]]) -> list[Score]:
    return [checked(make()) for make in substitutes]


def milliseconds(since: float) -> float:
    """Return the milliseconds since `since`, a time on `time.monotonic()`."""
    return round((time.monotonic() - since) * 1000, 3)


def score_facts(score: Score) -> Record:
    """Return the facts of a score for a trace."""
    details = known({"reason": score.reason or None, "field": score.field or None, "parts": score.parts})
    details |= known({"label_mass": score.label_mass, "agreement": score.agreement})
    return {"value": score.value, "status": score.status, "source": score.source, **details}


def _found(score: Score | None) -> Record:
    return {"found": False} if score is None else {"found": True, **score_facts(score)}
