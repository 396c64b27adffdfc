"""A smoke test of every hostile kind of request; `make fuzz` sends them by the thousand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.conftest import site
from tests.support.hostile.kinds import KINDS
from tests.support.hostile.stress import StressTest

REQUESTS = 52


@pytest.mark.nightly
def test_every_kind(needs_redis: None, tmp_path: Path) -> None:
    """Each is answered or refused in words that name a field, costs no neighbour its score and ends no process."""
    with site(tmp_path, processes=2, VERIFY_TIMEOUT=5) as here:
        here.add_worker()
        stress = StressTest(here.server.url, 0, here.server.processes)
        stress.run(REQUESTS)

    assert stress.counts.total() >= REQUESTS
    assert set(KINDS) == {kind for kind, _ in stress.counts}
    assert {200, 202, 400, 404} <= {status for _, status in stress.counts}
