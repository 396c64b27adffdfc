"""A slow reward function, for a server's `REWARD_FUNCTIONS`."""

from __future__ import annotations

import time

from rewardstack_rules import reward_function


@reward_function(range=(0.0, 1.0))
def slow_rule(response: str, reference: str) -> float:
    """Return 1 if the response contains the reference, after 50 ms."""
    time.sleep(0.05)
    return float(reference in response)
