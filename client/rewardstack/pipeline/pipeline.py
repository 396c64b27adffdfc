"""The scoring pipeline, used by trainers, the reward server, its workers and the command line.

    requests ─ group by route ─► ErrorPolicy ► Prepare ► Cache ► Batch ► Keep ► Scorer ─► scores, in request order

Stages (`pipeline.stages`) and scorers (`pipeline.scorer`) have the same signature, `async (samples, context) ->
scores`. Each stage calls the next. The pipelines of a trainer and a server differ only in the scorers.

- `ErrorPolicy` warns about samples without a score, and replaces failures under the policy `lexical`.
- `Prepare` lets the scorer prepare each item; an invalid item gets its score (`unscored`) here.
- `Cache` looks in this process's memory, then tries inline scoring (for scorers that need microseconds), then Redis.
- `Batch` sends equal samples once, and forms batches (`core.batching`).
- `Keep` calls the scorer, and writes each batch's scores to the cache, even if its callers have timed out.
- `Compose` replaces this chain for a composite route; each part has its own stages.
- `Singles` wraps the chain of a judge that compares groups, and sends groups of one member to its `single_route`.
- `Shape` wraps the chain or `Compose` if a route has `scale`, `shift` or `clip`.

`Context` carries the deadline, the tenant (cache namespace), budget errors and the trace. To explain a sample is to
score it with a trace: each stage records a step, nothing is shared with other calls, and nothing is cached.

The pipeline groups requests by source and timeout. At the end it applies the error policy of the route to samples
without a score. It does not depend on a kind of service or on HTTP: see `scorers` and `transport`.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rewardstack.cache.store import ResultCache
from rewardstack.core.batching import SLICE
from rewardstack.core.cost import Quote
from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.core.steps import Explanation, Trace
from rewardstack.errors import BudgetError, ConfigError, RequestError, ScoringError
from rewardstack.pipeline.items import is_single, raise_if_all_wrong, read_request, request_facts
from rewardstack.pipeline.missing import warn_of_missing
from rewardstack.pipeline.scorer import Context, MakeScorer
from rewardstack.pipeline.stages import Chain, Compose, Shape, Singles, Stage, milliseconds, score_facts
from rewardstack.routing.composite import routes_of
from rewardstack.routing.routes import Leaf, Route, RouteTable
from rewardstack.routing.syntax import definition
from rewardstack.score import Item, OnError, Request, Score, Usage

Groups = dict[tuple[str, float | None], tuple[Route, dict[int, Item]]]
"""Maps source and timeout to the route and its items by position."""


class Pipeline:
    """Scores requests.

    Args:
        routes: the route table.
        scorers: for each kind of leaf, a function that creates its scorers.
        cache: result cache.
        tenant: cache namespace of the caller.
        may_extend: whether a sample's `timeout` may exceed the scorer's timeout.
    """

    def __init__(
        self,
        routes: RouteTable,
        scorers: Mapping[str, MakeScorer],
        cache: ResultCache,
        tenant: str = "",
        *,
        may_extend: bool = True,
    ) -> None:
        self.routes = routes
        self._make = scorers
        self._cache = cache
        self._tenant = tenant
        self._may_extend = may_extend
        self._chains: dict[tuple[str, str], Chain[Any]] = {}

    async def score(
        self,
        requests: Sequence[Request],
        *,
        on_error: OnError | None = None,
        limit: float | None = None,
        strict: bool = True,
        trace: Trace | None = None,
    ) -> list[Score]:
        """Return one score for each request, in order.

        Args:
            requests: the samples.
            on_error: policy for samples without a score; None for the policy of each sample's route.
            limit: time limit of the call in seconds; None for no limit.
            strict: whether to raise if there are several requests and an option is invalid in all of them.
            trace: records the steps, for a call with a single request; None for no trace.

        Raises:
            ConfigError: a source is unknown, a setting is malformed, or an option is invalid in all requests.
            ScoringError: a sample has no score and the policy is `raise`.
            BudgetError: the run's budget is spent, and neither the call nor the route sets `on_error`. Requests in
                flight are still scored and cached.
        """
        ends_at = math.inf if limit is None else time.monotonic() + limit
        context = Context(tenant=self._tenant, ends_at=ends_at, may_extend=self._may_extend, trace=trace)
        scores, groups = await self._group(requests, trace)
        if scores:
            warn_of_missing("the call", [*scores.values()], len(requests))
        elif strict and len(groups) == 1:  # with several groups no part of a composite sees all samples of the call
            context.batch = [item for _, items in groups.values() for item in items.values()]
        refused: list[BudgetError] = []
        scores.update(await self._score_groups(groups, on_error, refused, context))
        ordered = [scores[at] for at in range(len(requests))]
        if strict and len(ordered) > 1:
            raise_if_all_wrong(ordered)
        return self._settle(requests, ordered, on_error, refused)

    async def _score_groups(
        self, groups: Groups, on_error: OnError | None, refused: list[BudgetError], context: Context
    ) -> dict[int, Score]:
        """Return the scores of all groups by position; raise ConfigError if a source or a setting is invalid."""
        # Create all stages before the first coroutine, so that an error leaves no coroutine unawaited.
        stages = [
            self._stage_and_context(route, *which, on_error, refused, context) for which, (route, _) in groups.items()
        ]
        items = [items for _, items in groups.values()]
        work = zip(stages, items, strict=True)
        found = await asyncio.gather(*(stage([*some.values()], own) for (stage, own), some in work))
        pairs = zip(items, found, strict=True)
        return {at: score for some, scores in pairs for at, score in zip(some, scores, strict=True)}

    async def explain(
        self, request: Request, trace: Trace, *, on_error: OnError | None = None, limit: float | None = None
    ) -> Explanation:
        """Score a request and return the steps; arguments are those of `score`.

        Raises:
            UnknownSourceError: no route matches the request's `data_source`.
        """
        started = time.monotonic()
        source, route = request.data_source, self.routes.find(request.data_source)
        explanation = Explanation(source, None, trace.steps)
        try:
            policy = on_error or self._policy(route, source)
            trace.note("route", {"takes": route.pattern, **definition(route), "on_error": policy})
            [score] = await self.score([request], on_error=policy, limit=limit, trace=trace)
        except ScoringError as error:
            [score] = error.scores
        except ConfigError as error:
            explanation.error = str(error)
            trace.note("stopped", {"error": str(error), "field": error.field})
            return explanation
        explanation.score = replace(score, latency_ms=milliseconds(started))
        trace.note("score", score_facts(score))
        return explanation

    async def quote(self, requests: Sequence[Request], limit: float) -> dict[str, Quote]:
        """Return the maximum cost of the requests by source, without scoring them.

        For a composite, all parts are assumed to score every sample.

        Args:
            requests: the samples.
            limit: seconds that each service has to report its identity.

        Raises:
            ConfigError: a source is unknown or a setting is malformed.
            ServiceError: a service does not report its identity.
        """
        scores, groups = await self._group(requests, None)
        quotes: dict[str, list[Quote]] = {request.data_source: [] for request in requests}
        for at in scores:
            quotes[requests[at].data_source].append(Quote(settled=1, unscored=1))
        for (source, _), (_, items) in groups.items():
            quotes[source].append(await self._quote(source, [*items.values()], limit))
        return {source: Quote.total(found) for source, found in quotes.items()}

    async def _quote(self, source: str, items: Sequence[Item], limit: float) -> Quote:
        route = self.routes.find(source)
        if isinstance(route.target, Leaf):
            single = route.target.single_route
            alone = [item for item in items if is_single(item)] if single else []
            rest = [item for item in items if not is_single(item)] if alone else items
            other = await self._quote(single, alone, limit) if alone else Quote()
            own = await self._chain(route, route.target, source).quote(rest, self._asking(limit))
            return Quote.total([own, other])
        found = [await self._quote(part, items, limit) for part in routes_of(route.target)]
        return Quote(usage=Usage.total(one.usage for one in found))

    async def fingerprint(self, source: str, limit: float) -> str | None:
        """Return a cache key of what scores of `source` depend on besides the sample; None if there is no such key.

        Args:
            source: a `data_source` whose route has a single scorer.
            limit: seconds that the scorer's service has to report its identity.

        Raises:
            RewardstackError: the service does not report its identity.
        """
        route = self.routes.find(source)
        if not isinstance(route.target, Leaf):
            return None
        return await self._chain(route, route.target, source).fingerprint(self._asking(limit))

    def _asking(self, limit: float) -> Context:
        """Return a context with a time limit in seconds, for work that scores nothing."""
        return Context(SharedDeadline(Deadline(limit, limit)), tenant=self._tenant)

    async def _group(self, requests: Sequence[Request], trace: Trace | None) -> tuple[dict[int, Score], Groups]:
        """Return the scores of malformed requests by position, and the groups of the other requests."""
        scores: dict[int, Score] = {}
        groups: Groups = {}
        for at, request in enumerate(requests):
            route = self.routes.find(request.data_source)
            whole = self.routes.takes_whole(request.data_source)
            try:
                item, timeout = read_request(request, whole=whole)
            except RequestError as error:
                scores[at] = Score.unscored(str(error), field=error.field)
                facts: Mapping[str, Any] = {"error": str(error)}
            else:
                groups.setdefault((request.data_source, timeout), (route, {}))[1][at] = item
                facts = {} if trace is None else request_facts(request, item, timeout, whole=whole)
            if trace is not None:
                trace.note("request", facts)
            if at % SLICE == SLICE - 1:
                await asyncio.sleep(0)
        return scores, groups

    def _stage_and_context(
        self,
        route: Route,
        source: str,
        timeout: float | None,
        on_error: OnError | None,
        refused: list[BudgetError],
        common: Context,
    ) -> tuple[Stage, Context]:
        """Return the stage and context of a group; raise ConfigError if its source or a setting is invalid."""
        if on_error == "zero" and self._goes_below_zero(source):
            why = f"route {route.name!r} can go below 0, so zero would be a good score; choose raise or none"
            raise ConfigError(f"on_error: {why}", "on_error")
        lexical = (on_error or self._policy(route, source)) == "lexical"
        own = None if on_error or route.on_error else refused
        return self._stage(route, source), replace(common, timeout=timeout, lexical=lexical, refused=own)

    def _stage(self, route: Route, source: str) -> Stage:
        stage: Stage
        if isinstance(route.target, Leaf):
            chain = self._chain(route, route.target, source)
            stage = chain.stage
            if chain.scorer.is_shaped:
                return stage
            if single := route.target.single_route:
                stage = Singles(stage, self._stage(self.routes.find(single), single))
        else:
            parts = {part: self.routes.find(part) for part in routes_of(route.target)}
            stage = Compose(route, route.target, {part: (one, self._stage(one, part)) for part, one in parts.items()})
        return stage if route.shaping is None else Shape(route.shaping, stage)

    def _chain(self, route: Route, leaf: Leaf, source: str) -> Chain[Any]:
        target = route.leaf_target(source)
        known = self._chains.get((leaf.kind, target))
        if known is None:
            scorer = self._make[leaf.kind](target)
            known = self._chains[leaf.kind, target] = Chain(scorer, self._cache, self._tenant)
        return known

    def _settle(
        self,
        requests: Sequence[Request],
        scores: list[Score],
        on_error: OnError | None,
        refused: Sequence[BudgetError],
    ) -> list[Score]:
        """Apply the error policies to samples without a value; an error that ends the call carries all scores."""
        lost: list[int] = []
        for at, score in enumerate(scores):
            if score.value is not None:
                continue
            source = requests[at].data_source
            policy = on_error or self._policy(self.routes.find(source), source)
            if policy == "raise" or (policy == "lexical" and self._goes_below_zero(source)):
                lost.append(at)
            else:
                scores[at] = replace(score, value=None if policy == "none" else 0.0)
        if lost:
            raise ScoringError.about(lost[0], scores)
        if refused:
            raise BudgetError(str(refused[0]), refused[0].field, scores)
        return scores

    def _policy(self, route: Route, source: str) -> OnError:
        if route.on_error is not None:
            return route.on_error
        if self._goes_below_zero(source):
            return "raise"
        return self._chain(route, route.target, source).scorer.on_error if isinstance(route.target, Leaf) else "zero"

    def _goes_below_zero(self, source: str) -> bool:
        """Return whether scores of `source` can be below 0, so that 0 is not the lowest score."""
        return self.routes.bounds(source)[0] < 0
