"""Fixture of the tests of embedding similarity: a fake server with faults on demand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rewardstack.transport import timing
from tests.support.servers import FaultServer

STAND_IN = Path(__file__).with_name("stand_in.py")


@pytest.fixture(autouse=True)
def no_hedges(monkeypatch: pytest.MonkeyPatch) -> None:
    """No request is sent a second time because the machine is slow."""
    monkeypatch.setattr(timing, "MIN_STUCK", 3600.0)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    """Run a fake embedding server, and set EMBEDDING_SERVER_URL."""
    one = FaultServer(script=STAND_IN)
    monkeypatch.setenv("EMBEDDING_SERVER_URL", one.url)
    yield one
    one.kill()
