"""Judges by name, wherever samples are scored: directly, over HTTP, by a relay and in a job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewardstack import Request, client, score
from rewardstack.settings import DEFAULTS
from tests.jobs.conftest import site
from tests.support.servers import ROOT, FaultServer

pytestmark = pytest.mark.usefixtures("needs_process")

PROBLEM = {"problem": "What is 6 times 7?"}
ROUTES = {
    "both": {"sum": [{"route": "near", "weight": 0.5}, {"route": "far", "weight": 0.5}]},
    "most": {"majority": ["near", "far", "voter"]},
    "sure": {"cascade": [{"route": "near", "unsure": [0.3, 0.7]}, "far"]},
    "agreed": {"cascade": [{"route": "voter", "agreement": 0.9}, "far"]},
}
EXPECTED = {
    "near": (0.5, "llm_judge:near", None),
    "far": (1.0, "llm_judge:far", None),
    "voter": (1.0, "llm_judge:voter", 1.0),
    "both": (0.75, "llm_judge:near+llm_judge:far", None),
    "most": (1.0, "llm_judge:near+llm_judge:far+llm_judge:voter", 2 / 3),
    "sure": (1.0, "llm_judge:far", None),
    "agreed": (1.0, "llm_judge:voter", 1.0),
}
"""Of each source the value, who scored it, and how far votes agree."""


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str]]:
    """A file of judges, one with an address and a key and two without, and where those two are."""
    for name in DEFAULTS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(client, "_registered", {})
    judge = FaultServer(script=ROOT / "tests" / "client" / "judge" / "fake_judge.py")
    judge.set(content="REWARD: 1.000", by_model={"near": "REWARD: 0.500"})
    judges = {
        "near": {"base_url": judge.url, "model": "near", "api_key_env": "NEAR_KEY"},
        "far": {"model": "far"},
        "voter": {"model": "voter", "options": {"num_samples": 3}},
    }
    (tmp_path / "routes.json").write_text(json.dumps({"judges": judges, "routes": ROUTES}))
    monkeypatch.setenv("NEAR_KEY", "near's")
    yield tmp_path / "routes.json", judge.url
    judge.kill()


ITEMS: list[dict[str, Any]] = [
    {"data_source": source, "solution_str": "It is 42.", "ground_truth": "42", "extra_info": PROBLEM}
    for source in EXPECTED
]
Outcome = tuple[float | None, str, float | None]


def scored_here() -> dict[str, Outcome]:
    """What this process has for a sample of each source."""
    scores = score([Request(**item) for item in ITEMS])
    return dict(zip(EXPECTED, ((one.value, one.source, one.agreement) for one in scores), strict=True))


def scored_there(records: list[dict[str, Any]]) -> dict[str, Outcome]:
    """What a server says of them."""
    said = ((one["value"], one["source"], one.get("agreement")) for one in records)
    return dict(zip(EXPECTED, said, strict=True))


@pytest.mark.nightly
def test_everywhere(named: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of a named judge, and of each kind of route over such, is scored alike on every way."""
    path, url = named
    monkeypatch.setenv("REWARDSTACK_ROUTES", str(path))
    monkeypatch.setenv("REWARD_CACHE", "off")
    with monkeypatch.context() as direct:
        direct.setenv("LLM_JUDGE_SERVER_URL", url)
        assert EXPECTED == scored_here()
    with site(tmp_path, LLM_JUDGE_SERVER_URL=url, REWARDSTACK_ROUTES=path, REWARD_CACHE="off") as here:
        here.add_worker()
        assert EXPECTED == scored_there(here.server.score(*ITEMS))
        job_id = here.submit(*ITEMS)
        assert "finished" == here.end_of(job_id)["status"]
        lines = here.server.get(f"/jobs/{job_id}/results").text.splitlines()
        assert EXPECTED == scored_there([json.loads(line) for line in lines])
        monkeypatch.setenv("REWARD_SERVER_URL", here.server.url)
        assert EXPECTED == scored_here()
