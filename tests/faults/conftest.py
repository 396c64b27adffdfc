"""Fixtures of the fault tests: those of the tests of jobs, and a reward server without a queue."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.jobs.conftest import ledger as ledger
from tests.jobs.conftest import own as own
from tests.jobs.conftest import queue as queue
from tests.jobs.conftest import shared as shared
from tests.jobs.conftest import store as store
from tests.native.conftest import tree as tree
from tests.rules.conftest import RewardServer, running


@pytest.fixture(scope="session")
def server(needs_process: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """Run a reward server with two workers and without API keys."""
    with running(tmp_path_factory.mktemp("attacked"), "--workers", "2") as one:
        yield one
