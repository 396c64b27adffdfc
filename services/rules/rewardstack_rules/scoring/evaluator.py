"""Score samples for endpoints and workers through the client's pipeline, with rules that run on this machine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Sequence
from concurrent.futures import Future, TimeoutError
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, TypeVar

from rewardstack.cache.store import ResultCache
from rewardstack.cause import Cause
from rewardstack.client import group_of, route_table
from rewardstack.core.event_loop import loop_thread, report_stretches, run, run_with_timeout
from rewardstack.core.misspellings import MAX_LENGTH, MAX_NAMES, did_you_mean
from rewardstack.core.sample_log import sample_log
from rewardstack.core.steps import Explanation, Trace
from rewardstack.errors import BudgetError, RewardstackError, RouteError, ScoringError, UnknownSourceError
from rewardstack.pipeline.pipeline import Pipeline
from rewardstack.pipeline.scorer import MakeScorer, Scorer
from rewardstack.routing.composite import part_routes
from rewardstack.routing.routes import CODE, RULE_PREFIX, Leaf
from rewardstack.routing.syntax import definition
from rewardstack.score import Request, Score
from rewardstack.scorers.factory import Backends
from rewardstack.scorers.judge import JudgeConfig, check_urls
from rewardstack.scorers.names import KNOWN_FIELDS, warn_of_misspelled_fields
from rewardstack.scorers.reward_model import key_of_model
from rewardstack.scorers.service_health import ServiceHealth, service_health
from rewardstack.settings import MAX_REQUESTS, MAX_TOKENS
from rewardstack.settings import Settings as ClientSettings
from rewardstack_rules.functions.registry import Registry
from rewardstack_rules.scoring.cancellation import AbandonedError, IsWanted, WaitContext, always_wanted
from rewardstack_rules.scoring.counters import NO_COUNTERS, Counters
from rewardstack_rules.scoring.local import LocalRules
from rewardstack_rules.scoring.pools import Pool
from rewardstack_rules.scoring.rewards import RewardReader
from rewardstack_rules.scoring.shared_probe import SharedProbe
from rewardstack_rules.scoring.task import make_task
from rewardstack_rules.settings import Settings

PROBE_SECONDS = 5.0
"""Timeout of the probe of isolated processes, in seconds."""
PROBE_AGE_SECONDS = 1.0
"""Age, in seconds, at which the result of a probe expires, so that many requests cost one probe per second."""
PROBE_TENANT = "readiness probe"
"""Tenant of the probe. No client has this tenant, so isolated processes that serve a client never run the probe."""
STATS_SECONDS = 2.0
"""Timeout for reading the counts of all supervisors, in seconds."""
TENANTS = 1024
"""Maximum number of tenants whose pipelines are cached. An evicted tenant gets a new pipeline."""
FAST_SECONDS = 0.1
"""Seconds after which work counts as slow."""
CHECK_SECONDS = 1.0
"""Seconds between two checks whether a caller still waits for slow work."""
T = TypeVar("T")

log = logging.getLogger(__name__)


class Evaluator:
    """Scores samples for callers in any thread. The work runs on the event loop of the `rewardstack` client.

    Args:
        settings: settings of the server.
        registry: rules of the server.
        counters: counters for scoring; by default nothing is counted.

    Attributes:
        client_settings: settings of the services that the server calls: judges, cache and others.

    Raises:
        ConfigError: a setting or a route that the pipeline reads is malformed.
    """

    def __init__(self, settings: Settings, registry: Registry, counters: Counters = NO_COUNTERS) -> None:
        self._registry = registry
        self._own_fields = {name for rule in registry for name in rule.fields}.difference(KNOWN_FIELDS)
        self._counters = counters
        report_stretches(counters.count_stretch)
        self._rules = LocalRules(settings, registry, counters)
        self.client_settings = ClientSettings.from_env()
        self._routes = route_table(self.client_settings)
        self._rewards = RewardReader(self._routes, registry)
        self._check_judges()
        self._check_rules()
        self._shared: tuple[Backends, ResultCache] | None = None
        self._pipeline = lru_cache(TENANTS)(self._make_pipeline)
        self._isolation_probe = SharedProbe(self._probe_isolation, PROBE_AGE_SECONDS)

    def score(
        self,
        requests: Sequence[Request],
        *,
        limit: float | None,
        tenant: str,
        is_wanted: IsWanted = always_wanted,
        while_waiting: WaitContext = nullcontext,
    ) -> list[Score]:
        """Return one score for each request, in order. The error policies of routes apply.

        Even with the policy `raise`, a sample that cannot be scored raises no exception; its score has no value.

        Args:
            requests: the samples.
            limit: seconds for which the caller still waits; None for no limit.
            tenant: owner of the samples; tenants do not see each other's results.
            is_wanted: called periodically; when it returns False, the work is dropped.
            while_waiting: returns a context manager that is entered if the work takes longer than `FAST_SECONDS`. If
                entering it raises, the work is dropped.

        Raises:
            AbandonedError: the work was dropped, because `is_wanted` returned False.
            ConfigError: a source is unknown, or a setting is malformed; nothing was scored.
            BudgetError: the run's budget for models is used up; the error has the scores of all samples.
        """
        if limit is not None and limit <= 0:
            why = "dropped: the deadline had passed when the request arrived"
            scores = [Score.failed(why, cause=Cause.DEADLINE_PASSED)] * len(requests)
        else:
            warn_of_misspelled_fields(filter(self._may_misspell, requests))
            try:
                scores = run(self._score(requests, limit, tenant), partial(_wait_for, is_wanted, while_waiting))
            except BudgetError as error:
                self._count(requests, error.scores, tenant)
                raise
        self._count(requests, scores, tenant)
        return scores

    def _count(self, requests: Sequence[Request], scores: Sequence[Score], tenant: str) -> None:
        is_counted = self._counters is not NO_COUNTERS
        path = self.client_settings.sample_log
        if not (is_counted or path):
            return
        labels = self._rewards.labels(requests, scores)
        if is_counted:
            self._counters.count_scores(scores, labels)
            self._counters.count_rewards(self._rewards.rewards(requests, scores, labels, tenant))
        if path:
            file = sample_log(path, self.client_settings.sample_log_share)
            file.write(requests, scores, labels, tenant)

    def explain(
        self,
        request: Request,
        *,
        limit: float | None,
        tenant: str,
        rescore: bool,
        is_wanted: IsWanted = always_wanted,
        while_waiting: WaitContext = nullcontext,
    ) -> Explanation:
        """Score one sample and return the explanation. The arguments are those of `score` and `Trace`.

        Raises:
            AbandonedError: the work was dropped, because `is_wanted` returned False.
            ConfigError: no route accepts the sample's source.
        """
        warn_of_misspelled_fields(filter(self._may_misspell, [request]))
        return run(self._explain(request, limit, tenant, rescore=rescore), partial(_wait_for, is_wanted, while_waiting))

    async def _explain(self, request: Request, limit: float | None, tenant: str, *, rescore: bool) -> Explanation:
        shared, cache = self._parts()
        backends = Backends(self._counters.count_usage, records_requests=True, shared_with=shared)
        try:
            pipeline = self._new_pipeline(backends, cache, tenant)
            return await pipeline.explain(request, Trace(backends.recording.take, rescore=rescore), limit=limit)
        finally:
            await backends.close()

    def get_source(self, reward_type: str) -> str:
        """Return the `data_source` for a reward type, which is the name of a reward function or a route.

        Raises:
            UnknownSourceError: no function or route has this name; the message lists the known ones.
        """
        if reward_type in self._registry:
            return RULE_PREFIX + reward_type
        try:
            self._routes.find(reward_type)
        except UnknownSourceError as error:
            known = sorted({rule.name for rule in self._registry} | set(self._routes.names()))
            meant = did_you_mean(reward_type, known)
            raise UnknownSourceError(
                f"reward_type {reward_type!r} is not known; {meant}available: {', '.join(known)}", "reward_type"
            ) from error
        return reward_type

    def check_source(self, data_source: str) -> None:
        """Check that a route or rule scores this `data_source`; raise UnknownSourceError if none does."""
        route = self._routes.find(data_source)
        if isinstance(route.target, Leaf) and route.target.kind == "rule":
            self._registry.get(route.leaf_target(data_source))

    def check_settings(self, data_source: str) -> None:
        """Raise ConfigError if a setting for samples with this `data_source` is missing, such as a judge's URL."""
        run(self._check_settings(data_source))

    async def _check_settings(self, data_source: str) -> None:
        self._pipeline("").check_settings(data_source)

    def group_of(self, request: Request) -> str | None:
        """Return the group of a sample if its judge compares the members of a group; None for other samples."""
        return group_of(self._routes, request)

    def may_wait(self, sources: Iterable[str]) -> bool:
        """Return whether a sample of one of these sources may wait for a model server, or run a program."""
        return any(map(self._may_wait, set(sources)))

    def _may_wait(self, source: str) -> bool:
        try:
            route = self._routes.find(source)
        except UnknownSourceError:  # scoring reports the unknown source
            return False
        if not isinstance(route.target, Leaf):
            return self.may_wait(part_routes(route.target))
        return route.target.kind != "rule" or route.leaf_target(source) == CODE

    def _check_judges(self) -> None:
        """Check keys and URLs of judges, and keys of reward models; raise SettingsError if one is invalid."""
        check_urls(self.client_settings)
        for judge in self._routes.judges.values():
            named = JudgeConfig(judge)
            check_urls(named.settings(self.client_settings), named.url_setting)
        for model in self._routes.reward_models.values():
            key_of_model(model, self.client_settings)

    def _check_rules(self) -> None:
        """Raise RouteError if a route names an unknown reward function."""
        for route in self._routes:
            try:
                for part in () if isinstance(route.target, Leaf) else part_routes(route.target):
                    self.check_source(part)
            except UnknownSourceError as error:
                raise RouteError(f"route {route.name!r}: {error}", route.name) from error

    def is_isolation_responsive(self) -> bool:
        """Return whether the isolated processes completed a recent task. All callers share the result of one probe."""
        return self._isolation_probe.get()

    def _probe_isolation(self) -> bool:
        """Return whether a process of each pool completes a task.

        In the pool for programs, probe only the supervisor, because all processes of that pool may be busy for minutes.
        """
        probe = make_task(self._registry.get("exact_match"), "1", ["1"], {})
        clients = [client for pool, client in self._rules.clients.items() if pool is not Pool.CODE]
        work = _gather([client.run(probe, PROBE_SECONDS, tenant=PROBE_TENANT) for client in clients])
        try:
            results = run(run_with_timeout(PROBE_SECONDS, work))
            if self.runs_code:
                self.isolation_stats(code=True)
        except (RewardstackError, asyncio.TimeoutError):
            log.exception("isolated processes do not answer")
            return False
        return not any("error" in result for result in results)

    @property
    def runs_code(self) -> bool:
        """Whether isolated processes of this server run programs."""
        return Pool.CODE in self._rules.clients

    def isolation_stats(self, *, code: bool = False) -> dict[str, int]:
        """Return the counts of `Scheduler.stats`, summed over pools of isolated processes.

        Args:
            code: whether to return the counts of the pool for programs; otherwise return those of the other pools.

        Raises:
            UnreachableError: a supervisor died, or could not be started.
            asyncio.TimeoutError: a supervisor did not answer in time.
        """
        clients = self._rules.clients.items()
        replies = _gather([client.stats() for pool, client in clients if (pool is Pool.CODE) == code])
        counts = run(run_with_timeout(STATS_SECONDS, replies))
        return {name: sum(count[name] for count in counts) for name in counts[0] if name != "pid"}

    def service_health(self) -> list[ServiceHealth]:
        """Return the health of the judges, the reward models and the embedding server."""
        return run(service_health(self.client_settings.with_current_servers(), self._routes))

    @property
    def run_limits(self) -> dict[str, int]:
        """Limits of a run's requests and tokens, by name of the setting; 0 for no limit."""
        return {MAX_REQUESTS: self.client_settings.max_requests, MAX_TOKENS: self.client_settings.max_tokens}

    @property
    def definitions(self) -> dict[str, dict[str, Any]]:
        """The definitions of routes, by pattern."""
        return {route.pattern: definition(route) for route in self._routes}

    def _may_misspell(self, request: Request) -> bool:
        """Return whether to check the names of a sample's fields for misspelled options of built-in functions.

        Samples with a field of a custom function are not checked, because such a field can be similar to an option.
        Samples with many or long names are not checked either, because the check keeps names in memory.
        """
        extra = request.extra_info
        if not isinstance(extra, dict) or len(extra) > MAX_NAMES or len("".join(extra)) > MAX_NAMES * MAX_LENGTH:
            return False
        return self._own_fields.isdisjoint(extra)

    async def _score(self, requests: Sequence[Request], limit: float | None, tenant: str) -> list[Score]:
        try:
            return await self._pipeline(tenant).score(requests, limit=limit, strict=False)
        except ScoringError as error:  # the policy `raise` does not apply to remote callers
            return error.scores

    def _make_pipeline(self, tenant: str) -> Pipeline:
        """Create a tenant's pipeline. Pipelines share connections, but never join each other's calls in flight."""
        return self._new_pipeline(*self._parts(), tenant)

    def _new_pipeline(self, backends: Backends, cache: ResultCache, tenant: str) -> Pipeline:
        scorers, transcript = self._scorers(backends, tenant), self.client_settings.transcript
        return Pipeline(self._routes, scorers, cache, tenant, transcript=transcript, may_extend=False)

    def _parts(self) -> tuple[Backends, ResultCache]:
        """Return the backends and the cache that all pipelines share."""
        if self._shared is None:
            counters = self._counters
            cache = ResultCache(
                self.client_settings, counters.count_cache_write_errors, counters.count_rejected_cache_values
            )
            self._shared = Backends(counters.count_usage), cache
            loop_thread().closing += [resource.close for resource in self._shared]
        return self._shared

    def _scorers(self, backends: Backends, tenant: str) -> dict[str, MakeScorer]:
        """Return the factories of a tenant's scorers."""
        settings = replace(self.client_settings, reward_server_urls=())  # do not call other reward servers
        # A group must not wait for members that arrive in other requests: each member would block a thread of this
        # server while it waits.
        scorers = backends.scorers(settings, self._parts()[1], tenant, self._routes, waits_for_groups=False)

        def make_rule(name: str) -> Scorer[Any]:
            has_sandbox = name == CODE and settings.code_sandbox_urls
            return scorers["rule"](name) if has_sandbox else self._rules.scorer(name, tenant)

        return {**scorers, "rule": make_rule}


def _wait_for(is_wanted: IsWanted, while_waiting: WaitContext, work: Future[T]) -> T:
    """Wait for work and return its result; raise AbandonedError once no caller waits for it any more."""
    with suppress(TimeoutError):
        return work.result(FAST_SECONDS)
    with while_waiting():
        while not work.done():
            with suppress(TimeoutError):
                return work.result(CHECK_SECONDS)
            if not is_wanted():
                raise AbandonedError
    return work.result()


async def _gather(calls: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    return await asyncio.gather(*calls)
