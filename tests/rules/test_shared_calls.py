"""Calls that several callers share, on a server that honors the deadline of the request."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rewardstack import Request, score
from tests.rules.conftest import OWN_FUNCTIONS, RewardServer
from tests.support.waiters import impatient_and_patient


def test_patient_waiter_outlives_the_impatient_one(
    start: Callable[..., RewardServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server drops a call at the deadline of the one who began it; who joined with more time is still scored."""
    functions = os.pathsep.join(map(str, OWN_FUNCTIONS))
    server = start("--workers", "2", REWARD_FUNCTIONS=functions, VERIFY_TIMEOUT=3600)
    monkeypatch.setenv("REWARD_SERVER_URL", server.url)
    score([Request("rule_remote_waits", str(tmp_path), "1")])
    awaited = tmp_path / "awaited"
    assert ("failed", "ok") == impatient_and_patient("rule_remote_waits", str(awaited), awaited.touch)
