"""Timeouts that leave no time."""

from __future__ import annotations

from rewardstack_rules.http.app import create_app
from rewardstack_rules.settings import Settings
from tests.support.table import Table


def test_roll_without_time_is_refused(table: Table) -> None:
    """A ROLL trainer that gives a sample no time is refused for its own mistake, not for an overload to wait for."""
    body = {"prompt": "p", "response": "#### 5", "reward_type": "gsm8k", "reward_info": {"ground_truth": "5"}}
    client = create_app(Settings.from_env({})).test_client()
    for timeout in (0, -1, -0.5):
        with table.case(f"{timeout:g}"):
            reply = client.post("/roll/submit", json={**body, "timeout": timeout})

            assert (400, "timeout") == (reply.status_code, reply.get_json()["field"]), reply.text
