"""The isolated processes of a server, in separate pools: `Pool`.

Isolated processes run `scoring.task.execute`, or `code.runner.execute` for programs. They import this function by name:
the process that starts them need not load it, and processes that start after a file has changed load the new file.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import TYPE_CHECKING

from rewardstack_rules.code import VARIABLES
from rewardstack_rules.isolation.config import MIB, IsolationConfig
from rewardstack_rules.isolation.launch import home_of, prepare
from rewardstack_rules.isolation.process import hide_memory
from rewardstack_rules.settings import RuleSettings

if TYPE_CHECKING:
    from rewardstack_rules.functions.registry import Rule

BACKSTOP = 6
"""Multiple of CODE_TIMEOUT after which a sample is stopped, in case the limits of its tests do not end it."""
CODE_ADDRESS_SPACE = 16 * 1024 * MIB
"""Address space, in bytes, that a runner of programs may add; the programs themselves have lower limits."""


class Pool(Enum):
    """A group of rules with its own isolated processes (its own supervisor and zygote)."""

    BUILT_IN = "built-in rules"
    CONFINED = "own functions, confined"
    OPEN = "own functions, not confined"
    CODE = "the policy's programs"

    @staticmethod
    def of(rule: Rule) -> Pool:
        """Return the pool that runs a rule."""
        if rule.programs:
            return Pool.CODE
        if not rule.own:
            return Pool.BUILT_IN
        return Pool.CONFINED if rule.confined else Pool.OPEN


def isolation_config(settings: RuleSettings, pool: Pool = Pool.BUILT_IN) -> IsolationConfig:
    """Return the configuration of a pool; it is equal in all processes of one server or trainer.

    Only pools for custom functions get the operator's additional permissions, and only these import custom files.

    Args:
        settings: the number of processes, and the permissions of custom functions.
        pool: the pool.
    """
    if pool is Pool.CODE:
        return _code_config(settings)
    confined, own = pool is not Pool.OPEN, pool is not Pool.BUILT_IN
    return IsolationConfig(
        "rewardstack_rules.scoring.task:execute",
        warmup="rewardstack_rules.scoring.task:warm_up",
        fast=settings.verify_processes,
        slow=settings.verify_processes,
        max_frame_bytes=32 * MIB,
        confined=confined,
        allow=settings.function_allow if own and confined else (),
        files=settings.function_data if own and confined else (),
        variables=("REWARD_FUNCTIONS", *settings.function_variables) if own else (),
    )


def pools(settings: RuleSettings, wanted: Iterable[Pool] = Pool) -> list[Pool]:
    """Return the wanted pools, without the one for programs if programs are not run here."""
    return [pool for pool in wanted if pool is not Pool.CODE or settings.code is not None]


def sample_seconds(settings: RuleSettings, pool: Pool) -> float:
    """Return the seconds after which a pool stops a sample."""
    return BACKSTOP * settings.code.timeout if pool is Pool.CODE and settings.code else settings.verify_timeout


def _code_config(settings: RuleSettings) -> IsolationConfig:
    """Return the configuration of the pool for programs: trusted runners, each with its own launcher."""
    assert settings.code is not None
    return IsolationConfig(
        "rewardstack_rules.code.runner:execute",
        warmup="rewardstack_rules.code.runner:check",
        fast=settings.code.processes,
        slow=1,
        slow_after=BACKSTOP * settings.code.timeout,
        memory_bytes=CODE_ADDRESS_SPACE,
        max_frame_bytes=32 * MIB,
        variables=VARIABLES,
        shared=True,
    )


def prepare_isolated(settings: RuleSettings) -> None:
    """Start the pools; call this in the process that forks the others (`launch.prepare`).

    Where programs run, other processes can no longer read the memory of this process and of those that it forks.

    The pool for unconfined custom functions starts now only if REWARD_FUNCTIONS names files. Otherwise it starts with
    the first sample that needs it, and so does the pool for confined custom functions.

    Raises:
        ConfigError: a file of reward functions cannot be loaded, or programs cannot be run here.
        UnreachableError: a pool did not start.
    """
    if settings.code is not None:
        hide_memory()
    configs = {pool: isolation_config(settings, pool) for pool in pools(settings)}
    for config in configs.values():
        home_of(config)
    wanted = [Pool.BUILT_IN, Pool.OPEN] if settings.function_files else [Pool.BUILT_IN]
    wanted += pools(settings, [Pool.CODE])
    with ThreadPoolExecutor() as starting:
        list(starting.map(prepare, (configs[pool] for pool in wanted)))


def renew_isolated(settings: RuleSettings) -> None:
    """Start new pools for processes that are forked from now on; raise what `prepare_isolated` raises."""
    for pool in pools(settings):
        home_of(isolation_config(settings, pool)).close()
    prepare_isolated(settings)
