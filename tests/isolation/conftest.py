"""Clients with supervisors of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from rewardstack_rules.isolation.client import IsolationClient
from rewardstack_rules.isolation.config import MIB, IsolationConfig
from rewardstack_rules.isolation.launch import Home, prepare
from tests.isolation.processes import MakeClient
from tests.support.waiting import eventually

ENTRY = "isolation_entries:run"


@pytest.fixture(autouse=True)
def entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the entries of these tests importable, here and in children."""
    monkeypatch.syspath_prepend(Path(__file__).parent)


@pytest_asyncio.fixture
async def make_client(needs_process: None) -> AsyncIterator[MakeClient]:
    """Makes a client with its own supervisor; at the end every supervisor is gone, and its directory with it."""
    made: list[tuple[IsolationClient, Home]] = []

    def make(**fields: Any) -> IsolationClient:
        defaults: dict[str, Any] = {"entry": ENTRY, "memory_bytes": 256 * MIB, "fast": 2, "slow": 2}
        config = IsolationConfig(**(defaults | fields))
        made.append((IsolationClient(config), prepare(config)))
        return made[-1][0]

    yield make
    for client, home in made:
        client.close()
        home.close()
    eventually(lambda: not any(home.directory.exists() for _, home in made))


@pytest.fixture
def client(make_client: MakeClient) -> IsolationClient:
    """A client with two fast and two slow children."""
    return make_client()
