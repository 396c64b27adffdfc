"""A server that is not there."""

from __future__ import annotations

import logging
import threading

import pytest

from rewardstack import Request, score
from tests.support.servers import FaultServer, free_port
from tests.support.waiting import eventually

REFUSED = "connection refused (is the server running?)"


def test_a_refused_connection_is_said_while_it_lasts(
    needs_process: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says that nothing listens while the samples still wait, once; a server that comes up scores them."""
    port = free_port()
    monkeypatch.setenv("REWARD_SERVER_URL", f"http://127.0.0.1:{port}")
    statuses: list[str] = []
    requests = [Request("gsm8k", f"#### {at}", "5") for at in range(200)]
    caller = threading.Thread(target=lambda: statuses.extend(one.status for one in score(requests)))
    with caplog.at_level(logging.WARNING, "rewardstack"):
        caller.start()
        eventually(lambda: REFUSED in caplog.text)
        assert caller.is_alive()
        server = FaultServer(port)
        try:
            caller.join(60)
        finally:
            server.kill()
    assert ["ok"] * 200 == statuses
    assert 1 == caplog.text.count(REFUSED)


def test_every_sample_says_what_stood_in_its_way(needs_process: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the deadline each sample names the refusal, also one whose turn never came."""
    monkeypatch.setenv("REWARD_SERVER_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("REWARD_SERVER_TIMEOUT", "5")

    scores = score([Request("gsm8k", f"#### {at}", "5") for at in range(200)])

    assert {(True, "failed")} == {(REFUSED in one.reason, one.status) for one in scores}
