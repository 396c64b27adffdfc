"""Has the server that loads this file write its counts for other servers five times a second, and wait for Redis."""

from __future__ import annotations

from rewardstack_rules import reward_function
from rewardstack_rules.status import recorder, snapshot_store

recorder.INTERVAL = 0.2
snapshot_store.WAIT = 60.0


@reward_function
def nothing(response: str, reference: str | None = None) -> float:
    """Give each response the same score: a file of reward functions needs one."""
    return 0.0
