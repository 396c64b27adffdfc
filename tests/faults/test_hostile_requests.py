"""Requests of every hostile kind, in the small; `make fuzz` sends them by the thousand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.conftest import site
from tests.support.hostile.kinds import KINDS
from tests.support.hostile.siege import Siege

REQUESTS = 52


@pytest.mark.nightly
def test_siege(needs_redis: None, tmp_path: Path) -> None:
    """Each is answered or refused in words that name a field, costs no neighbour its score and ends no process."""
    with site(tmp_path, processes=2, VERIFY_TIMEOUT=1) as here:
        here.add_worker()
        siege = Siege(here.server.url, 0, here.server.processes)
        siege.run(REQUESTS)

    assert siege.counts.total() >= REQUESTS
    assert set(KINDS) == {kind for kind, _ in siege.counts}
    assert {200, 202, 400, 404} <= {status for _, status in siege.counts}
