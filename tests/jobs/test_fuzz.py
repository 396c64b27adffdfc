"""Fuzzing of `/jobs` where there is a queue; the fuzzing of the whole server has none."""

from __future__ import annotations

from tests.jobs.conftest import Site
from tests.rules.fuzz import Fuzzer

REQUESTS = 160


def test_no_500(jobs: Site) -> None:
    """No request to the jobs is answered by 500, or otherwise than the server's own document says."""
    fuzzer = Fuzzer(jobs.server.url, seed=0, under="/jobs")
    fuzzer.run(REQUESTS)

    assert {("POST /jobs", 202), ("POST /jobs", 400), ("GET /jobs/{job_id}", 404)} <= set(fuzzer.counts)
