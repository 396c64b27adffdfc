"""The isolated processes of a server, of kinds that share nothing: `Pool`.

What they run is `task.execute`, of those for programs `code.runner.execute`. They import it by its name, so that who
starts them loads nothing of what they run, and what is forked or started after a file has changed loads that file.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import TYPE_CHECKING

from rewardstack_rules.code import VARIABLES
from rewardstack_rules.isolation.config import MIB, IsolationConfig
from rewardstack_rules.isolation.launch import home_of, prepare
from rewardstack_rules.settings import RuleSettings

if TYPE_CHECKING:
    from rewardstack_rules.functions.registry import Rule

BACKSTOP = 6
"""Times CODE_TIMEOUT after which a sample is given up: its tests bound themselves, unless the machine starves them."""
CODE_ADDRESS_SPACE = 16 * 1024 * MIB
"""Of those that run programs, and of programs, which have a limit of their own."""


class Pool(Enum):
    """Which rules the processes run; each kind has a template of its own that they are forked from."""

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
    """Return what runs in processes that can be killed; the same for all processes of one server or trainer.

    Only own functions get what the operator allows them, and only their processes import the user's files.

    Args:
        settings: how many run at the same time, and what own functions may do.
        pool: which rules they run.
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
    """Return the pools that there are, of those that are wanted: none for programs where they are not run here."""
    return [pool for pool in wanted if pool is not Pool.CODE or settings.code is not None]


def sample_seconds(settings: RuleSettings, pool: Pool) -> float:
    """Return the seconds after which a sample is given up, whatever it waits for."""
    return BACKSTOP * settings.code.timeout if pool is Pool.CODE and settings.code else settings.verify_timeout


def _code_config(settings: RuleSettings) -> IsolationConfig:
    """Return what runs programs: trusted processes, each with a launcher of confined ones, for all tenants."""
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
    )


def prepare_isolated(settings: RuleSettings) -> None:
    """Starts them, to be called in the process that forks the others (`launch.prepare`).

    Those for own functions that are not confined are started at once if REWARD_FUNCTIONS names files. Otherwise the
    process that needs them first starts them for all, as it does for those that are confined.

    Raises:
        ConfigError: a file of reward functions cannot be loaded.
        UnreachableError: they did not start.
    """
    configs = {pool: isolation_config(settings, pool) for pool in pools(settings)}
    for config in configs.values():
        home_of(config)
    wanted = [Pool.BUILT_IN, Pool.OPEN] if settings.function_files else [Pool.BUILT_IN]
    wanted += pools(settings, [Pool.CODE])
    with ThreadPoolExecutor() as starting:
        list(starting.map(prepare, (configs[pool] for pool in wanted)))


def renew_isolated(settings: RuleSettings) -> None:
    """Starts new ones, for the processes that are forked from now on; raises as `prepare_isolated`."""
    for pool in pools(settings):
        home_of(isolation_config(settings, pool)).close()
    prepare_isolated(settings)
