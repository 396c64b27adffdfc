"""One sample scored with every step noted: the same pipeline and runner, which tell what they do.

Nothing is shared with others' calls and nothing new is kept in the cache; the parts of a composite take turns.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from rewardstack.cache.store import ResultCache
from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.core.json_types import plain
from rewardstack.core.keys import Key
from rewardstack.core.steps import Exchange, Explanation, Trace, known
from rewardstack.core.wire import Record
from rewardstack.errors import BudgetError, ConfigError, RequestError, ScoringError, ServiceError
from rewardstack.pipeline.items import FILTERS, TARGET, as_references, read_request
from rewardstack.pipeline.outcomes import milliseconds
from rewardstack.pipeline.pipeline import Call, Pipeline
from rewardstack.pipeline.runner import Runner
from rewardstack.pipeline.scorer import MakeScorer
from rewardstack.routing.routes import Leaf, Route, RouteTable
from rewardstack.routing.syntax import definition
from rewardstack.score import Item, OnError, Request, Score

P = TypeVar("P")
SECRET = ("api_key", "server_url")
"""How names in `extra_info` end whose values are not told: a key, or a URL, which may hold one."""


@dataclass(slots=True)
class _ExplainedCall(Call):
    """A call of one sample, and where its steps are noted."""

    trace: Trace


class ExplainedPipeline(Pipeline):
    """Explains one request.

    Args:
        routes: as of a `Pipeline`.
        scorers: likewise; made for this explanation alone.
        cache: likewise.
        exchanges: with the scorers' services, since it was last called (`rewardstack.transport.recording`).
        anew: whether the scorer is asked as well where a cache has the score.
    """

    def __init__(
        self,
        routes: RouteTable,
        scorers: Mapping[str, MakeScorer],
        cache: ResultCache,
        exchanges: Callable[[], list[Exchange]],
        *,
        anew: bool,
    ) -> None:
        super().__init__(routes, scorers, cache)
        self._make_runner = ExplainedRunner
        self._trace = Trace(exchanges, anew=anew)
        self._turn = asyncio.Lock()

    async def explain(
        self, request: Request, *, on_error: OnError | None = None, limit: float | None = None, tenant: str = ""
    ) -> Explanation:
        """How the request comes to its score; arguments as those of `score`.

        Raises:
            UnknownSourceError: no route takes its source.
        """
        started = time.monotonic()
        source, route = request.data_source, self.routes.find(request.data_source)
        explanation = Explanation(source, None, self._trace.steps)
        try:
            policy = on_error or self._policy(route, source)
            self._trace.note("route", {"takes": route.pattern, **definition(route), "on_error": policy})
            [score] = await self._score_one(
                route, request, on_error, math.inf if limit is None else started + limit, tenant
            )
            [score] = self._settle([request], [score], on_error)
        except ScoringError as error:
            [score] = error.scores
        except ConfigError as error:
            explanation.error = str(error)
            self._trace.note("stopped", {"error": str(error), "field": error.field})
            return explanation
        explanation.score = replace(score, latency_ms=milliseconds(started))
        self._trace.note("score", _facts(score))
        return explanation

    async def _score_one(
        self, route: Route, request: Request, on_error: OnError | None, ends_at: float, tenant: str
    ) -> list[Score]:
        try:
            item, timeout = read_request(request)
        except RequestError as error:
            self._trace.note("request", {"error": str(error)})
            return [Score.unscored(str(error), field=error.field)]
        self._trace.note("request", _request_facts(request, item, timeout))
        lexical = self._is_lexical(route, request.data_source, on_error)
        call = _ExplainedCall(timeout, ends_at, tenant, lexical, (), None, self._trace)
        return await self._evaluate(route, request.data_source, [item], call)

    async def _evaluate(self, route: Route, source: str, items: Sequence[Item], call: Call) -> list[Score]:
        assert isinstance(call, _ExplainedCall)
        if not isinstance(route.target, Leaf):
            scores = await super()._evaluate(route, source, items, call)
            call.trace.note("put together", {**definition(route), **_facts(scores[0])})
            return scores
        async with self._turn:
            runner = self._runner(route, route.target, source)
            assert isinstance(runner, ExplainedRunner)
            runner.trace = call.trace
            return await super()._evaluate(route, source, items, call)

    async def _evaluate_part(self, part: str, items: Sequence[Item], call: Call) -> list[Score]:
        assert isinstance(call, _ExplainedCall)
        with call.trace.within(f"part {part}", definition(self.routes.find(part))) as trace:
            return await super()._evaluate_part(part, items, replace(call, trace=trace))


class ExplainedRunner(Runner[P]):
    """A `Runner` of one sample at a time, whose stages are noted in `trace`."""

    trace: Trace

    async def _prepare(self, items: Sequence[Item]) -> list[P | Score]:
        [prepared] = await super()._prepare(items)
        if isinstance(prepared, Score):
            self.trace.note("prepared", {"scorer": self.scorer.source, **_facts(prepared)})
        else:
            self.trace.note("prepared", {"scorer": self.scorer.source, **self.scorer.describe(items[0], prepared)})
        return [prepared]

    async def _score(
        self,
        samples: Mapping[int, P],
        kept: Mapping[int, P],
        settled: Mapping[int, Score],
        deadline: Deadline,
        tenant: str,
        fatal: list[BudgetError] | None,
    ) -> dict[int, Score]:
        scores = await super()._score(samples, kept, settled, deadline, tenant, fatal)
        if self.trace.anew and scores[0].cached:
            await self._ask_anew(samples, deadline)
        return scores

    async def _ask_anew(self, samples: Mapping[int, P], deadline: Deadline) -> None:
        outer = self.trace
        with outer.within("asked anew", {"note": "the score is the one from the cache"}) as self.trace:
            decided = await self._score_at_once(samples, {})
            await self._ask({at: one for at, one in samples.items() if at not in decided}, {}, deadline, None)
        self.trace = outer

    async def score(
        self,
        items: Sequence[Item],
        deadline: Deadline,
        tenant: str,
        *,
        fatal: list[BudgetError] | None = None,
        substitutes_until: float | None = None,
    ) -> list[Score]:
        """As every runner does, for one item."""
        [score] = await super().score(items, deadline, tenant, fatal=fatal, substitutes_until=substitutes_until)
        if score.status == "fallback" and substitutes_until is not None:
            self.trace.note("substitute", _facts(score))
        return [score]

    async def _keys(self, samples: Mapping[int, P], deadline: Deadline, tenant: str) -> dict[int, Key]:
        try:
            keys = await super()._keys(samples, deadline, tenant)
        except ServiceError as error:
            self.trace.note("key", {"error": str(error)})
            raise
        if not self._cache.on:
            self.trace.note("key", {"key": "none: the cache is off"})
        elif 0 not in samples:
            self.trace.note("key", {"key": "none: this sample is not to be cached"})
        elif 0 not in keys:
            self.trace.note("key", {"key": "none: what scores does not say what it is"})
        else:
            bound = None if keys[0].deterministic else "scores of this key vary, so it is bound to one run or process"
            self.trace.note("key", known({"key": keys[0].text, "note": bound}))
        return keys

    def _recall(self, keys: Mapping[int, Key]) -> dict[int, Score]:
        found = super()._recall(keys)
        if found:
            self.trace.note("this process's memory", _found(found))
        return found

    async def _score_at_once(self, samples: Mapping[int, P], keys: Mapping[int, Key]) -> dict[int, Score]:
        decided = await super()._score_at_once(samples, {})  # so that it is not kept
        if decided:
            self.trace.note("decided at once", _facts(decided[0]))
        return decided

    async def _look_up(self, keys: Mapping[int, Key]) -> dict[int, Score]:
        found = await super()._look_up(keys)
        if keys:
            place = "Redis" if self._cache.link.present else "none beside this process's memory (REWARD_CACHE_URL)"
            self.trace.note("the cache", {"place": place, **_found(found)})
        return found

    async def _ask(
        self,
        samples: Mapping[int, P],
        keys: Mapping[int, Key],
        deadline: Deadline,
        fatal: list[BudgetError] | None,
    ) -> dict[int, Score]:
        if not samples:
            return {}
        outcomes = await self._outcomes(list(samples.values()), SharedDeadline(deadline))
        found = self._accepted(dict(zip(samples, outcomes, strict=True)), fatal)
        self.trace.note("outcome", _facts(found[0]))
        return found

    async def _scored(self, items: Sequence[P], deadline: SharedDeadline) -> list[Score]:
        return [await self.scorer.explain(items[0], deadline, self.trace)]


def _request_facts(request: Request, item: Item, timeout: float | None) -> Record:
    """What was read of a request: what it brings, and what is left of its references by each filter."""
    truth = plain(request.ground_truth)
    references = as_references(truth)
    truth = truth[TARGET] if isinstance(truth, dict) else truth
    given = len(truth) if isinstance(truth, list) else int(truth is not None)
    facts: Record = {"solution": item.solution, "references": list(references)}
    if given > len(references):
        facts["blank references"] = given - len(references)
    for name, narrow in FILTERS.items():
        if name in item.extra:
            references = narrow(references, item.extra)
            facts[f"left by {name}"] = list(references)
    shown = {name: plain(value) for name, value in item.extra.items() if not str(name).endswith(SECRET)}
    return {**facts, **known({"extra_info": shown or None, "timeout": timeout})}


def _found(scores: Mapping[int, Score]) -> Record:
    return {"found": True, **_facts(scores[0])} if scores else {"found": False}


def _facts(score: Score) -> Record:
    details = known({"reason": score.reason or None, "field": score.field or None, "parts": score.parts})
    details |= known({"label_mass": score.label_mass, "agreement": score.agreement})
    return {"value": score.value, "status": score.status, "source": score.source, **details}
