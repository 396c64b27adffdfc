"""What makes scorers: one session, the services behind it, and a maker for each kind of leaf that a route can have."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from functools import cache as cache_calls
from functools import partial
from typing import Any, TypeVar

from rewardstack.cache.store import ResultCache
from rewardstack.core.descriptors import connection_ceiling
from rewardstack.pipeline.scorer import MakeScorer, Scorer, Sending
from rewardstack.routing.judges import NamedJudge
from rewardstack.routing.routes import EMBEDDING
from rewardstack.scorers.budget import MAX_REQUESTS, MAX_TOKENS, Budget, Meter, Spent, tell_nobody
from rewardstack.scorers.destination import FindService
from rewardstack.scorers.embedding import FIELDS as EMBEDDING_FIELDS
from rewardstack.scorers.embedding import Embedding, VectorStore
from rewardstack.scorers.judge import FIELDS as JUDGE_FIELDS
from rewardstack.scorers.judge import Judge, Named
from rewardstack.scorers.reward_server.relay import Relay, Relayable
from rewardstack.scorers.reward_server.reward_types import RewardTypes
from rewardstack.scorers.reward_server.scorer import RemoteRule
from rewardstack.settings import Settings
from rewardstack.transport.endpoint_pool import EndpointPool, Place
from rewardstack.transport.http import open_session
from rewardstack.transport.recording import Recording

log = logging.getLogger(__name__)
P = TypeVar("P")
Sent = tuple[Scorer[Any], Sending[Any]]
"""A scorer, and how samples are sent to it."""


class Backends:
    """Every service that scorers ask; made and used on one event loop.

    Args:
        spent: told what is spent on judges and embedding servers.
        make_pool: makes the service behind some URLs; takes the arguments of `EndpointPool`.
    """

    def __init__(self, spent: Spent = tell_nobody, make_pool: Callable[..., EndpointPool] = EndpointPool) -> None:
        self._spent = spent
        self._session = open_session()
        self._make_pool = make_pool
        self._services: dict[tuple[object, ...], EndpointPool] = {}
        self._types = RewardTypes()
        self._vectors: dict[ResultCache, VectorStore] = {}
        self._budgets: dict[tuple[ResultCache, str], Budget] = {}

    def scorers(
        self, settings: Settings, cache: ResultCache, tenant: str, judges: Mapping[str, NamedJudge]
    ) -> dict[str, MakeScorer]:
        """The makers of scorers, by kind of leaf.

        Args:
            settings: the servers, their keys, how long to wait for them.
            cache: whose Redis keeps vectors as well, and what a run has spent.
            tenant: separates those who may not see what vectors others have had made.
            judges: those that have a name, by it.
        """
        new_meter = partial(Meter, self._budget(cache, settings), told=self._spent)
        find_rules = self._finder(
            settings,
            "rule",
            lambda now: (now.reward_server_urls, now.reward_server_api_key),
            settings.reward_server_refused_timeout,
        )
        find_embedding = self._finder(
            settings,
            "embedding",
            lambda now: (now.embedding_urls, now.embedding_api_key),
            settings.embedding_refused_timeout,
        )

        def make_rule(name: str) -> Sent:
            rule = RemoteRule(name, settings, find_rules, self._types)
            return rule, Sending(rule.lane)

        def make_judge(name: str) -> Sent:
            named = Named(judges[name]) if name in judges else None
            own = settings if named is None else named.settings(settings)
            place = partial(_place_of_judge, named)
            find_judge = self._finder(settings, f"judge:{name}", place, settings.judge_refused_timeout)
            judge = Judge(own, find_judge, new_meter, named)
            sending = Sending(judge.lane, judge.order, judge.report)
            movable, urls = named is None, own.judge_urls
            return _or_relay(judge, sending, urls, name, JUDGE_FIELDS, settings, find_rules, movable=movable)

        def make_embedding(_: str) -> Sent:
            store, meter = self._vector_store(cache, settings), new_meter(Embedding.source)
            embedding = Embedding(settings, find_embedding, store, tenant, meter)
            sending: Sending[Any] = Sending(embedding.lane, report=embedding.report)
            urls = settings.embedding_urls
            return _or_relay(embedding, sending, urls, EMBEDDING, EMBEDDING_FIELDS, settings, find_rules)

        return {"rule": make_rule, "judge": make_judge, "embedding": make_embedding}

    def _vector_store(self, cache: ResultCache, settings: Settings) -> VectorStore:
        if cache not in self._vectors:
            self._vectors[cache] = VectorStore(cache.link, settings.cache_ttl, settings.cache_secret)
        return self._vectors[cache]

    def _budget(self, cache: ResultCache, settings: Settings) -> Budget:
        """What the run spends; one that is given other caps has still spent what it has."""
        which = cache, settings.run_id
        if which not in self._budgets:
            self._budgets[which] = Budget(cache.link, settings.run_id, settings.cache_ttl)
        self._budgets[which].cap(settings.max_requests, settings.max_tokens)
        return self._budgets[which]

    def _finder(
        self, settings: Settings, kind: str, place: Callable[[Settings], Place], refused_timeout: float | None
    ) -> FindService:
        """What finds services for scorers of one kind: the environment's own, and those of samples.

        Args:
            settings: in force.
            kind: names the environment's own of this kind.
            place: where that is, and its key.
            refused_timeout: seconds that refused connections are waited for at most; None for as long as any failure.
        """
        patience = math.inf if refused_timeout is None else refused_timeout

        @cache_calls  # every sample asks; `_services` keeps them all anyway
        def find_service(urls: tuple[str, ...], api_key: str) -> EndpointPool:
            if settings.endpoints and (urls, api_key) == place(settings):
                named = settings.endpoints, kind
                service = self._service(named, (urls, api_key), settings, patience, lambda: place(settings.follow()))
                service.follow()
                return service
            return self._service((urls, api_key), (urls, api_key), settings, patience)

        return find_service

    def _service(
        self,
        name: tuple[object, ...],
        place: Place,
        settings: Settings,
        patience: float,
        place_now: Callable[[], Place] | None = None,
    ) -> EndpointPool:
        identity = (*name, settings.max_connections, settings.max_retries, patience)
        service = self._services.get(identity)
        if service is None:
            ceiling = connection_ceiling(settings.max_connections)
            service = self._make_pool(*place, self._session, ceiling, settings.max_retries, place_now, patience)
            self._services[identity] = service
        return service

    async def close(self) -> None:
        """Writes what is on its way to the cache's Redis, and closes every connection but that."""
        for budget in self._budgets.values():
            await budget.flush()
        for vectors in self._vectors.values():
            await vectors.flush()
        for service in self._services.values():
            service.close()
        await self._session.close()


class RecordedBackends(Backends):
    """Services of one explanation's own; `recording` keeps what was said to them, and their replies.

    Args:
        spent: as of `Backends`.
        within: whose budgets are spent; None for budgets of its own.
    """

    def __init__(self, spent: Spent = tell_nobody, within: Backends | None = None) -> None:
        self.recording = Recording()
        super().__init__(spent, self.recording.pool)
        if within is not None:
            self._budgets = within._budgets


def _place_of_judge(named: Named | None, settings: Settings) -> Place:
    """Where the environment has a judge; no place for one that has an address of its own."""
    if named is None:
        return settings.judge_urls, settings.judge_api_key
    return (named.addresses(settings), settings.judge_api_key) if named.is_below else ((), "")


def _or_relay(
    scorer: Relayable[P],
    sending: Sending[P],
    urls: tuple[str, ...],
    data_source: str,
    fields: tuple[str, ...],
    settings: Settings,
    find_service: FindService,
    *,
    movable: bool = True,
) -> Sent:
    """`scorer` where its own service is known; else, where a reward server is, what that one has in its place."""
    if urls or not settings.reward_server_urls:
        return scorer, sending
    if settings.max_requests or settings.max_tokens:
        _warn_of_caps()
    relay = Relay(scorer, data_source, fields, settings, find_service, movable=movable)
    return relay, relay.sending(sending)


@cache_calls
def _warn_of_caps() -> None:
    log.warning(
        "%s and %s bound what this process asks of model servers, not what the reward server asks in its "
        "place; set them there",
        *(MAX_REQUESTS, MAX_TOKENS),
    )
