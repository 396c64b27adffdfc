"""The factory of scorers: creates a scorer of each kind, and the connections that scorers share.

The modules of each kind of scorer are imported on first use.
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
"""Minimum timeout of the function that runs programs, in seconds; a batch of programs can be queued for minutes."""

log = logging.getLogger(__name__)


class Backends:
    """Creates scorers; owns the HTTP session and the endpoint pools that they share; belongs to one event loop.

    Args:
        spent: callback that receives each change of the usage of model servers; None for none.
        recorded: whether the attribute `recording` records requests and replies.
        within: backends with which budgets and rate limits are shared; None to share none.
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

    def scorers(
        self, settings: Settings, cache: ResultCache, tenant: str, routes: RouteTable, *, waits_for_groups: bool = True
    ) -> dict[str, MakeScorer]:
        """Return a constructor for each kind of scorer: `rule`, `judge`, `embedding` and `reward_model`.

        Args:
            settings: the settings, with servers, keys and timeouts.
            cache: the result cache; vectors and the usage of a run are stored in the same Redis.
            tenant: cache namespace of the caller.
            routes: the routes, which define judges and reward models.
            waits_for_groups: whether judges wait for members of a group that arrive in other calls.
        """
        return {
            "rule": partial(self._rule, settings),
            "judge": partial(self._judge, settings, cache, routes.judges, waits_for_groups),
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
        self, settings: Settings, cache: ResultCache, judges: Mapping[str, NamedJudge], waits: bool, name: str
    ) -> Scorer[Any]:
        with importing:
            from rewardstack.scorers.judge import GroupJudge, Judge, Named
        named = Named(judges[name]) if name in judges else None
        own = settings if named is None else named.settings(settings)
        find = self._finder(settings, f"judge:{name}", partial(_place_of_judge, named), settings.judge_refused_timeout)
        rate = None if named is None else self._rate(name, *named.per_minute)
        alone = Judge(own, find, self._new_meter(cache, settings), named, rate)
        judge: Relayable[Any] = alone
        if named is not None and named.comparison is not None:
            judge = GroupJudge(alone, named, waits=waits)
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
        relay.is_shaped = True  # the server's own route of this name applies the shaping
        return relay

    def _relay(
        self, settings: Settings, scorer: Relayable[Any], source: str, fields: tuple[str, ...], *, movable: bool
    ) -> Relay[Any]:
        """Return a scorer that delegates to the reward server, for a service without a URL in the environment."""
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
        urls, key = settings.code_sandbox_urls, settings.code_sandbox_api_key
        own = replace(settings, reward_server_urls=urls, reward_server_api_key=key, endpoints="")
        find = self._finder(own, "code", lambda now: (now.code_sandbox_urls, now.code_sandbox_api_key), None)
        return RewardServers(own, find, self._types)

    def reward_service(self, urls: tuple[str, ...], api_key: str, settings: Settings) -> EndpointPool:
        """Return the pool of reward servers with these base URLs and this key."""
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
        """Return the rate limit of a judge, shared by all its scorers of these backends; None for no limit."""
        if not (requests or tokens):
            return None
        with importing:
            from rewardstack.scorers.rate import RateLimit
        which = judge, requests, tokens
        if which not in self._rates:
            self._rates[which] = RateLimit(requests, tokens)
        return self._rates[which]

    def _new_meter(self, cache: ResultCache, settings: Settings) -> NewMeter:
        """Return a constructor of meters; set the limits of the run's budget, without a reset of its usage."""
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
        """Return a function that finds the endpoint pool for URLs and a key, from the environment or from a sample.

        Args:
            settings: the current settings.
            kind: the kind of service, such as `judge:small`, which identifies the environment's pool.
            place: returns the environment's URLs and key of this service from settings.
            refused_timeout: maximum time to wait while connections are refused, in seconds; None for no separate limit.
        """
        most_refused = math.inf if refused_timeout is None else refused_timeout

        @cache_calls  # called for every sample; `_services` keeps all pools anyway
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
        """Write pending usage and vectors to Redis, and close the HTTP connections."""
        for budget in self._budgets.values():
            await budget.flush()
        for vectors in self._vectors.values():
            await vectors.flush()
        for service in self._services.values():
            service.close()
        await self._session.close()


def _place_of_reward_models(settings: Settings) -> Place:
    """Return the URLs and the key of the environment's reward model."""
    return settings.reward_model_urls, settings.reward_model_api_key


def _place_of_judge(named: Named | None, settings: Settings) -> Place:
    """Return the URLs and the key of a judge in the environment; both are empty for a judge with its own `base_url`."""
    if named is None:
        return settings.judge_urls, settings.judge_api_key
    return (named.addresses(settings), settings.judge_api_key) if named.is_below else ((), "")


def _or_embedded(name: str, remote: RemoteRule, settings: Settings) -> Scorer[Any]:
    """Return a scorer that runs the rule in this process if `runs_here` says so, else `remote`."""
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
