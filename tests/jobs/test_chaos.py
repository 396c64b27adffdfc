"""A smoke test of `benchmarks/jobs_chaos.py`, which does the same with 20,000 samples."""

from __future__ import annotations

import pytest

from benchmarks.jobs_chaos import CHUNK_SIZE, run

ITEMS = 8000


@pytest.mark.nightly
def test_every_worker_and_the_queue_are_killed() -> None:
    """While each worker is killed in turn, and the queue once, a job comes to its end with every sample once."""
    items, outcome = ITEMS, run(ITEMS, 2)
    while any("the job had ended when" in fault for fault in outcome.faults):  # this test was paused meanwhile
        items *= 2
        outcome = run(items, 2)

    assert [] == outcome.faults
    assert (3, items // CHUNK_SIZE) == (len(outcome.kills), outcome.counts["committed"])
