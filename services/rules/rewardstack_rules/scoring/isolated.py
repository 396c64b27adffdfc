"""The isolated processes of a server: those that are confined, and those for one's own functions that are not.

What they run is `task.execute`. They import it by its name, so that who starts them loads nothing of what they run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rewardstack.core.deadline import SharedDeadline
from rewardstack.errors import DeadlineError
from rewardstack_rules.functions.registry import Rule
from rewardstack_rules.isolation.client import IsolationClient
from rewardstack_rules.isolation.config import MIB, IsolationConfig
from rewardstack_rules.isolation.launch import home_of, prepare
from rewardstack_rules.settings import Settings


def isolation_config(settings: Settings, *, confined: bool = True) -> IsolationConfig:
    """What runs in processes that can be killed; the same for all processes of one server.

    Args:
        settings: the server's.
        confined: False for those of one's own functions that are not; they start when there is such a function.
    """
    return IsolationConfig(
        "rewardstack_rules.scoring.task:execute",
        warmup="rewardstack_rules.scoring.task:warm_up",
        fast=settings.verify_processes,
        slow=settings.verify_processes,
        max_frame_bytes=32 * MIB,
        confined=confined,
    )


def prepare_isolated(settings: Settings) -> None:
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


def renew_isolated(settings: Settings) -> None:
    """Starts new ones, for the processes that are forked from now on; raises as `prepare_isolated`."""
    for confined in (True, False):
        home_of(isolation_config(settings, confined=confined)).close()
    prepare_isolated(settings)


def make_task(rule: Rule, solution: str, references: Sequence[str], extra: Mapping[str, Any]) -> dict[str, Any]:
    """What an isolated process is told (`task.execute`)."""
    return {
        "rule": rule.name,
        "fingerprint": rule.fingerprint,
        "solution": solution,
        "references": references,
        "extra": extra,
    }


class Isolation:
    """The isolated processes, and when they last finished something.

    Args:
        client: hands them tasks.
        timeout: seconds that one task may run.
    """

    def __init__(self, client: IsolationClient, timeout: float) -> None:
        self._client = client
        self.timeout = timeout
        self.last_progress = time.monotonic()

    async def run(self, task: Mapping[str, Any], deadline: SharedDeadline) -> dict[str, Any]:
        """What became of a task; it is dropped when nobody waits for it any more.

        Raises:
            DeadlineError: nobody waited until its end.
            ServiceError: there are no isolated processes.
        """
        work = asyncio.ensure_future(self.finish(task))
        try:
            with deadline.queued(self):
                while not work.done():
                    left = deadline.remaining()
                    if left <= 0:
                        raise DeadlineError("dropped: nobody waits for it any more")
                    await asyncio.wait({work}, timeout=left)
        finally:
            work.cancel()
        return work.result()

    async def finish(self, task: Mapping[str, Any], *, brief: bool = False) -> dict[str, Any]:
        """What became of a task, however long it waits for its turn; raises as `IsolationClient.run`.

        Args:
            task: what the process is told.
            brief: end it as soon as it turns out to be slow.
        """
        [result] = await self._client.run([task], self.timeout, brief=brief)
        self.last_progress = time.monotonic()
        return result
