"""Requests are grouped by route, scored by its runner, and get what their policy says where they have no score.

The order of all steps stands in this package's docstring.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rewardstack.cache.store import ResultCache
from rewardstack.core.coalescing import SLICE
from rewardstack.core.cost import Quote
from rewardstack.core.deadline import Deadline
from rewardstack.errors import BudgetError, RequestError, ScoringError
from rewardstack.pipeline.fallback import service_time
from rewardstack.pipeline.items import has_same_option, raise_if_all_wrong, read_request
from rewardstack.pipeline.outcomes import milliseconds, warn_of_missing
from rewardstack.pipeline.runner import Runner
from rewardstack.pipeline.scorer import MakeScorer
from rewardstack.routing.composite import routes_of
from rewardstack.routing.routes import Leaf, Route, RouteTable
from rewardstack.score import Item, OnError, Request, Score, Usage


@dataclass(slots=True)
class _Group:
    """Samples of one source and timeout: their route, and the items by position."""

    route: Route
    items: dict[int, Item]


_Groups = dict[tuple[str, float | None], _Group]


@dataclass(slots=True)
class Call:
    """What holds for all samples of one call that have the same source and timeout.

    Args:
        timeout: seconds without progress after which they fail; None for their scorer's.
        ends_at: when the call ends, on `time.monotonic()`.
        tenant: who may see the results.
        lexical: whether failures are given substitutes.
        whole: all samples of the call, where a composite's part raises an option that is wrong in each of them; else
            empty.
        fatal: takes what the run's budget refuses; None where the policy says what such samples are worth.
    """

    timeout: float | None
    ends_at: float
    tenant: str
    lexical: bool
    whole: Sequence[Item]
    fatal: list[BudgetError] | None

    def service_time(self) -> float | None:
        """Seconds that a service has; None for no limit."""
        if self.ends_at == math.inf:
            return None
        left = self.ends_at - time.monotonic()
        return service_time(left) if self.lexical else left

    @property
    def substitutes_until(self) -> float | None:
        """When the last substitute is begun; None where none is wanted."""
        return self.ends_at if self.lexical else None


class Pipeline:
    """Scores requests.

    Args:
        routes: which scorer takes which source.
        scorers: makes the scorers of each kind of leaf, and says how samples are sent to them.
        cache: of results.
    """

    def __init__(self, routes: RouteTable, scorers: Mapping[str, MakeScorer], cache: ResultCache) -> None:
        self.routes = routes
        self._make = scorers
        self._cache = cache
        self._runners: dict[tuple[str, str], Runner[Any]] = {}
        self._make_runner: Callable[..., Runner[Any]] = Runner

    async def score(
        self,
        requests: Sequence[Request],
        *,
        on_error: OnError | None = None,
        limit: float | None = None,
        tenant: str = "",
        strict: bool = True,
    ) -> list[Score]:
        """One score for each request, in order.

        Args:
            requests: the samples.
            on_error: what a sample without a score is worth; None for its route's own policy.
            limit: seconds after which the call ends whatever happens.
            tenant: separates those who may not see each other's results.
            strict: whether an option that is wrong in every one of several requests is raised, rather than an outcome.

        Raises:
            ConfigError: a source is unknown, a setting malformed, or an option wrong in all requests.
            ScoringError: a sample has no score and the policy is `raise`.
            BudgetError: what the run may spend is spent, and neither the call nor the route says what such a sample is
                worth; what was on its way has been scored and kept.
        """
        ends_at = math.inf if limit is None else time.monotonic() + limit
        scores, groups = await self._group(requests)
        if scores:
            warn_of_missing("the call", [*scores.values()], len(requests))
        # Where some are of another group, or cannot be read, no part of a composite is asked about all of them.
        alone = [*groups.values()] if strict and not scores and len(groups) == 1 else []
        whole = [item for group in alone for item in group.items.values()]
        fatal: list[BudgetError] = []
        common = Call(None, ends_at, tenant, False, whole, fatal)
        for group, found in zip(groups.values(), await self._evaluate_groups(groups, on_error, common), strict=True):
            scores.update(zip(group.items, found, strict=True))
        ordered = [scores[at] for at in range(len(requests))]
        if strict:
            raise_if_all_wrong(ordered)
        return self._settle(requests, ordered, on_error, fatal)

    async def quote(self, requests: Sequence[Request], limit: float, tenant: str = "") -> dict[str, Quote]:
        """What the requests would cost at most, by source, with none of them scored.

        A composite is taken for one that asks all of its parts for every sample.

        Args:
            requests: the samples.
            limit: seconds that each service may take to say what it has.
            tenant: whose results are looked up.

        Raises:
            ConfigError: a source is unknown or a setting malformed.
            ServiceError: a service does not say what it is.
        """
        scores, groups = await self._group(requests)
        quotes: dict[str, list[Quote]] = {request.data_source: [] for request in requests}
        for at in scores:
            quotes[requests[at].data_source].append(Quote(settled=1, unscored=1))
        for (source, _), group in groups.items():
            quotes[source].append(await self._quote(group.route, source, list(group.items.values()), limit, tenant))
        return {source: Quote.total(found) for source, found in quotes.items()}

    async def _quote(self, route: Route, source: str, items: Sequence[Item], limit: float, tenant: str) -> Quote:
        if isinstance(route.target, Leaf):
            return await self._runner(route, route.target, source).quote(items, Deadline(limit, limit), tenant)
        parts = routes_of(route.target)
        found = [await self._quote(self.routes.find(part), part, items, limit, tenant) for part in parts]
        return Quote(usage=Usage.total(one.usage for one in found))

    async def fingerprint(self, source: str, limit: float) -> str | None:
        """All but the sample that a score of `source` depends on, as its cache key has it; None where no key does.

        Args:
            source: of a route that one scorer serves.
            limit: seconds that its service may take to say what it is.

        Raises:
            RewardstackError: it does not say.
        """
        route = self.routes.find(source)
        if not isinstance(route.target, Leaf):
            return None
        return await self._runner(route, route.target, source).fingerprint(Deadline(limit, limit))

    async def _group(
        self, requests: Sequence[Request]
    ) -> tuple[dict[int, Score], dict[tuple[str, float | None], _Group]]:
        """What is wrong with requests, by position; those with which nothing is, by source and timeout."""
        scores: dict[int, Score] = {}
        groups: _Groups = {}
        for at, request in enumerate(requests):
            route = self.routes.find(request.data_source)
            try:
                item, timeout = read_request(request)
            except RequestError as error:
                scores[at] = Score.unscored(str(error), field=error.field)
            else:
                which = request.data_source, timeout
                if which not in groups:
                    groups[which] = _Group(route, {})
                groups[which].items[at] = item
            if at % SLICE == SLICE - 1:
                await asyncio.sleep(0)
        return scores, groups

    async def _evaluate_groups(
        self, groups: Mapping[tuple[str, float | None], _Group], on_error: OnError | None, common: Call
    ) -> list[list[Score]]:
        """Return the scores of each group's samples, in order; raises as `_group_call` does."""
        # All calls before the first coroutine: an unknown source raises here and leaves no coroutine behind unawaited.
        calls = [self._group_call(which, group, on_error, common) for which, group in groups.items()]
        running = (
            self._evaluate(group.route, source, list(group.items.values()), call)
            for ((source, _), group), call in zip(groups.items(), calls, strict=True)
        )
        return await asyncio.gather(*running)

    def _group_call(
        self, which: tuple[str, float | None], group: _Group, on_error: OnError | None, common: Call
    ) -> Call:
        """Return the call of a group; `common` is what holds for all groups.

        Raises:
            ConfigError: the source is unknown or a setting malformed.
        """
        source, timeout = which
        lexical = self._is_lexical(group.route, source, on_error)
        fatal = None if on_error or group.route.on_error else common.fatal
        return replace(common, timeout=timeout, lexical=lexical, fatal=fatal)

    async def _evaluate(self, route: Route, source: str, items: Sequence[Item], call: Call) -> list[Score]:
        if isinstance(route.target, Leaf):
            runner = self._runner(route, route.target, source)
            deadline = Deadline(call.timeout or runner.scorer.timeout, call.service_time())
            until = call.substitutes_until
            return await runner.score(items, deadline, call.tenant, fatal=call.fatal, substitutes_until=until)
        started = time.monotonic()
        spent: dict[int, Usage] = {}

        async def evaluate(part: str, some: Sequence[Item]) -> list[Score]:
            scores = await self._evaluate_part(part, some, call)
            for item, score in zip(some, scores, strict=True):
                if score.usage is not None:
                    spent[id(item)] = Usage.total((spent.get(id(item)), score.usage))
            return scores

        scores = await route.target.score(items, evaluate)
        elapsed = milliseconds(started)
        return [
            replace(score, latency_ms=elapsed, usage=spent.get(id(item)))
            for item, score in zip(items, scores, strict=True)
        ]

    async def _evaluate_part(self, part: str, items: Sequence[Item], call: Call) -> list[Score]:
        scores = await self._evaluate(self.routes.find(part), part, items, call)
        if call.whole and has_same_option(call.whole, scores[0].field):
            raise_if_all_wrong(scores)
        return scores

    def _runner(self, route: Route, leaf: Leaf, source: str) -> Runner[Any]:
        target = leaf.target or source[len(route.name) :]
        known = self._runners.get((leaf.kind, target))
        if known is None:
            known = self._runners[leaf.kind, target] = self._make_runner(*self._make[leaf.kind](target), self._cache)
        return known

    def _settle(
        self,
        requests: Sequence[Request],
        scores: list[Score],
        on_error: OnError | None,
        fatal: Sequence[BudgetError] = (),
    ) -> list[Score]:
        """Gives every sample without a value what its policy says; raises with all of them what is to end the call."""
        lost: list[int] = []
        for at, score in enumerate(scores):
            if score.value is not None:
                continue
            source = requests[at].data_source
            policy = on_error or self._policy(self.routes.find(source), source)
            if policy == "raise":
                lost.append(at)
            else:
                scores[at] = replace(score, value=None if policy == "none" else 0.0)
        if lost:
            raise ScoringError.about(lost[0], scores)
        if fatal:
            raise BudgetError(str(fatal[0]), fatal[0].field, scores)
        return scores

    def _is_lexical(self, route: Route, source: str, on_error: OnError | None) -> bool:
        """Whether what fails is to have a lexical substitute."""
        return (on_error or self._policy(route, source)) == "lexical"

    def _policy(self, route: Route, source: str) -> OnError:
        if route.on_error is not None:
            return route.on_error
        return self._runner(route, route.target, source).scorer.on_error if isinstance(route.target, Leaf) else "zero"
