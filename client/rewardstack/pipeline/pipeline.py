"""The scoring pipeline, used by trainers, the reward server, its workers and the command line.

    requests ─ group by route ─► ErrorPolicy ► Prepare ► Cache ► Batch ► ScoreAndCache ► Scorer ─► scores, in order

The pipeline groups requests by source (`data_source`) and timeout, and calls the stages of each group's route. At the
end, it applies the error policy of the call or the route to samples without a score. The pipeline does not depend on a
kind of service or on HTTP: see `scorers` and `transport`. The pipelines of a trainer and a server differ only in the
scorers.

Stages (`pipeline.stages`) and scorers (`pipeline.scorer`) have the same signature, `async (samples, context) ->
scores`. Each stage calls the next:

- `ErrorPolicy` warns about samples without a score. Under the policy `lexical`, failed samples get substitute scores.
- `Prepare` lets the scorer prepare each item. An invalid item gets the status `unscored` here.
- `Cache` looks up scores in this process's memory, then scores inline if that takes only microseconds, then looks in
  Redis.
- `Batch` sends equal samples once, and forms batches (`core.batching`).
- `ScoreAndCache` calls the scorer, and caches the scores of each batch, even if its callers have timed out.

Some routes have other stages:

- `Compose` replaces the whole chain for a composite route; each part has its own stages.
- `Singles` wraps the chain of a judge that compares groups, and sends groups of one to the judge's `single_route`.
- `Shape` wraps the chain or `Compose` if a route has `scale`, `shift` or `clip`.

`Context` carries the deadline, the tenant (cache namespace), budget errors and the trace. If there is a trace, each
stage records a step, no request is shared with other calls, and no score is written to the cache.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rewardstack.cache.store import ResultCache
from rewardstack.core.cost import Quote
from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.core.steps import Explanation, Trace
from rewardstack.core.stretch import LONG_TEXT, Stretch
from rewardstack.errors import BudgetError, ConfigError, RequestError, ScoringError
from rewardstack.pipeline.items import describe_request, is_single, raise_if_all_invalid, read_request
from rewardstack.pipeline.missing import warn_of_missing
from rewardstack.pipeline.scorer import Context, MakeScorer
from rewardstack.pipeline.stages import Chain, Compose, Shape, Singles, Stage, describe_score, elapsed_ms
from rewardstack.routing.composite import Cascade, Gate, part_routes
from rewardstack.routing.routes import Leaf, Route, RouteTable
from rewardstack.routing.syntax import definition
from rewardstack.score import Item, OnError, Request, Score, Usage
from rewardstack_verifier.transcript import AUTO

Groups = dict[tuple[str, float | None], tuple[Route, dict[int, Item]]]
"""Maps source and timeout to a group of samples: its route, and its items by their position in the call."""


class Pipeline:
    """Scores requests.

    Args:
        routes: the route table.
        scorers: by `Leaf.kind`, the function that creates a scorer of this kind.
        cache: result cache.
        tenant: cache namespace of the caller.
        transcript: how to split responses into turns, if neither sample nor route says it.
        may_extend: whether the `timeout` of a sample may exceed the scorer's timeout.
    """

    def __init__(
        self,
        routes: RouteTable,
        scorers: Mapping[str, MakeScorer],
        cache: ResultCache,
        tenant: str = "",
        *,
        transcript: str = AUTO,
        may_extend: bool = True,
    ) -> None:
        self.routes = routes
        self._make_scorer = scorers
        self._cache = cache
        self._tenant = tenant
        self._transcript = transcript
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
            strict: whether to raise if there are several requests and the same option is invalid in all of them.
            trace: records the steps; only for a single request. None for no trace.

        Raises:
            ConfigError: a source is unknown, a setting is malformed, or an option is invalid in all requests.
            ScoringError: a sample without a score has the policy `raise`, or the policy `lexical` on a route whose
                scores can be below 0.
            BudgetError: the run's budget is spent, and neither the call nor the route sets `on_error`. Samples in
                flight are still scored and cached.
        """
        ends_at = math.inf if limit is None else time.monotonic() + limit
        context = Context(tenant=self._tenant, ends_at=ends_at, may_extend=self._may_extend, trace=trace)
        scores, groups = await self._group(requests, trace)
        if scores:
            warn_of_missing("the call", [*scores.values()], len(requests))
        elif strict and len(groups) == 1:
            # All samples of the call have the same route. If the route is a composite, a single part may get all
            # samples; `Compose` then raises an error if the same option is invalid in all.
            context.batch = [item for _, items in groups.values() for item in items.values()]
        budget_errors: list[BudgetError] = []
        scores.update(await self._score_groups(groups, on_error, budget_errors, context))
        ordered = [scores[index] for index in range(len(requests))]
        if strict and len(ordered) > 1:
            raise_if_all_invalid(ordered)
        return self._apply_error_policies(requests, ordered, on_error, budget_errors)

    async def _score_groups(
        self, groups: Groups, on_error: OnError | None, budget_errors: list[BudgetError], context: Context
    ) -> dict[int, Score]:
        """Return the scores of all groups by position in the call; raise ConfigError if a setting is invalid."""
        # Create all stages before the first coroutine: an error here must not leave a coroutine that is never awaited.
        stages = [
            self._prepare_group(route, *key, on_error, budget_errors, context) for key, (route, _) in groups.items()
        ]
        items = [items for _, items in groups.values()]
        work = zip(stages, items, strict=True)
        scores = await asyncio.gather(*(stage([*group.values()], own) for (stage, own), group in work))
        pairs = zip(items, scores, strict=True)
        return {index: score for group, some in pairs for index, score in zip(group, some, strict=True)}

    async def explain(
        self, request: Request, trace: Trace, *, on_error: OnError | None = None, limit: float | None = None
    ) -> Explanation:
        """Score a request and return the steps; see `score` for the arguments.

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
        explanation.score = replace(score, latency_ms=elapsed_ms(started))
        trace.note("score", describe_score(score))
        return explanation

    async def quote(self, requests: Sequence[Request], limit: float) -> dict[str, Quote]:
        """Return the maximum cost of the requests by source, without scoring them.

        This assumes that every part of a composite scores every sample.

        Args:
            requests: the samples.
            limit: maximum seconds to wait until a service reports its identity.

        Raises:
            ConfigError: a source is unknown or a setting is malformed.
            ServiceError: a service does not report its identity.
        """
        scores, groups = await self._group(requests, None)
        quotes: dict[str, list[Quote]] = {request.data_source: [] for request in requests}
        for index in scores:
            quotes[requests[index].data_source].append(Quote(settled=1, unscored=1))
        for (source, _), (_, items) in groups.items():
            quotes[source].append(await self._quote(source, [*items.values()], limit))
        return {source: Quote.total(source_quotes) for source, source_quotes in quotes.items()}

    async def _quote(self, source: str, items: Sequence[Item], limit: float) -> Quote:
        route = self.routes.find(source)
        if isinstance(route.target, Leaf):
            single = route.target.single_route
            singles = [item for item in items if is_single(item)] if single else []
            rest = [item for item in items if not is_single(item)] if singles else items
            other = await self._quote(single, singles, limit) if singles else Quote()
            own = await self._chain(route, route.target, source).quote(rest, self._context_with_limit(limit))
            return Quote.total([own, other])
        parts = [await self._quote(part, items, limit) for part in part_routes(route.target)]
        return Quote(usage=Usage.total(quote.usage for quote in parts))

    async def fingerprint(self, source: str, limit: float) -> str | None:
        """Return a hash of the scorer and options of `source`; while it is unchanged, equal samples get equal scores.

        Args:
            source: a `data_source`.
            limit: maximum seconds to wait until the scorer's service reports its identity.

        Returns:
            The hash; None for a composite, and for scorers whose scores are not deterministic.

        Raises:
            RewardstackError: the service does not report its identity.
        """
        route = self.routes.find(source)
        if not isinstance(route.target, Leaf):
            return None
        return await self._chain(route, route.target, source).fingerprint(self._context_with_limit(limit))

    def check_settings(self, source: str) -> None:
        """Raise ConfigError if a setting that every sample of `source` needs is missing.

        In a cascade or gate, only the first part is checked, because the other parts do not score every sample.
        """
        route = self.routes.find(source)
        if isinstance(route.target, Leaf):
            self._chain(route, route.target, source).check_settings()
            return
        parts = part_routes(route.target)
        for part in parts[:1] if isinstance(route.target, (Cascade, Gate)) else parts:
            self.check_settings(part)

    def _context_with_limit(self, limit: float) -> Context:
        """Return a context with a time limit in seconds, for calls that do not score samples."""
        return Context(SharedDeadline(Deadline(limit, limit)), tenant=self._tenant)

    async def _group(self, requests: Sequence[Request], trace: Trace | None) -> tuple[dict[int, Score], Groups]:
        """Return the scores of malformed requests by position, and the groups of the other requests."""
        scores: dict[int, Score] = {}
        groups: Groups = {}
        stretch = Stretch()
        for index, request in enumerate(requests):
            route = self.routes.find(request.data_source)
            is_single_reference = self.routes.has_single_reference(request.data_source)
            read = partial(
                read_request,
                request,
                is_single_reference=is_single_reference,
                transcript=route.transcript or self._transcript,
            )
            try:
                is_long = isinstance(request.solution_str, str) and len(request.solution_str) > LONG_TEXT
                item, timeout = await asyncio.to_thread(read) if is_long else read()
            except RequestError as error:
                scores[index] = error.as_score()
                facts: Mapping[str, Any] = {"error": str(error)}
            else:
                groups.setdefault((request.data_source, timeout), (route, {}))[1][index] = item
                facts = (
                    {}
                    if trace is None
                    else describe_request(request, item, timeout, is_single_reference=is_single_reference)
                )
            if trace is not None:
                trace.note("request", facts)
            await stretch.rest()
        return scores, groups

    def _prepare_group(
        self,
        route: Route,
        source: str,
        timeout: float | None,
        on_error: OnError | None,
        budget_errors: list[BudgetError],
        context: Context,
    ) -> tuple[Stage, Context]:
        """Return the first stage and the context of a group; raise ConfigError if a setting is invalid."""
        if on_error == "zero" and self._can_be_negative(source):
            why = f"scores of route {route.name!r} can be below 0, so 0.0 would reward failed samples"
            raise ConfigError(f"on_error: {why}; choose raise or none", "on_error")
        lexical = (on_error or self._policy(route, source)) == "lexical"
        errors = None if on_error or route.on_error else budget_errors
        return self._stage(route, source), replace(context, timeout=timeout, lexical=lexical, budget_errors=errors)

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
            part_routes_by_name = {part: self.routes.find(part) for part in part_routes(route.target)}
            parts = {
                part: (part_route, self._stage(part_route, part)) for part, part_route in part_routes_by_name.items()
            }
            stage = Compose(route, route.target, parts)
        return stage if route.shaping is None else Shape(route.shaping, stage)

    def _chain(self, route: Route, leaf: Leaf, source: str) -> Chain[Any]:
        target = route.leaf_target(source)
        chain = self._chains.get((leaf.kind, target))
        if chain is None:
            scorer = self._make_scorer[leaf.kind](target)
            chain = self._chains[leaf.kind, target] = Chain(scorer, self._cache, self._tenant)
        return chain

    def _apply_error_policies(
        self,
        requests: Sequence[Request],
        scores: list[Score],
        on_error: OnError | None,
        budget_errors: Sequence[BudgetError],
    ) -> list[Score]:
        """Replace missing values as the error policies say, or raise an error that carries all scores."""
        without_score: list[int] = []
        for index, score in enumerate(scores):
            if score.value is not None:
                continue
            source = requests[index].data_source
            policy = on_error or self._policy(self.routes.find(source), source)
            if policy == "raise" or (policy == "lexical" and self._can_be_negative(source)):
                without_score.append(index)
            else:
                scores[index] = replace(score, value=None if policy == "none" else 0.0)
        if without_score:
            raise ScoringError.about(without_score[0], scores)
        if budget_errors:
            raise BudgetError(str(budget_errors[0]), budget_errors[0].field, scores)
        return scores

    def _policy(self, route: Route, source: str) -> OnError:
        if route.on_error is not None:
            return route.on_error
        if self._can_be_negative(source):
            return "raise"
        return self._chain(route, route.target, source).scorer.on_error if isinstance(route.target, Leaf) else "zero"

    def _can_be_negative(self, source: str) -> bool:
        """Return whether scores of `source` can be below 0, so that 0 is not the lowest score."""
        return self.routes.bounds(source)[0] < 0
