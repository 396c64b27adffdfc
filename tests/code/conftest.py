"""A reward server that runs programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.code.unconfined import Bait
from tests.rules.conftest import RewardServer, running
from tests.rules.conftest import start as start


@pytest.fixture(scope="session")
def server(needs_process: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """A server with CODE=on."""
    with running(
        tmp_path_factory.mktemp("code"), "--workers", "1", CODE="on", CODE_PROCESSES=2, CODE_TIMEOUT=20
    ) as one:
        yield one


@pytest.fixture
def bait(tmp_path: Path) -> Iterator[Bait]:
    """What attacks are after."""
    bait = Bait(tmp_path)
    yield bait
    bait.close()
