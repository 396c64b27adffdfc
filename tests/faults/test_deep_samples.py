"""Samples that are nested so deeply that Python cannot follow: they cost none of their neighbours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rewardstack.core.json_types import MAX_DEPTH
from tests.jobs.conftest import Site, sample
from tests.support.table import Table

FIELDS = ("ground_truth", "extra_info")
DEPTHS = (MAX_DEPTH + 1, 300, 600)
"""Python 3.11 reads JSON nested less than 1,000 deep, later ones read more."""


def items(field: str) -> list[dict[str, Any]]:
    """A deep sample of each depth, with right ones around it."""
    found = []
    for depth in DEPTHS:
        deep: Any = []
        for _ in range(depth - 1):
            deep = [deep]
        found += [sample(0), {**sample(0), field: {"deep": deep} if field == "extra_info" else deep}, sample(2)]
    return found


@pytest.mark.nightly
def test_in_a_job(own: Site, table: Table) -> None:
    """Each is unscored, says why, and ends with the job; the others are right."""
    jobs = {field: own.submit(*items(field)) for field in FIELDS}
    own.add_worker(REWARD_FUNCTIONS="")
    for field, job_id in jobs.items():
        with table.case(field):
            own.end_of(job_id)
            found = [json.loads(line) for line in own.server.get(f"/jobs/{job_id}/results").text.splitlines()]

            assert [one["status"] for one in found] == ["ok", "unscored", "ok"] * len(DEPTHS)
            assert {one["reason"] for one in found[1::3]} == {found[1]["reason"]}
            assert f"more than {MAX_DEPTH} levels deep" in found[1]["reason"]


@pytest.mark.parametrize("field", FIELDS)
def test_in_a_batch(own: Site, field: str) -> None:
    """So it is where the scores are waited for."""
    found = own.server.score(*items(field))

    assert [one["status"] for one in found] == ["ok", "unscored", "ok"] * len(DEPTHS)
    assert f"more than {MAX_DEPTH} levels deep" in found[1]["reason"]
