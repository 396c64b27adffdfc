"""Several verdicts on one sample."""

from __future__ import annotations

import re
from statistics import fmean

import pytest
import requests

from tests.judge_vllm.conftest import RIGHT, judge
from tests.support.vllm import VllmServer

FINISHED = re.compile(r'^vllm:request_success_total\{.*finished_reason="(?:stop|length)".*\} (\S+)$', re.MULTILINE)


def finished(vllm: VllmServer) -> float:
    """Requests that the server has answered so far."""
    text = requests.get(f"{vllm.url}/metrics", timeout=10).text
    return sum(map(float, FINISHED.findall(text)))


@pytest.mark.parametrize("aggregate", ["mean", "median", "majority"])
def test_votes(vllm: VllmServer, aggregate: str) -> None:
    """Each vote is a request of its own, and the score lies in the scale."""
    before = finished(vllm)
    one = judge(RIGHT, num_samples=4, aggregate=aggregate)

    assert finished(vllm) - before == 4
    assert one.status == "ok" and one.value is not None and 0 <= one.value <= 1


def test_seeded_votes() -> None:
    """Under a seed each vote has the next one, so that the score comes out the same again."""
    votes = [judge(RIGHT, seed=seed).value or 0.0 for seed in (7, 8, 9)]

    assert judge(RIGHT, num_samples=3, seed=7).value == pytest.approx(fmean(votes))
