"""Keep one `Client` for each event loop: connections to services, result caches and a pipeline.

The public functions in `api`, the reward server and the command line score through this module. The module also keeps
the routes that this process has registered.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from rewardstack.cache.key import tenant_of
from rewardstack.cache.store import ResultCache
from rewardstack.core import failure_rate
from rewardstack.core.cost import Quote
from rewardstack.core.event_loop import loop_thread
from rewardstack.core.fields import Fields
from rewardstack.core.groups import MAX_GROUP_SIZE
from rewardstack.core.imports import import_lock
from rewardstack.errors import ConfigError, RequestError
from rewardstack.pipeline.items import GROUP_SIZE
from rewardstack.pipeline.pipeline import Pipeline
from rewardstack.routing.routes import Route, RouteTable, builtin_routes
from rewardstack.score import OnError, Request, Score
from rewardstack.scorers.factory import Backends
from rewardstack.scorers.names import warn_of_misspelled_fields
from rewardstack.settings import Settings

if TYPE_CHECKING:
    from rewardstack.core.steps import Explanation
    from rewardstack.transport.servers import Servers

log = logging.getLogger(__name__)

_registered: dict[str, Route] = {}
_clients: dict[asyncio.AbstractEventLoop, Client] = {}


class Client:
    """What one event loop needs for scoring: connections to services (backends), the result caches and the pipeline."""

    def __init__(self) -> None:
        self._backends = Backends()
        self._caches: dict[tuple[object, ...], ResultCache] = {}
        self._pipelines: dict[tuple[object, ...], Pipeline] = {}

    def pipeline(self, settings: Settings) -> Pipeline:
        """Return the pipeline for these settings and the registered routes."""
        identity = (settings, tuple(_registered.values()))
        if identity not in self._pipelines:
            self._pipelines.clear()
            self._pipelines[identity] = make_pipeline(settings, self._backends, self._cache(settings))
        return self._pipelines[identity]

    def _cache(self, settings: Settings) -> ResultCache:
        server = settings.is_cache_enabled, settings.cache_url
        identity = (*server, settings.cache_secret, settings.cache_ttl, settings.cache_items)
        if identity not in self._caches:
            self._caches[identity] = ResultCache(settings)
        return self._caches[identity]

    def reward_service(self, url: str, api_key: str, settings: Settings) -> Servers:
        """Return the servers of the reward server at `url` for an API key; equal calls return the same pool."""
        return self._backends.reward_service((url,), api_key, settings)

    async def close(self) -> None:
        """Write pending data to the cache, and close all connections."""
        await self._backends.close()
        for cache in self._caches.values():
            await cache.close()


def make_pipeline(settings: Settings, backends: Backends, cache: ResultCache) -> Pipeline:
    """Return a pipeline with all routes.

    The tenant (cache namespace) is a hash of the API key for the reward server, which derives it in the same way.

    Raises:
        RouteError: a route is invalid.
    """
    tenant, routes = tenant_of(settings.reward_server_api_key), route_table(settings)
    return Pipeline(
        routes, backends.scorers(settings, cache, tenant, routes), cache, tenant, transcript=settings.transcript
    )


def register(route: Route) -> None:
    """Add a route to this process's route table.

    Raises:
        RouteError: a route of this name exists, its judge is invalid, or `RouteTable.check_judges` finds an error.
    """
    routes = RouteTable([*builtin_routes(), *_registered.values(), route])
    _check_judges(routes)
    _registered[route.name] = route


def route_table(settings: Settings) -> RouteTable:
    """Return all routes: built-in, from routes files, and registered; raise RouteError if one is invalid."""
    routes = RouteTable([*builtin_routes(), *_load_route_files(settings), *_registered.values()])
    routes.check()
    _check_judges(routes)
    routes.check_policies()
    return routes


def _load_route_files(settings: Settings) -> list[Route]:
    if not settings.routes_files:
        return []
    with import_lock:
        from rewardstack.routing.syntax import load_routes
    return [route for path in settings.routes_files for route in load_routes(path)]


def _check_judges(routes: RouteTable) -> None:
    """Raise RouteError if a judge's template or options are invalid, or `RouteTable.check_judges` finds an error."""
    if routes.judges:
        with import_lock:
            from rewardstack.scorers.judge import check_named_judge
        for judge in routes.judges.values():
            check_named_judge(judge)
    routes.check_judges()


async def score_on_loop(
    requests: Sequence[Request], settings: Settings, on_error: OnError | None, limit: float | None
) -> list[Score]:
    """Score requests with the client of the running loop, log their rewards and write the sample log.

    Args:
        requests: the samples.
        settings: the current settings.
        on_error: policy for samples without a score; None for the policy of each sample's route.
        limit: time limit in seconds; None for no limit.

    Returns:
        One score for each request, in order.

    Raises:
        RewardstackError: see `Pipeline.score` and `core.failure_rate.count_failures`.
    """
    pipeline = _current_client().pipeline(settings)
    warn_of_misspelled_fields(requests)
    scores = await failure_rate.count_failures(pipeline.score(requests, on_error=on_error, limit=limit), settings)
    is_logged = len(scores) > 1 and log.isEnabledFor(logging.INFO)
    if not (is_logged or settings.sample_log):
        return scores
    routes = [pipeline.routes.find(request.data_source).pattern for request in requests]
    if is_logged:
        _log_rewards(requests, scores, routes)
    if settings.sample_log:
        with import_lock:
            from rewardstack.core.sample_log import sample_log
        sample_log(settings.sample_log, settings.sample_log_share).write(requests, scores, routes)
    return scores


def _log_rewards(requests: Sequence[Request], scores: Sequence[Score], names: Sequence[str]) -> None:
    """Log a summary of a batch's rewards for each route; `names` has the route of each request."""
    with import_lock:
        from rewardstack.core.reward_summary import RewardSummary
    routes: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        routes.setdefault(name, []).append(index)
    for route, indices in routes.items():
        summary = RewardSummary.from_batch([requests[index] for index in indices], [scores[index] for index in indices])
        if summary is not None:
            log.info("%s: %s", route, summary.text)


async def explain(
    request: Request, settings: Settings, *, on_error: OnError | None, limit: float | None
) -> Explanation:
    """Score a request with new connections, and return the steps; see `Pipeline.explain` for the errors.

    If the score is in the cache, the scorer is not called.

    Args:
        request: the sample.
        settings: the current settings.
        on_error: policy if the sample has no score; None for its route's policy.
        limit: time limit in seconds; None for no limit.
    """
    with import_lock:
        from rewardstack.core.steps import Trace
    warn_of_misspelled_fields([request])
    cache, backends = ResultCache(settings), Backends(records_requests=True)
    try:
        pipeline, trace = make_pipeline(settings, backends, cache), Trace(backends.recording.take, rescore=False)
        return await pipeline.explain(request, trace, on_error=on_error, limit=limit)
    finally:
        await backends.close()
        await cache.close()


async def fingerprint_on_loop(source: str, settings: Settings, limit: float) -> str | None:
    """Return a hash of a source's scorer and options, with the running loop's client; see `Pipeline.fingerprint`."""
    return await _current_client().pipeline(settings).fingerprint(source, limit)


async def quote_on_loop(requests: Sequence[Request], settings: Settings, limit: float) -> dict[str, Quote]:
    """Return the requests' maximum cost by source, with the running loop's client; see `Pipeline.quote`."""
    return await _current_client().pipeline(settings).quote(requests, limit)


def reward_service(url: str, api_key: str, settings: Settings) -> Servers:
    """Return the servers of a reward server, from the running loop's client; see `Client.reward_service`."""
    return _current_client().reward_service(url, api_key, settings)


def group_of(routes: RouteTable, request: Request) -> str | None:
    """Return the name of the group in which a judge compares a sample; None if it is malformed or scored alone."""
    try:
        extra = request.extra_info or {}
        if not routes.comparisons(request.data_source) or Fields(extra).get(GROUP_SIZE) == 1:
            return None
        with import_lock:
            from rewardstack.scorers.judge import group_name
        return group_name(request.data_source, extra, repr(request.ground_truth))
    except (ConfigError, AttributeError):  # scoring the sample reports the error
        return None


def check_groups(requests: Sequence[Request], settings: Settings, remedy: str, threads: int | None) -> None:
    """Raise if a judge that compares groups would get an incomplete group; see `api.check_groups`."""
    routes = _cached_route_table(settings, tuple(_registered.values()))
    counts: Counter[tuple[str, int]] = Counter()
    for request in requests if routes.has_comparisons else ():
        if (group := group_of(routes, request)) is None:
            continue
        sample_size = Fields(request.extra_info or {}).integer(GROUP_SIZE, None, 1, MAX_GROUP_SIZE)
        for size in {sample_size or comparison.group_size for comparison in routes.comparisons(request.data_source)}:
            if size is None:
                why = f"the judge of data_source {request.data_source!r} compares groups, but no group_size is set"
                raise RequestError(f"{GROUP_SIZE}: {why}; set it to the number of completions per prompt", GROUP_SIZE)
            counts[group, size] += 1
    for (_, size), count in counts.items():
        why = "" if count % size == 0 else f"a group has {count} members in this batch, not a multiple of {size}"
        if threads is not None:
            few = f"a group has {size} members, but only {threads} threads score samples, so it can never be complete"
            why = "" if size <= threads else few
        if why:
            raise RequestError(f"{GROUP_SIZE}: {why}; {remedy}", GROUP_SIZE)
        if threads is None and count > size:
            _warn_of_divided_group(count, size)


@lru_cache(maxsize=8)
def _warn_of_divided_group(count: int, size: int) -> None:
    """Warn, once for each pair of arguments, that the responses to one prompt are compared in several groups."""
    log.warning(
        "%s is %d, and a batch has %d responses to one prompt: they are compared in %d separate groups; "
        "if the trainer samples %d responses, set %s to %d",
        GROUP_SIZE, size, count, count // size, count, GROUP_SIZE, count,
    )  # fmt: skip


@lru_cache(maxsize=8)
def _cached_route_table(settings: Settings, registered: tuple[Route, ...]) -> RouteTable:
    """Return the route table, cached because `check_groups` needs it for each batch and reading the files is slow.

    `registered` is only part of the cache key: `route_table` itself adds the registered routes.
    """
    return route_table(settings)


def _current_client() -> Client:
    """Return the client of the running loop; the first call on a loop creates it."""
    loop = asyncio.get_running_loop()
    client = _clients.get(loop)
    if client is None:
        client = _clients[loop] = Client()
        loop_thread().closing.append(client.close)
    return client
