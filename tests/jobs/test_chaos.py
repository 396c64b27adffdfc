"""A smoke test of `benchmarks/jobs_chaos.py`, which does the same with 20,000 samples."""

from __future__ import annotations

import pytest

from benchmarks.jobs_chaos import CHUNK_SIZE, run

ITEMS = 8000


@pytest.mark.nightly
def test_every_worker_and_the_queue_are_killed() -> None:
    """While each worker is killed in turn, and the queue once, a job comes to its end with every sample once."""
    outcome = run(ITEMS, 2)

    assert [] == outcome.faults
    assert (3, ITEMS // CHUNK_SIZE) == (len(outcome.kills), outcome.counts["committed"])
