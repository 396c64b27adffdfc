"""The one pipeline that every sample takes, in a trainer, in the reward server and in a worker:

route by data_source → choose references → cache → scorer (batched, shared) → policy → Score
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rewardstack.cache.store import ResultCache
from rewardstack.core.deadline import Deadline
from rewardstack.core.json_types import MOST_DEEP, is_deep, is_finite, plain
from rewardstack.errors import ScoringError
from rewardstack.pipeline.fallback import service_time
from rewardstack.pipeline.references import as_references, choose
from rewardstack.pipeline.runner import SLICE, Runner, milliseconds
from rewardstack.pipeline.scorer import MakeScorer
from rewardstack.routing.routes import Leaf, Route, RouteTable
from rewardstack.score import NOTHING, Item, OnError, Request, Score

_Groups = dict[tuple[str, float | None], list[tuple[int, Item]]]


@dataclass(slots=True)
class _Call:
    """What holds for all samples of one call that have the same source and timeout."""

    timeout: float | None
    ends_at: float
    tenant: str
    lexical: bool

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

    async def score(
        self,
        requests: Sequence[Request],
        *,
        on_error: OnError | None = None,
        limit: float | None = None,
        tenant: str = "",
    ) -> list[Score]:
        """One score for each request, in order.

        Args:
            requests: the samples.
            on_error: what a sample without a score is worth; None for its route's own policy.
            limit: seconds after which the call ends whatever happens.
            tenant: separates those who may not see each other's results.

        Raises:
            ConfigError: a source is unknown or a setting malformed; nothing was scored.
            ScoringError: a sample has no score and the policy is `raise`.
        """
        ends_at = math.inf if limit is None else time.monotonic() + limit
        scores, groups = await self._group(requests)
        calls = []
        for (source, timeout), members in groups.items():
            call = _Call(timeout, ends_at, tenant, (on_error or self._policy(source)) == "lexical")
            calls.append(self._evaluate(source, [item for _, item in members], call))
        for members, found in zip(groups.values(), await asyncio.gather(*calls), strict=True):
            for (at, _), score in zip(members, found, strict=True):
                scores[at] = score
        return self._settle(requests, scores, on_error)

    async def _group(self, requests: Sequence[Request]) -> tuple[list[Score], _Groups]:
        """What is wrong with each request, and those with which nothing is, by source and timeout."""
        scores: list[Score] = []
        groups: _Groups = {}
        for at, request in enumerate(requests):
            self.routes.find(request.data_source)
            item, timeout, complaint = _prepare(request)
            scores.append(Score.unscored(complaint))
            if not complaint:
                groups.setdefault((request.data_source, timeout), []).append((at, item))
            if at % SLICE == SLICE - 1:
                await asyncio.sleep(0)
        return scores, groups

    async def _evaluate(self, source: str, items: Sequence[Item], call: _Call) -> list[Score]:
        route = self.routes.find(source)
        if isinstance(route.target, Leaf):
            runner = self._runner(route, route.target, source)
            deadline = Deadline(call.timeout or runner.scorer.timeout, call.service_time())
            return await runner.score(items, deadline, call.tenant, substitutes_until=call.substitutes_until)
        started = time.monotonic()
        scores = await route.target.score(items, lambda part, some: self._evaluate(part, some, call))
        elapsed = milliseconds(started)
        return [replace(score, latency_ms=elapsed) for score in scores]

    def _runner(self, route: Route, leaf: Leaf, source: str) -> Runner[Any]:
        target = leaf.target or source[len(route.name) :]
        known = self._runners.get((leaf.kind, target))
        if known is None:
            known = self._runners[leaf.kind, target] = Runner(*self._make[leaf.kind](target), self._cache)
        return known

    def _settle(self, requests: Sequence[Request], scores: list[Score], on_error: OnError | None) -> list[Score]:
        """Gives every sample without a value what its policy says."""
        for at, score in enumerate(scores):
            if score.value is not None:
                continue
            policy = on_error or self._policy(requests[at].data_source)
            if policy == "raise":
                raise ScoringError(f"sample {at}: {score.status}: {score.reason}", scores)
            scores[at] = replace(score, value=None if policy == "none" else 0.0)
        return scores

    def _policy(self, source: str) -> OnError:
        route = self.routes.find(source)
        if route.on_error is not None:
            return route.on_error
        return self._runner(route, route.target, source).scorer.on_error if isinstance(route.target, Leaf) else "zero"


def _prepare(request: Request) -> tuple[Item, float | None, str]:
    """The request as an item, its own timeout in seconds if it has one, and what is wrong with it."""
    item, extra = Item(""), NOTHING if request.extra_info is None else request.extra_info
    if not isinstance(extra, Mapping):
        return item, None, f"extra_info: expected an object, got {type(extra).__name__}"
    if not isinstance(request.solution_str, str):
        return item, None, f"solution_str: expected a string, got {type(request.solution_str).__name__}"
    if is_deep(extra) or is_deep(request.ground_truth):
        return item, None, f"its reference or extra_info is nested more than {MOST_DEEP} deep"
    timeout = plain(extra.get("timeout"))
    if timeout is not None and not (is_finite(timeout) and timeout > 0):
        return item, None, f"extra_info.timeout: expected seconds above 0, got {timeout!r}"
    try:
        references = choose(as_references(request.ground_truth), extra)
    except TypeError as error:
        return item, None, str(error)
    return Item(request.solution_str, references, extra), None if timeout is None else float(timeout), ""
