"""Run rules in a reward server, a worker, or a trainer that uses no reward server."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from functools import lru_cache
from typing import Any

from rewardstack.core.lru import LruCache
from rewardstack.errors import ConfigError
from rewardstack.pipeline.scorer import Scorer
from rewardstack.settings import warn_of_misspelled
from rewardstack_rules.functions.builtin.code import DISABLED
from rewardstack_rules.functions.catalog import load_registry
from rewardstack_rules.functions.registry import Registry
from rewardstack_rules.isolation.client import IsolationClient
from rewardstack_rules.scoring.counters import NO_COUNTERS, Counters
from rewardstack_rules.scoring.pools import Pool, enabled_pools, isolation_config, sample_seconds
from rewardstack_rules.scoring.rule import (
    MAX_CACHED_VERDICTS,
    InlineRule,
    IsolatedRule,
    Isolation,
    ProgramRule,
    Verdicts,
    VerifierRule,
)
from rewardstack_rules.settings import RULE_SETTINGS, RuleSettings

MAX_TRAINER_PROCESSES = 8
"""Maximum number of isolated processes per trainer process, unless VERIFY_PROCESSES is set.

A node may run one trainer process per GPU, so one isolated process per CPU for each trainer would be too many.
"""


class LocalRules:
    """The rules of one process, and clients of the isolated processes that run some of them.

    An isolated process is started only when a sample needs it.

    Args:
        settings: settings for rules.
        registry: the rules.
        counters: counters for scoring; by default nothing is counted.
    """

    def __init__(self, settings: RuleSettings, registry: Registry, counters: Counters = NO_COUNTERS) -> None:
        self._registry = registry
        self._counters = counters
        self._by_fusion = settings.code is not None and bool(settings.code.fusion_urls)
        self._verdicts: Verdicts = LruCache(MAX_CACHED_VERDICTS)
        needed = {Pool.BUILT_IN, *map(Pool.of, registry)}
        self.clients = {
            pool: IsolationClient(isolation_config(settings, pool)) for pool in enabled_pools(settings, needed)
        }
        """Clients of the isolated processes that the rules need, by pool."""
        self._isolations = {
            pool: Isolation(client, sample_seconds(settings, pool)) for pool, client in self.clients.items()
        }

    def scorer(self, name: str, tenant: str = "") -> Scorer[Any]:
        """Return a new scorer for a rule.

        Args:
            name: name of the rule.
            tenant: owner of the samples. Only processes of the pool for programs get samples of several tenants.

        Raises:
            UnknownSourceError: there is no such rule; the message lists the known rules.
            ConfigError: the rule runs programs, and the settings do not allow this process to run any.
        """
        rule = self._registry.get(name)
        pool = Pool.of(rule)
        if pool not in self._isolations:
            raise ConfigError(DISABLED, "CODE")
        isolation = self._isolations[pool]
        if pool is Pool.CODE:
            return ProgramRule(rule, isolation, self._counters, tenant, by_fusion=self._by_fusion)
        if rule.verifier is not None:
            return VerifierRule(rule, rule.verifier, isolation, self._verdicts, self._counters, tenant)
        kind = IsolatedRule if rule.isolated else InlineRule
        return kind(rule, isolation, tenant)

    async def close(self) -> None:
        """Close the connections to the isolated processes; a later sample opens new ones."""
        for client in self.clients.values():
            client.close()
        for _ in range(2):  # the first iteration of the event loop aborts a connection, the second closes its socket
            await asyncio.sleep(0)


@lru_cache(maxsize=1)
def embedded_rules() -> LocalRules:
    """Return the rules of a trainer's process. The first call reads the settings from the environment.

    Raises:
        SettingsError: a variable is malformed, or a file of REWARD_FUNCTIONS cannot be loaded.
        RouteError: two functions have the same name, or a parameter of a function cannot be bound.
    """
    settings = RuleSettings.from_env()
    warn_of_misspelled(RULE_SETTINGS)
    if not os.environ.get("VERIFY_PROCESSES"):
        settings = replace(settings, verify_processes=min(settings.verify_processes, MAX_TRAINER_PROCESSES))
    return LocalRules(settings, load_registry(settings.function_files, settings.code))
