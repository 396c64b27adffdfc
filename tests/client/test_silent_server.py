"""A service that never answers costs no more than the timeout, however many requests wait for it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rewardstack import Request, score
from tests.support.servers import FaultServer

TIMEOUT = 2.0
BOUND = 1.8
"""Times the timeout: two rounds of requests, one after the other, take longer."""


@pytest.mark.usefixtures("needs_process")
@pytest.mark.parametrize("count", [1, 40])
@pytest.mark.parametrize("connections", ["1", "8"])
def test_one_timeout_is_all(server: FaultServer, monkeypatch: pytest.MonkeyPatch, count: int, connections: str) -> None:
    """Requests that wait for a place behind others that are never answered do not begin to wait again."""
    monkeypatch.setenv("REWARDSTACK_MAX_CONNECTIONS", connections)
    extra: dict[str, Any] = {"timeout": 30}
    assert {"ok"} == {one.status for one in score([Request("math", "before", "1", extra)])}
    server.set(delay=600)
    samples = [Request("math", f"{at}", "1", {"timeout": TIMEOUT}) for at in range(count * 64)]
    started = time.monotonic()
    scores = score(samples)
    assert time.monotonic() - started < BOUND * TIMEOUT
    assert {"failed"} == {one.status for one in scores}
