"""Configure and start the pools of isolated processes in which a server or trainer runs its rules.

Isolated processes run `scoring.task.execute`, or `code.runner.execute` for programs. Each pool loads its custom
functions itself. So the process that starts a pool need not load the functions, and a pool that starts after a file
has changed loads the new version.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import TYPE_CHECKING

from rewardstack_rules.code import NETWORK, VARIABLES
from rewardstack_rules.isolation.config import MIB, IsolationConfig
from rewardstack_rules.isolation.launch import replace_handles, start_supervisor, supervisor_handle
from rewardstack_rules.isolation.process import hide_memory
from rewardstack_rules.settings import RuleSettings

if TYPE_CHECKING:
    from rewardstack_rules.functions.registry import Rule

BACKSTOP = 6
"""A sample that runs programs is stopped after CODE_TIMEOUT times this factor, if the limits of its tests fail to end
it."""
CODE_ADDRESS_SPACE = 16 * 1024 * MIB
"""Address space, in bytes, that a process of the pool for programs may add after its fork.

Programs run in other processes, which have lower limits.
"""


class Pool(Enum):
    """A pool of isolated processes for one kind of rules. Each pool has its own supervisor and zygote (`isolation`)."""

    BUILT_IN = "built-in rules"
    CONFINED = "own functions, confined"
    OPEN = "own functions, not confined"
    CODE = "the policy's programs"

    @staticmethod
    def of(rule: Rule) -> Pool:
        """Return the pool that runs a rule."""
        if rule.runs_programs:
            return Pool.CODE
        if not rule.is_custom:
            return Pool.BUILT_IN
        return Pool.CONFINED if rule.confined else Pool.OPEN


def isolation_config(settings: RuleSettings, pool: Pool = Pool.BUILT_IN) -> IsolationConfig:
    """Return the configuration of a pool. It is equal in all processes of a server or trainer, so they share the pool.

    Only pools for custom functions import custom files, and only their processes get the additional permissions that
    the operator has set.

    Args:
        settings: the number of processes, and the permissions of custom functions.
        pool: the pool.
    """
    if pool is Pool.CODE:
        return _code_config(settings)
    confined, custom = pool is not Pool.OPEN, pool is not Pool.BUILT_IN
    return IsolationConfig(
        "rewardstack_rules.scoring.task:execute",
        warmup="rewardstack_rules.scoring.task:warm_up",
        fast=settings.verify_processes,
        slow=settings.verify_processes,
        max_frame_bytes=32 * MIB,
        confined=confined,
        allow=settings.function_allow if custom and confined else (),
        files=settings.function_data if custom and confined else (),
        variables=("REWARD_FUNCTIONS", *settings.function_variables) if custom else (),
    )


def enabled_pools(settings: RuleSettings, wanted: Iterable[Pool] = Pool) -> list[Pool]:
    """Return the wanted pools, without the pool for programs if `settings.code` is None."""
    return [pool for pool in wanted if pool is not Pool.CODE or settings.code is not None]


def sample_seconds(settings: RuleSettings, pool: Pool) -> float:
    """Return the seconds after which a pool stops a sample."""
    return BACKSTOP * settings.code.timeout if pool is Pool.CODE and settings.code else settings.verify_timeout


def _code_config(settings: RuleSettings) -> IsolationConfig:
    """Return the configuration of the pool for programs.

    Its processes are trusted, because they do not run the programs themselves. Each process starts a launcher for them,
    or sends them to a SandboxFusion server (package `code`).
    """
    assert settings.code is not None
    return IsolationConfig(
        "rewardstack_rules.code.runner:execute",
        warmup="rewardstack_rules.code.runner:check",
        fast=settings.code.processes,
        slow=1,
        slow_after=BACKSTOP * settings.code.timeout,
        memory_bytes=CODE_ADDRESS_SPACE,
        max_frame_bytes=32 * MIB,
        variables=(*VARIABLES, *(NETWORK if settings.code.fusion_urls else ())),
        shared=True,
    )


def start_pools(settings: RuleSettings) -> None:
    """Start the pools. Call this before any server processes are forked, so that they share the pools.

    If the pool for programs is enabled, other processes can no longer read the memory of this process and its forks.

    The pool for confined custom functions starts only with the first sample that needs it. The pool for unconfined
    custom functions is started here if REWARD_FUNCTIONS names files, else with the first sample that needs it.

    Raises:
        ConfigError: a file of reward functions cannot be loaded, or programs cannot be run here.
        UnreachableError: a pool did not start.
    """
    if settings.code is not None:
        hide_memory()
    configs = {pool: isolation_config(settings, pool) for pool in enabled_pools(settings)}
    for config in configs.values():
        supervisor_handle(config)
    wanted = [Pool.BUILT_IN, Pool.OPEN] if settings.function_files else [Pool.BUILT_IN]
    wanted += enabled_pools(settings, [Pool.CODE])
    with ThreadPoolExecutor() as starting:
        list(starting.map(start_supervisor, (configs[pool] for pool in wanted)))


def restart_pools(settings: RuleSettings) -> None:
    """Start new pools for processes that are forked from now on. Existing processes keep using the old pools.

    Raises:
        ConfigError, UnreachableError: as `start_pools`; the old pools stay in use.
    """
    with replace_handles([isolation_config(settings, pool) for pool in enabled_pools(settings)]):
        start_pools(settings)
