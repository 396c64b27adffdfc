"""Create the scorers of each kind, and the HTTP session, servers and budgets that they share.

Except for `reward_server`, the modules of a kind of scorer are imported when its first scorer is created.
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
from rewardstack.core.descriptors import max_connections
from rewardstack.core.imports import import_lock
from rewardstack.pipeline.scorer import MakeScorer, Scorer
from rewardstack.routing.judges import NamedJudge
from rewardstack.routing.reward_models import RewardModel
from rewardstack.routing.routes import CODE, RouteTable
from rewardstack.scorers.destination import FindPool
from rewardstack.scorers.names import EMBEDDING_FIELDS, JUDGE_FIELDS
from rewardstack.scorers.reward_server import RemoteRule, RewardServers
from rewardstack.settings import MAX_REQUESTS, MAX_TOKENS, Settings
from rewardstack.transport.discovery import Discovery
from rewardstack.transport.http import open_session
from rewardstack.transport.servers import Location, Servers
from rewardstack.transport.service import Service, find_service

if TYPE_CHECKING:
    from rewardstack.scorers.budget import Budget, NewMeter, OnUsage
    from rewardstack.scorers.embedding import Embedding, VectorStore
    from rewardstack.scorers.judge import JudgeConfig
    from rewardstack.scorers.rate import RateLimit
    from rewardstack.scorers.relay import Relay, Relayable

CODE_TIMEOUT = 600.0
"""Minimum timeout of the `code` rule, in seconds. It is long, because a batch of programs can be queued for minutes."""

log = logging.getLogger(__name__)


class Backends:
    """Creates scorers; owns the HTTP session and the servers that they share; belongs to one event loop.

    Args:
        on_usage: called when a scorer sends a request to a model server, and when a reply reports tokens (`OnUsage`).
            None for no callback.
        records_requests: whether to record requests and replies; only then there is an attribute `recording`.
        shared_with: another `Backends`, whose budgets and rate limits this object uses, too; None to create new ones.
    """

    def __init__(
        self, on_usage: OnUsage | None = None, *, records_requests: bool = False, shared_with: Backends | None = None
    ) -> None:
        self._on_usage = on_usage
        self._session = open_session()
        self._find_service: Callable[[str], Service] = partial(find_service, self._session)
        if records_requests:
            with import_lock:
                from rewardstack.transport.recording import Recording, RecordingService
            self.recording = recording = Recording()
            self._find_service = lambda url: RecordingService(recording, find_service(self._session, url))
        self._pools: dict[tuple[object, ...], Servers] = {}
        self._types: Discovery[Hashable, Any] = Discovery()
        self._vectors: dict[ResultCache, VectorStore] = {}
        self._budgets: dict[tuple[ResultCache, str], Budget] = {} if shared_with is None else shared_with._budgets
        self._rate_limits: dict[tuple[str, int, int], RateLimit] = (
            {} if shared_with is None else shared_with._rate_limits
        )

    def scorers(
        self, settings: Settings, cache: ResultCache, tenant: str, routes: RouteTable, *, waits_for_groups: bool = True
    ) -> dict[str, MakeScorer]:
        """Return a function that creates a scorer by name, for each kind: `rule`, `judge`, `embedding`, `reward_model`.

        Args:
            settings: the settings, with servers, keys and timeouts.
            cache: the result cache; its Redis also stores the vectors of texts and the usage of the run.
            tenant: cache namespace of the caller.
            routes: the routes, which define judges and reward models.
            waits_for_groups: whether judges that compare groups wait for group members that arrive in other calls.
        """
        return {
            "rule": partial(self._rule, settings),
            "judge": partial(self._judge, settings, cache, routes.judges, waits_for_groups),
            "embedding": partial(self._embedding_or_relay, settings, cache, tenant),
            "reward_model": partial(self._reward_model, settings, cache, routes.reward_models),
        }

    def _rule(self, settings: Settings, name: str) -> Scorer[Any]:
        is_relayed = bool(settings.reward_server_urls)
        is_in_sandbox = name == CODE and bool(settings.code_sandbox_urls) and not is_relayed
        servers = self._sandbox_servers(settings) if is_in_sandbox else self._reward_servers(settings)
        min_timeout = CODE_TIMEOUT if name == CODE else 0.0
        remote = RemoteRule(name, max(settings.reward_server_timeout, min_timeout), servers)
        return remote if is_relayed or is_in_sandbox else _embedded_or_remote(name, remote, settings)

    def _judge(
        self, settings: Settings, cache: ResultCache, judges: Mapping[str, NamedJudge], waits: bool, name: str
    ) -> Scorer[Any]:
        """Return the judge, wrapped in a `Relay` if the judge has no URL and a reward server is set."""
        with import_lock:
            from rewardstack.scorers.judge import GroupJudge, Judge, JudgeConfig
        named = JudgeConfig(judges[name]) if name in judges else None
        judge_settings = settings if named is None else named.settings(settings)
        find = self._pool_finder(
            settings, f"judge:{name}", partial(_judge_place, named), settings.judge_refused_timeout
        )
        rate_limit = None if named is None else self._rate_limit(name, *named.rate_limits)
        pointwise = Judge(judge_settings, find, self._new_meter(cache, settings), named, rate_limit)
        judge: Relayable[Any] = pointwise
        if named is not None and named.comparison is not None:
            judge = GroupJudge(pointwise, named, waits=waits)
        if judge_settings.judge_urls or not settings.reward_server_urls:
            return judge
        return self._relay(settings, judge, name, JUDGE_FIELDS, allows_server_url=named is None)

    def _embedding_or_relay(self, settings: Settings, cache: ResultCache, tenant: str, name: str) -> Scorer[Any]:
        embedding = self._embedding(settings, cache, tenant)
        if settings.embedding_urls or not settings.reward_server_urls:
            return embedding
        return self._relay(settings, embedding, name, EMBEDDING_FIELDS, allows_server_url=True)

    def _reward_model(
        self, settings: Settings, cache: ResultCache, models: Mapping[str, RewardModel], name: str
    ) -> Scorer[Any]:
        """Return a reward model's scorer, wrapped in a `Relay` if the model has no URL and a reward server is set."""
        with import_lock:
            from rewardstack.scorers.reward_model import READ_FIELDS, RewardModelScorer, urls_of_model
        find = self._pool_finder(settings, f"reward_model:{name}", _reward_model_place, None)
        scorer = RewardModelScorer(models[name], settings, find, self._new_meter(cache, settings))
        if urls_of_model(models[name], settings) or not settings.reward_server_urls:
            return scorer
        relay = self._relay(settings, scorer, name, READ_FIELDS, allows_server_url=False)
        relay.is_shaped = True  # the reward server's route already applies scale, shift and clip
        return relay

    def _relay(
        self,
        settings: Settings,
        scorer: Relayable[Any],
        source: str,
        fields: tuple[str, ...],
        *,
        allows_server_url: bool,
    ) -> Relay[Any]:
        """Return a scorer that sends samples to the reward server, for a service whose URL is not set here."""
        with import_lock:
            from rewardstack.scorers.relay import Relay
        if settings.max_requests or settings.max_tokens:
            _warn_of_limits()
        return Relay(scorer, source, fields, self._reward_servers(settings), allows_server_url=allows_server_url)

    def _reward_servers(self, settings: Settings) -> RewardServers:
        find = self._pool_finder(
            settings,
            "rule",
            lambda now: (now.reward_server_urls, now.reward_server_api_key),
            settings.reward_server_refused_timeout,
        )
        return RewardServers(settings, find, self._types)

    def _sandbox_servers(self, settings: Settings) -> RewardServers:
        """Return a client of the reward servers in `code_sandbox_urls`, which only run programs (`code` rewards)."""
        urls, key = settings.code_sandbox_urls, settings.code_sandbox_api_key
        sandbox_settings = replace(settings, reward_server_urls=urls, reward_server_api_key=key, endpoints="")
        find = self._pool_finder(
            sandbox_settings, "code", lambda now: (now.code_sandbox_urls, now.code_sandbox_api_key), None
        )
        return RewardServers(sandbox_settings, find, self._types)

    def reward_service(self, urls: tuple[str, ...], api_key: str, settings: Settings) -> Servers:
        """Return the pool of reward servers with these base URLs and this key."""
        return self._reward_servers(settings).find(urls, api_key)

    def _embedding(self, settings: Settings, cache: ResultCache, tenant: str) -> Embedding:
        with import_lock:
            from rewardstack.scorers.embedding import Embedding
        find = self._pool_finder(
            settings,
            "embedding",
            lambda now: (now.embedding_urls, now.embedding_api_key),
            settings.embedding_refused_timeout,
        )
        meter = self._new_meter(cache, settings)(Embedding.source)
        return Embedding(settings, find, self._vector_store(cache, settings), tenant, meter)

    def _vector_store(self, cache: ResultCache, settings: Settings) -> VectorStore:
        if cache not in self._vectors:
            with import_lock:
                from rewardstack.scorers.embedding import VectorStore
            self._vectors[cache] = VectorStore(cache.link, settings.cache_ttl, settings.cache_secret)
        return self._vectors[cache]

    def _rate_limit(self, judge: str, requests: int, tokens: int) -> RateLimit | None:
        """Return the rate limit that all scorers of a judge share; None for no limit."""
        if not (requests or tokens):
            return None
        with import_lock:
            from rewardstack.scorers.rate import RateLimit
        key = judge, requests, tokens
        if key not in self._rate_limits:
            self._rate_limits[key] = RateLimit(requests, tokens)
        return self._rate_limits[key]

    def _new_meter(self, cache: ResultCache, settings: Settings) -> NewMeter:
        """Return a function that creates meters for the run's budget.

        The first call for a run creates the budget. Every call sets the limits in `settings`; none resets the usage.
        """
        with import_lock:
            from rewardstack.scorers.budget import Budget, Meter, ignore_usage
        key = cache, settings.run_id
        if key not in self._budgets:
            self._budgets[key] = Budget(cache.link, settings.run_id, settings.cache_ttl)
        self._budgets[key].set_limits(settings.max_requests, settings.max_tokens)
        return partial(Meter, self._budgets[key], on_usage=self._on_usage or ignore_usage)

    def _pool_finder(
        self, settings: Settings, kind: str, place: Callable[[Settings], Location], refused_timeout: float | None
    ) -> FindPool:
        """Return a function that returns the `Servers` for URLs and an API key.

        The URLs are from the environment, the routes file or a sample. The first call with given URLs and key creates
        the pool. If `settings.endpoints` names a file, the pool for the file's URLs is updated when the file changes.

        Args:
            settings: the current settings.
            kind: the service, such as `judge:small`; identifies the pool if its URLs can change.
            place: returns the URLs and the key of this service, given the settings.
            refused_timeout: maximum time to wait while connections are refused, in seconds; None for no separate limit.
        """
        max_refused = math.inf if refused_timeout is None else refused_timeout

        @cache_calls  # called for every sample; an unbounded cache is fine, because `_pools` keeps all pools anyway
        def find_pool(urls: tuple[str, ...], api_key: str) -> Servers:
            if settings.endpoints and (urls, api_key) == place(settings):
                named = settings.endpoints, kind
                pool = self._pool(
                    named, (urls, api_key), settings, max_refused, lambda: place(settings.with_current_servers())
                )
                pool.update_location()
                return pool
            return self._pool((urls, api_key), (urls, api_key), settings, max_refused)

        return find_pool

    def _pool(
        self,
        name: tuple[object, ...],
        place: Location,
        settings: Settings,
        max_refused: float,
        current_place: Callable[[], Location] | None = None,
    ) -> Servers:
        key = (*name, settings.max_connections, settings.max_retries, max_refused)
        pool = self._pools.get(key)
        if pool is None:
            ceiling = max_connections(settings.max_connections)
            pool = Servers(*place, self._find_service, ceiling, settings.max_retries, current_place, max_refused)
            self._pools[key] = pool
        return pool

    async def close(self) -> None:
        """Write pending usage and vectors to Redis, and close the HTTP connections."""
        for budget in self._budgets.values():
            await budget.flush()
        for vectors in self._vectors.values():
            await vectors.flush()
        for pool in self._pools.values():
            pool.close()
        await self._session.close()


def _reward_model_place(settings: Settings) -> Location:
    """Return the URLs and the key that the environment sets for reward models."""
    return settings.reward_model_urls, settings.reward_model_api_key


def _judge_place(named: JudgeConfig | None, settings: Settings) -> Location:
    """Return the URLs and the key that the environment sets for a judge; both are empty if the judge has a `base_url`.

    Args:
        named: the judge if a routes file defines it; None for the environment's judge.
        settings: the settings.
    """
    if named is None:
        return settings.judge_urls, settings.judge_api_key
    return (named.urls(settings), settings.judge_api_key) if named.has_environment_url else ((), "")


def _embedded_or_remote(name: str, remote: RemoteRule, settings: Settings) -> Scorer[Any]:
    """Return a scorer that runs the rule on this machine if `is_rule_local`, else `remote`."""
    with import_lock:
        from rewardstack.scorers.embedded import EmbeddedRule, is_rule_local
    return EmbeddedRule(name, remote) if is_rule_local(settings) else remote


@cache_calls
def _warn_of_limits() -> None:
    log.warning(
        "%s and %s limit only this process's requests to model servers, not those of the reward server; "
        "set them on the reward server, too",
        *(MAX_REQUESTS, MAX_TOKENS),
    )
