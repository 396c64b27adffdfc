"""The isolated processes of a server: those that are confined, and those for one's own functions that are not.

What they run is `scoring.task`, which the settings name.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from rewardstack_rules.isolation.launch import home_of, prepare
from rewardstack_rules.settings import Settings


def prepare_isolated(settings: Settings) -> None:
    """Starts them, to be called in the process that forks the others (`launch.prepare`).

    Those that are not confined are started at once where REWARD_FUNCTIONS names files; elsewhere whoever needs them
    first starts them for all.

    Raises:
        ConfigError: a file of reward functions cannot be loaded.
        UnreachableError: they did not start.
    """
    home_of(settings.open_isolation)
    wanted = [settings.isolation, settings.open_isolation] if settings.function_files else [settings.isolation]
    with ThreadPoolExecutor() as starting:
        list(starting.map(prepare, wanted))


def renew_isolated(settings: Settings) -> None:
    """Starts new ones, for the processes that are forked from now on; raises as `prepare_isolated`."""
    for config in (settings.isolation, settings.open_isolation):
        home_of(config).close()
    prepare_isolated(settings)
