"""Calls that several callers share, on a server that heeds the deadline it is told."""

from __future__ import annotations

import threading
import time

import pytest

from rewardstack import Request, score
from tests.rules.conftest import RewardServer


def test_patient_waiter_outlives_the_impatient_one(server: RewardServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server drops a call at the deadline of the one who began it; who joined with more time is still scored."""
    monkeypatch.setenv("REWARD_SERVER_URL", server.url)
    statuses: dict[str, str] = {}

    def wait(name: str, timeout: float) -> None:
        (one,) = score([Request("rule_remote_slow", "shared", "1", {"timeout": timeout})])
        statuses[name] = one.status

    score([Request("rule_remote_slow", "warm", "1")])
    impatient = threading.Thread(target=wait, args=("impatient", 0.05))
    patient = threading.Thread(target=wait, args=("patient", 5.0))
    impatient.start()
    time.sleep(0.02)
    patient.start()
    impatient.join()
    patient.join()
    assert {"impatient": "failed", "patient": "ok"} == statuses
