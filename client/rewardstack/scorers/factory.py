"""The factory of scorers: one session, its services, and a constructor for each kind of leaf.

Each kind of scorer is imported on first use.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from functools import cache as cache_calls
from functools import partial
from typing import TYPE_CHECKING, Any

from rewardstack.cache.store import ResultCache
from rewardstack.core.descriptors import connection_ceiling
from rewardstack.core.imports import importing
from rewardstack.pipeline.scorer import MakeScorer, Scorer
from rewardstack.routing.judges import NamedJudge
from rewardstack.routing.reward_models import RewardModel
from rewardstack.routing.routes import CODE, RouteTable
from rewardstack.scorers.destination import FindService
from rewardstack.scorers.names import EMBEDDING_FIELDS, JUDGE_FIELDS
from rewardstack.scorers.reward_server import Relay, Relayable, RemoteRule, RewardServers
from rewardstack.settings import MAX_REQUESTS, MAX_TOKENS, Settings
from rewardstack.transport.discovery import Discovery
from rewardstack.transport.endpoint_pool import EndpointPool, Place
from rewardstack.transport.http import open_session

if TYPE_CHECKING:
    from rewardstack.scorers.budget import Budget, NewMeter, Spent
    from rewardstack.scorers.embedding import Embedding, VectorStore
    from rewardstack.scorers.judge import Named
    from rewardstack.scorers.rate import RateLimit

CODE_SECONDS = 600.0
"""Minimum timeout in seconds of a server that runs programs: a batch of them can be queued for minutes."""

log = logging.getLogger(__name__)


class Backends:
    """All services of the scorers; belongs to one event loop.

    Args:
        spent: callback for the usage of judges and embedding servers; None for none.
        recorded: whether `recording` records requests and replies.
        within: backends whose budgets are shared; None for separate budgets.
    """

    def __init__(self, spent: Spent | None = None, *, recorded: bool = False, within: Backends | None = None) -> None:
        with importing:
            from rewardstack.transport.recording import Recording
        self.recording = Recording()
        self._spent = spent
        self._session = open_session()
        self._make_pool: Callable[..., EndpointPool] = self.recording.pool if recorded else EndpointPool
        self._services: dict[tuple[object, ...], EndpointPool] = {}
        self._types: Discovery[Hashable, Any] = Discovery()
        self._vectors: dict[ResultCache, VectorStore] = {}
        self._budgets: dict[tuple[ResultCache, str], Budget] = {} if within is None else within._budgets
        self._rates: dict[tuple[str, int, int], RateLimit] = {} if within is None else within._rates

    def scorers(self, settings: Settings, cache: ResultCache, tenant: str, routes: RouteTable) -> dict[str, MakeScorer]:
        """Return the constructors of scorers, by kind of leaf.

        Args:
            settings: servers, keys and timeouts.
            cache: its Redis also stores vectors and the usage of a run.
            tenant: cache namespace of the caller.
            routes: define judges and reward models.
        """
        return {
            "rule": partial(self._rule, settings),
            "judge": partial(self._judge, settings, cache, routes.judges),
            "embedding": partial(self._similarity, settings, cache, tenant),
            "reward_model": partial(self._reward_model, settings, cache, routes.reward_models),
        }

    def _rule(self, settings: Settings, name: str) -> Scorer[Any]:
        is_relayed = bool(settings.reward_server_urls)
        is_in_sandbox = name == CODE and bool(settings.code_sandbox_urls) and not is_relayed
        servers = self._sandboxes(settings) if is_in_sandbox else self._reward_servers(settings)
        patience = CODE_SECONDS if name == CODE else 0.0
        remote = RemoteRule(name, max(settings.reward_server_timeout, patience), servers)
        return remote if is_relayed or is_in_sandbox else _or_embedded(name, remote, settings)

    def _judge(
        self, settings: Settings, cache: ResultCache, judges: Mapping[str, NamedJudge], name: str
    ) -> Scorer[Any]:
        with importing:
            from rewardstack.scorers.judge import Judge, Named
        named = Named(judges[name]) if name in judges else None
        own = settings if named is None else named.settings(settings)
        find = self._finder(settings, f"judge:{name}", partial(_place_of_judge, named), settings.judge_refused_timeout)
        rate = None if named is None else self._rate(name, *named.per_minute)
        judge = Judge(own, find, self._new_meter(cache, settings), named, rate)
        if own.judge_urls or not settings.reward_server_urls:
            return judge
        return self._relay(settings, judge, name, JUDGE_FIELDS, movable=named is None)

    def _similarity(self, settings: Settings, cache: ResultCache, tenant: str, name: str) -> Scorer[Any]:
        embedding = self._embedding(settings, cache, tenant)
        if settings.embedding_urls or not settings.reward_server_urls:
            return embedding
        return self._relay(settings, embedding, name, EMBEDDING_FIELDS, movable=True)

    def _reward_model(
        self, settings: Settings, cache: ResultCache, models: Mapping[str, RewardModel], name: str
    ) -> Scorer[Any]:
        with importing:
            from rewardstack.scorers.reward_model import INPUTS, RewardModelScorer, urls_of_model
        find = self._finder(settings, f"reward_model:{name}", _place_of_reward_models, None)
        scorer = RewardModelScorer(models[name], settings, find, self._new_meter(cache, settings))
        if urls_of_model(models[name], settings) or not settings.reward_server_urls:
            return scorer
        relay = self._relay(settings, scorer, name, INPUTS, movable=False)
        relay.is_shaped = True  # by the server's own route of that name
        return relay

    def _relay(
        self, settings: Settings, scorer: Relayable[Any], source: str, fields: tuple[str, ...], *, movable: bool
    ) -> Relay[Any]:
        """Return a scorer that uses the reward server in place of a service that is not configured here."""
        if settings.max_requests or settings.max_tokens:
            _warn_of_caps()
        return Relay(scorer, source, fields, self._reward_servers(settings), movable=movable)

    def _reward_servers(self, settings: Settings) -> RewardServers:
        find = self._finder(
            settings,
            "rule",
            lambda now: (now.reward_server_urls, now.reward_server_api_key),
            settings.reward_server_refused_timeout,
        )
        return RewardServers(settings, find, self._types)

    def _sandboxes(self, settings: Settings) -> RewardServers:
        """Return the reward servers of `code_sandbox_urls`, which only run programs."""
        own = replace(settings, reward_server_urls=settings.code_sandbox_urls, reward_server_api_key="", endpoints="")
        find = self._finder(own, "code", lambda now: (now.code_sandbox_urls, ""), None)
        return RewardServers(own, find, self._types)

    def reward_service(self, urls: tuple[str, ...], api_key: str, settings: Settings) -> EndpointPool:
        """Return the service for reward servers with these base URLs and this key."""
        return self._reward_servers(settings).find(urls, api_key)

    def _embedding(self, settings: Settings, cache: ResultCache, tenant: str) -> Embedding:
        with importing:
            from rewardstack.scorers.embedding import Embedding
        find = self._finder(
            settings,
            "embedding",
            lambda now: (now.embedding_urls, now.embedding_api_key),
            settings.embedding_refused_timeout,
        )
        meter = self._new_meter(cache, settings)(Embedding.source)
        return Embedding(settings, find, self._vector_store(cache, settings), tenant, meter)

    def _vector_store(self, cache: ResultCache, settings: Settings) -> VectorStore:
        if cache not in self._vectors:
            with importing:
                from rewardstack.scorers.embedding import VectorStore
            self._vectors[cache] = VectorStore(cache.link, settings.cache_ttl, settings.cache_secret)
        return self._vectors[cache]

    def _rate(self, judge: str, requests: int, tokens: int) -> RateLimit | None:
        """Return the rate limit of a judge, which is shared by the whole process; None for none."""
        if not (requests or tokens):
            return None
        with importing:
            from rewardstack.scorers.rate import RateLimit
        which = judge, requests, tokens
        if which not in self._rates:
            self._rates[which] = RateLimit(requests, tokens)
        return self._rates[which]

    def _new_meter(self, cache: ResultCache, settings: Settings) -> NewMeter:
        """Return a constructor of meters; a change of the limits does not reset the usage of the run."""
        with importing:
            from rewardstack.scorers.budget import Budget, Meter, tell_nobody
        which = cache, settings.run_id
        if which not in self._budgets:
            self._budgets[which] = Budget(cache.link, settings.run_id, settings.cache_ttl)
        self._budgets[which].cap(settings.max_requests, settings.max_tokens)
        return partial(Meter, self._budgets[which], told=self._spent or tell_nobody)

    def _finder(
        self, settings: Settings, kind: str, place: Callable[[Settings], Place], refused_timeout: float | None
    ) -> FindService:
        """Return a function that finds services: the environment's, with its address from `place`, and samples' own.

        Args:
            settings: current settings.
            kind: name of the service.
            place: returns the address of the environment's service, given settings.
            refused_timeout: most seconds to wait while connections are refused; None for no separate limit.
        """
        most_refused = math.inf if refused_timeout is None else refused_timeout

        @cache_calls  # called for every sample; `_services` keeps all services anyway
        def find_service(urls: tuple[str, ...], api_key: str) -> EndpointPool:
            if settings.endpoints and (urls, api_key) == place(settings):
                named = settings.endpoints, kind
                service = self._service(
                    named, (urls, api_key), settings, most_refused, lambda: place(settings.follow())
                )
                service.follow()
                return service
            return self._service((urls, api_key), (urls, api_key), settings, most_refused)

        return find_service

    def _service(
        self,
        name: tuple[object, ...],
        place: Place,
        settings: Settings,
        most_refused: float,
        place_now: Callable[[], Place] | None = None,
    ) -> EndpointPool:
        identity = (*name, settings.max_connections, settings.max_retries, most_refused)
        service = self._services.get(identity)
        if service is None:
            ceiling = connection_ceiling(settings.max_connections)
            service = self._make_pool(*place, self._session, ceiling, settings.max_retries, place_now, most_refused)
            self._services[identity] = service
        return service

    async def close(self) -> None:
        """Write pending data to Redis, and close all other connections."""
        for budget in self._budgets.values():
            await budget.flush()
        for vectors in self._vectors.values():
            await vectors.flush()
        for service in self._services.values():
            service.close()
        await self._session.close()


def _place_of_reward_models(settings: Settings) -> Place:
    """Return the address of the environment's reward model."""
    return settings.reward_model_urls, settings.reward_model_api_key


def _place_of_judge(named: Named | None, settings: Settings) -> Place:
    """Return the address of a judge in the environment; an empty one for a judge with its own `base_url`."""
    if named is None:
        return settings.judge_urls, settings.judge_api_key
    return (named.addresses(settings), settings.judge_api_key) if named.is_below else ((), "")


def _or_embedded(name: str, remote: RemoteRule, settings: Settings) -> Scorer[Any]:
    """Return the rule in this process if `rewardstack-rules` is installed, else the remote one."""
    with importing:
        from rewardstack.scorers.embedded import EmbeddedRule, runs_here
    return EmbeddedRule(name, remote) if runs_here(settings) else remote


@cache_calls
def _warn_of_caps() -> None:
    log.warning(
        "%s and %s limit only this process's requests to model servers, not those of the reward server; "
        "set them there, too",
        *(MAX_REQUESTS, MAX_TOKENS),
    )
