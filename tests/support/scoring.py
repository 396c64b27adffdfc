"""Score items with a pipeline that has one scorer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewardstack.cache.store import ResultCache
from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.pipeline.pipeline import Pipeline
from rewardstack.pipeline.scorer import Context, Scorer
from rewardstack.routing.routes import RouteTable, builtin_routes
from rewardstack.score import Item, Request, Score
from rewardstack.settings import Settings

SOURCE = "rule_remote_any"


def pipeline_of(scorer: Scorer[Any], cache: ResultCache | None = None, tenant: str = "") -> Pipeline:
    """Return a pipeline in which all rules are scored by `scorer`."""
    kept = ResultCache(Settings.from_env({})) if cache is None else cache
    return Pipeline(RouteTable(builtin_routes()), {"rule": lambda _: scorer}, kept, tenant)


async def scored(pipeline: Pipeline, *items: Item, limit: float | None = 60, on_error: Any = "none") -> Sequence[Score]:
    """Return the scores of items, in order."""
    requests = [Request(SOURCE, one.solution, list(one.references), one.extra) for one in items]
    return await pipeline.score(requests, limit=limit, on_error=on_error)


def context(timeout: float = 60, limit: float | None = None) -> Context:
    """Return a context for a scorer, as a caller with these time limits would have."""
    caller = Deadline(timeout, limit)
    return Context(SharedDeadline(caller), caller)
