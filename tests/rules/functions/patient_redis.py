"""Has the server that loads this file wait for a Redis that a busy machine slows down."""

from __future__ import annotations

from rewardstack.cache import link, writer
from rewardstack_rules import reward_function

link.TIMEOUT = writer.FLUSH_TIMEOUT = 60.0


@reward_function
def nothing(response: str, reference: str | None = None) -> float:
    """Give each response the same score: a file of reward functions needs one."""
    return 0.0
