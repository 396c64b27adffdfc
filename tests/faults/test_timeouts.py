"""Timeouts that leave no time."""

from __future__ import annotations

import pytest

from tests.rules.conftest import RewardServer


@pytest.mark.parametrize("timeout", [0, -1, -0.5])
def test_roll_without_time_is_refused(server: RewardServer, timeout: float) -> None:
    """A ROLL trainer that gives a sample no time is told so: it is its own mistake, not an overload to wait for."""
    body = {"prompt": "p", "response": "#### 5", "reward_type": "gsm8k", "reward_info": {"ground_truth": "5"}}

    reply = server.post("/roll/submit", {**body, "timeout": timeout})

    assert (400, "timeout") == (reply.status_code, reply.json()["field"]), reply.text
