"""The way of every sample, in a trainer, in the reward server, in its workers and in the command line.

    requests ─ group by route ─► ErrorPolicy ► Prepare ► Cache ► Batch ► Keep ► Scorer ─► scores, in request order

Stages (`pipeline.stages`) and scorers (`pipeline.scorer`) have one shape, `async (samples, context) -> scores`, and
each calls the next one; what differs between a trainer and a server is the scorer that is plugged in.

- `ErrorPolicy` warns about samples without a score, and replaces failures under the policy `lexical`.
- `Prepare` has the scorer prepare each item; an item that is at fault ends here.
- `Cache` looks in this process's memory, then asks the scorer for what it finds inline, then Redis.
- `Batch` shares equal samples in flight, and forms batches (`core.batching`).
- `Keep` asks the scorer, and writes scores to the cache as they come, even if nobody waits any more.
- `Compose` stands in place of the chain for a composite route; its parts are such stages, too.
- `Shape` is around either where a route says `scale`, `shift` or `clip`.

`Context` carries the deadline, the tenant, the budget and the trace. To explain a sample is to score it with a trace:
every stage notes its step there, nothing is shared with others' calls and nothing new is kept.

The pipeline groups requests by source and timeout, and in the end gives samples without a score what the policy of
their route says. Nothing here knows one kind of service, or HTTP: those are `scorers` and `transport`.
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
from rewardstack.pipeline.items import raise_if_all_wrong, read_request, request_facts
from rewardstack.pipeline.scorer import Context, MakeScorer
from rewardstack.pipeline.stages import Chain, Compose, Shape, Stage, milliseconds, score_facts, warn_of_missing
from rewardstack.routing.composite import routes_of
from rewardstack.routing.routes import Leaf, Route, RouteTable
from rewardstack.routing.syntax import definition
from rewardstack.score import Item, OnError, Request, Score, Usage

Groups = dict[tuple[str, float | None], tuple[Route, dict[int, Item]]]
"""Routes, and items by position, by source and timeout."""


class Pipeline:
    """Scores requests.

    Args:
        routes: which scorer takes which source.
        scorers: makes the scorers of each kind of leaf.
        cache: of results.
        tenant: separates those who may not see each other's results.
        may_extend: whether a sample's `timeout` may be longer than its scorer's.
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
            on_error: the policy for samples without a score; None for their route's.
            limit: seconds after which the call ends whatever happens.
            strict: whether an option that is wrong in every one of several requests is raised, rather than an outcome.
            trace: where the steps of a single request are noted.

        Raises:
            ConfigError: a source is unknown, a setting malformed, or an option wrong in all requests.
            ScoringError: a sample has no score and the policy is `raise`.
            BudgetError: the run's budget is spent, and neither the call nor the route has a policy; what was on its
                way has been scored and kept.
        """
        ends_at = math.inf if limit is None else time.monotonic() + limit
        context = Context(tenant=self._tenant, ends_at=ends_at, may_extend=self._may_extend, trace=trace)
        scores, groups = await self._group(requests, trace)
        if scores:
            warn_of_missing("the call", [*scores.values()], len(requests))
        elif strict and len(groups) == 1:  # else no part of a composite is asked about all samples of the call
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
        """Return the scores of all groups by position; raise ConfigError if a source or a setting is wrong."""
        # All before the first coroutine: what raises here leaves none behind unawaited.
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
        """Return how a request comes to its score; arguments as those of `score`.

        Raises:
            UnknownSourceError: no route takes its source.
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
        """Return what the requests would cost at most, by source, without scoring any.

        A composite is taken for one that asks all of its parts for every sample.

        Args:
            requests: the samples.
            limit: seconds that each service may take to say what it has.

        Raises:
            ConfigError: a source is unknown or a setting malformed.
            ServiceError: a service does not say what it is.
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
            return await self._chain(route, route.target, source).quote(items, self._asking(limit))
        found = [await self._quote(part, items, limit) for part in routes_of(route.target)]
        return Quote(usage=Usage.total(one.usage for one in found))

    async def fingerprint(self, source: str, limit: float) -> str | None:
        """Return all but the sample that a score of `source` depends on, as a cache key; None if no key has it.

        Args:
            source: of a route that one scorer serves.
            limit: seconds that its service may take to say what it is.

        Raises:
            RewardstackError: it does not say.
        """
        route = self.routes.find(source)
        if not isinstance(route.target, Leaf):
            return None
        return await self._chain(route, route.target, source).fingerprint(self._asking(limit))

    def _asking(self, limit: float) -> Context:
        """Return the context of a question to a service that scores nothing."""
        return Context(SharedDeadline(Deadline(limit, limit)), tenant=self._tenant)

    async def _group(self, requests: Sequence[Request], trace: Trace | None) -> tuple[dict[int, Score], Groups]:
        """Return the scores of malformed requests by position, and the items of the others."""
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
        """Return the stage of a group and its context; raise ConfigError if its source or a setting is wrong."""
        if on_error == "zero" and self._goes_below_zero(source):
            why = f"route {route.name!r} can go below 0, so zero would be a good score; choose raise or none"
            raise ConfigError(f"on_error: {why}", "on_error")
        lexical = (on_error or self._policy(route, source)) == "lexical"
        own = None if on_error or route.on_error else refused
        return self._stage(route, source), replace(common, timeout=timeout, lexical=lexical, refused=own)

    def _stage(self, route: Route, source: str) -> Stage:
        stage: Stage
        if isinstance(route.target, Leaf):
            stage = chain = self._chain(route, route.target, source)
            if chain.scorer.is_shaped:
                return stage
        else:
            parts = {part: self.routes.find(part) for part in routes_of(route.target)}
            stage = Compose(route, route.target, {part: (one, self._stage(one, part)) for part, one in parts.items()})
        return stage if route.shaping is None else Shape(route.shaping, stage)

    def _chain(self, route: Route, leaf: Leaf, source: str) -> Chain[Any]:
        target = leaf.target or source[len(route.name) :]
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
        """Give samples without a value what their policy says; raise with all scores what ends the call."""
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
        """Return whether a route has values below 0, so that 0 is no low score."""
        return self.routes.bounds(source)[0] < 0
