"""Create isolation clients with their own supervisors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from rewardstack_rules.isolation.client import IsolationClient
from rewardstack_rules.isolation.config import MIB, IsolationConfig
from rewardstack_rules.isolation.launch import SupervisorHandle, start_supervisor
from tests.isolation.processes import MakeClient
from tests.support.waiting import eventually

ENTRY = "isolation_entries:run"
DEFAULTS: dict[str, Any] = {"entry": ENTRY, "memory_bytes": 256 * MIB, "fast": 2, "slow": 2}


@pytest.fixture(autouse=True)
def entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `isolation_entries` importable, in the test and in isolated processes."""
    monkeypatch.syspath_prepend(Path(__file__).parent)


@pytest_asyncio.fixture
async def make_client(needs_process: None) -> AsyncIterator[MakeClient]:
    """Return a function that creates a client with its own supervisor.

    At the end, all supervisors are stopped, and their directories must be removed.
    """
    made: list[tuple[IsolationClient, SupervisorHandle]] = []

    def make(**fields: Any) -> IsolationClient:
        config = IsolationConfig(**(DEFAULTS | fields))
        made.append((IsolationClient(config), start_supervisor(config)))
        return made[-1][0]

    yield make
    for client, home in made:
        client.close()
        home.close()
    eventually(lambda: not any(home.directory.exists() for _, home in made))


@pytest.fixture
def client(make_client: MakeClient) -> IsolationClient:
    """Create a client with two fast and two slow children."""
    return make_client()


@pytest.fixture(scope="module")
def lasting_config(needs_process: None) -> Iterator[IsolationConfig]:
    """Run a supervisor for a module and return its configuration.

    It has three slow children, so a client of `make_client` with default fields does not share it.
    """
    config = IsolationConfig(**(DEFAULTS | {"slow": 3}))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parent)
        home = start_supervisor(config)
        yield config
    home.close()
    eventually(lambda: not home.directory.exists())


@pytest_asyncio.fixture
async def lasting(lasting_config: IsolationConfig) -> AsyncIterator[IsolationClient]:
    """Return a client of the module's shared supervisor; a test must not kill its processes."""
    one = IsolationClient(lasting_config)
    yield one
    one.close()
