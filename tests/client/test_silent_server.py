"""A service that never answers costs no more than the timeout, however many requests wait for it."""

from __future__ import annotations

from typing import Any

import pytest

from rewardstack import Request, score
from tests.support.servers import FaultServer

TIMEOUT = 2.0  # expires


@pytest.mark.usefixtures("needs_process")
@pytest.mark.parametrize("count", [1, 40])
@pytest.mark.parametrize("connections", ["1", "24"])
def test_one_timeout_is_all(server: FaultServer, monkeypatch: pytest.MonkeyPatch, count: int, connections: str) -> None:
    """Requests that wait for a place behind others that are never answered do not begin to wait again."""
    monkeypatch.setenv("REWARDSTACK_MAX_CONNECTIONS", connections)
    extra: dict[str, Any] = {"timeout": 60}
    assert {"ok"} == {one.status for one in score([Request("math", "before", "1", extra)])}
    server.set(delay=3600)
    samples = [Request("math", f"{at}", "1", {"timeout": TIMEOUT}) for at in range(count * 64)]
    before = server.stats()["requests"]
    scores = score(samples)
    assert {"failed"} == {one.status for one in scores}
    # A second round would be as many again; hedges are fewer, for their budget is a reserve of ten and a tenth.
    assert server.stats()["requests"] - before < 2 * min(count, int(connections))
