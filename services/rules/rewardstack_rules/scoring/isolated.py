"""The isolated processes of a server: those that are confined, and those for one's own functions that are not.

What they run is `task.execute`. They import it by its name, so that who starts them loads nothing of what they run, and
what is forked or started after a file has changed loads that file.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from rewardstack_rules.isolation.config import MIB, IsolationConfig
from rewardstack_rules.isolation.launch import home_of, prepare
from rewardstack_rules.settings import RuleSettings


def isolation_config(settings: RuleSettings, *, confined: bool = True) -> IsolationConfig:
    """What runs in processes that can be killed; the same for all processes of one server or trainer.

    Args:
        settings: how many run at the same time.
        confined: False for those of one's own functions that are not; they start when there is such a function.
    """
    return IsolationConfig(
        "rewardstack_rules.scoring.task:execute",
        warmup="rewardstack_rules.scoring.task:warm_up",
        fast=settings.verify_processes,
        slow=settings.verify_processes,
        max_frame_bytes=32 * MIB,
        confined=confined,
        allow=settings.function_allow,
        files=settings.function_data,
        variables=("REWARD_FUNCTIONS", *settings.function_variables),
    )


def prepare_isolated(settings: RuleSettings) -> None:
    """Starts them, to be called in the process that forks the others (`launch.prepare`).

    Those that are not confined are started at once where REWARD_FUNCTIONS names files; elsewhere whoever needs them
    first starts them for all.

    Raises:
        ConfigError: a file of reward functions cannot be loaded.
        UnreachableError: they did not start.
    """
    confined, unconfined = isolation_config(settings), isolation_config(settings, confined=False)
    home_of(unconfined)
    wanted = [confined, unconfined] if settings.function_files else [confined]
    with ThreadPoolExecutor() as starting:
        list(starting.map(prepare, wanted))


def renew_isolated(settings: RuleSettings) -> None:
    """Starts new ones, for the processes that are forked from now on; raises as `prepare_isolated`."""
    for confined in (True, False):
        home_of(isolation_config(settings, confined=confined)).close()
    prepare_isolated(settings)
