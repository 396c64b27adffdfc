"""Calls that several callers share, on a server that honors the deadline of the request."""

from __future__ import annotations

import pytest

from rewardstack import Request, score
from tests.rules.conftest import RewardServer
from tests.support.waiters import impatient_and_patient


def test_patient_waiter_outlives_the_impatient_one(server: RewardServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server drops a call at the deadline of the one who began it; who joined with more time is still scored."""
    monkeypatch.setenv("REWARD_SERVER_URL", server.url)
    score([Request("rule_remote_slow", "warm", "1")])
    statuses = {name: status for name, (status, _) in impatient_and_patient("rule_remote_slow").items()}
    assert {"impatient": "failed", "patient": "ok"} == statuses
