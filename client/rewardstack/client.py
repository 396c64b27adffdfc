"""What one event loop holds: the session, the services behind it, the cache, and a flow for the settings in force."""

from __future__ import annotations

from collections.abc import Sequence

from rewardstack.cache.key import tenant_of
from rewardstack.cache.store import ResultCache
from rewardstack.flow import Flow
from rewardstack.route_syntax import load_routes, parse_route
from rewardstack.routes import Route, RouteTable, builtin_routes
from rewardstack.score import OnError, Request, Score
from rewardstack.scorers.reward_types import RewardTypes
from rewardstack.scorers.rules import RemoteRule
from rewardstack.settings import Settings
from rewardstack.transport.descriptors import connection_ceiling
from rewardstack.transport.http import open_session
from rewardstack.transport.runtime import LoopThread, loop_thread
from rewardstack.transport.service import Service

_registered: dict[str, Route] = {}
_clients: dict[LoopThread, Client] = {}


class Client:
    """Made and used on the loop of its thread."""

    def __init__(self) -> None:
        self._session = open_session()
        self._services: dict[tuple[object, ...], Service] = {}
        self._caches: dict[tuple[object, ...], ResultCache] = {}
        self._flows: dict[tuple[object, ...], Flow] = {}
        self._types = RewardTypes()

    def flow(self, settings: Settings) -> Flow:
        """The flow under these settings and the routes registered so far."""
        identity = (settings, tuple(_registered.values()))
        flow = self._flows.get(identity)
        if flow is None:
            self._flows.clear()
            flow = self._flows[identity] = self._make_flow(settings)
        return flow

    def _make_flow(self, settings: Settings) -> Flow:
        def find_service(urls: tuple[str, ...], api_key: str) -> Service:
            return self._service(urls, api_key, settings)

        def make_rule(name: str) -> RemoteRule:
            return RemoteRule(name, settings, find_service, self._types)

        return Flow(route_table(settings), {"rule": make_rule}, self._cache(settings))

    def _service(self, urls: tuple[str, ...], api_key: str, settings: Settings) -> Service:
        identity = (urls, api_key, settings.max_connections, settings.max_retries)
        service = self._services.get(identity)
        if service is None:
            ceiling = connection_ceiling(settings.max_connections)
            service = Service(urls, api_key, self._session, ceiling, settings.max_retries)
            self._services[identity] = service
        return service

    def _cache(self, settings: Settings) -> ResultCache:
        identity = (settings.cache_url, settings.cache_ttl, settings.cache_items)
        if identity not in self._caches:
            self._caches[identity] = ResultCache(settings)
        return self._caches[identity]

    async def close(self) -> None:
        """Closes every connection."""
        for service in self._services.values():
            service.close()
        for cache in self._caches.values():
            await cache.close()
        await self._session.close()


def register_route(name: str, spec: object) -> None:
    """Adds a route to this process's table.

    Args:
        name: the `data_source` it takes; also whatever begins with it and an underscore.
        spec: another route's name, or a table as in a routes file (`docs/routing.md`).

    Raises:
        RouteError: it is malformed, or there is a route of that name.
    """
    route = parse_route(name, spec)
    RouteTable([*builtin_routes(), *_registered.values(), route])
    _registered[name] = route


def route_table(settings: Settings) -> RouteTable:
    """Every route in force: the built-in ones, those of the routes file, those registered.

    Raises:
        RouteError: the file cannot be read, or two of them have one name.
    """
    own = load_routes(settings.routes_file) if settings.routes_file else []
    return RouteTable([*builtin_routes(), *own, *_registered.values()])


async def score_on_loop(
    requests: Sequence[Request], settings: Settings, on_error: OnError | None, limit: float | None
) -> list[Score]:
    """`Flow.score` with this loop thread's client, which it makes at the first call."""
    thread = loop_thread()
    client = _clients.get(thread)
    if client is None:
        client = _clients[thread] = Client()
        thread.closing.append(client.close)
    tenant = tenant_of(settings.reward_server_api_key)
    return await client.flow(settings).score(requests, on_error=on_error, limit=limit, tenant=tenant)
