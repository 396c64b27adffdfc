"""Fixtures of the tests of code rewards: a reward server that runs programs, and targets of attacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.code.unconfined import Bait
from tests.rules.conftest import RewardServer, running
from tests.rules.conftest import start as start


@pytest.fixture(scope="session")
def server(needs_process: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """Run a server with CODE=on."""
    with running(
        tmp_path_factory.mktemp("code"), "--workers", "1", CODE="on", CODE_PROCESSES=2, CODE_TIMEOUT=20
    ) as one:
        yield one


@pytest.fixture
def bait(tmp_path: Path) -> Iterator[Bait]:
    """Create the targets of attacks: a secret file, listeners, a process with a secret in its environment."""
    bait = Bait(tmp_path)
    yield bait
    bait.close()
