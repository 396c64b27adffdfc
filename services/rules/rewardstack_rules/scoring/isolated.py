"""The isolated processes of a server, of three kinds that share nothing: `Pool`.

What they run is `task.execute`. They import it by its name, so that who starts them loads nothing of what they run, and
what is forked or started after a file has changed loads that file.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import TYPE_CHECKING

from rewardstack_rules.isolation.config import MIB, IsolationConfig
from rewardstack_rules.isolation.launch import home_of, prepare
from rewardstack_rules.settings import RuleSettings

if TYPE_CHECKING:
    from rewardstack_rules.functions.registry import Rule


class Pool(Enum):
    """Which rules the processes run; each kind has a template of its own that they are forked from."""

    BUILT_IN = "built-in rules"
    CONFINED = "own functions, confined"
    OPEN = "own functions, not confined"

    @staticmethod
    def of(rule: Rule) -> Pool:
        """Return the pool that runs a rule."""
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


def prepare_isolated(settings: RuleSettings) -> None:
    """Starts them, to be called in the process that forks the others (`launch.prepare`).

    Those for own functions that are not confined are started at once if REWARD_FUNCTIONS names files. Otherwise the
    process that needs them first starts them for all, as it does for those that are confined.

    Raises:
        ConfigError: a file of reward functions cannot be loaded.
        UnreachableError: they did not start.
    """
    configs = {pool: isolation_config(settings, pool) for pool in Pool}
    for config in configs.values():
        home_of(config)
    wanted = [Pool.BUILT_IN, Pool.OPEN] if settings.function_files else [Pool.BUILT_IN]
    with ThreadPoolExecutor() as starting:
        list(starting.map(prepare, (configs[pool] for pool in wanted)))


def renew_isolated(settings: RuleSettings) -> None:
    """Starts new ones, for the processes that are forked from now on; raises as `prepare_isolated`."""
    for pool in Pool:
        home_of(isolation_config(settings, pool)).close()
    prepare_isolated(settings)
