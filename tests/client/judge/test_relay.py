"""A judge that only the reward server knows, and the reward server's own judge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rewardstack import score
from tests.client.judge.conftest import JUDGE, asked, sample
from tests.rules.conftest import RewardServer, running
from tests.support.servers import FaultServer

pytestmark = pytest.mark.usefixtures("needs_process")


@pytest.fixture
def reward_server(judge: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RewardServer]:
    """A real reward server that knows the judge; the client knows the reward server alone."""
    with running(tmp_path, "--workers", "1", LLM_JUDGE_SERVER_URL=judge.url) as one:
        monkeypatch.delenv("LLM_JUDGE_SERVER_URL")
        monkeypatch.setenv("REWARD_SERVER_URL", one.url)
        yield one


def test_relay(reward_server: RewardServer, judge: FaultServer, tmp_path: Path) -> None:
    """The samples reach the judge with all that it reads, a template's file as its text, and the status comes back."""
    template = tmp_path / "mine.txt"
    template.write_text("Rate {CANDIDATE_SOLUTION} of {PROBLEM}.\nREWARD: <0-100>")
    judge.set(content="REWARD: 50")
    own = sample("own", None, prompt_template_path=str(template), temperature=0, image_path="/private", junk={1, 2})
    wrong = sample("wrong", temperature=9)
    first, complaint = score([own, wrong])
    assert (0.5, "ok", False, "llm_judge") == (first.value, first.status, first.cached, first.source)
    assert ("unscored", True) == (complaint.status, "extra_info.temperature" in complaint.reason)
    (body,) = asked(judge)
    assert body["messages"][1]["content"].startswith("Rate <candidate-")
    assert "What is 6 times 7?" in body["messages"][1]["content"]
    (again,) = score([own])
    assert (0.5, True) == (again.value, again.cached)


def test_sample_with_a_server(reward_server: RewardServer, judge: FaultServer) -> None:
    """A sample that names a judge is sent there directly, in the same batch."""
    direct, relayed = score([sample("direct", server_url=judge.url, api_key="own"), sample("relayed")])
    assert ["ok", "ok"] == [direct.status, relayed.status]
    keys = [body["headers"].get("Authorization", "none") for body in asked(judge)]
    assert ["Bearer own", "none"] == sorted(keys)


def test_over_http(reward_server: RewardServer, judge: FaultServer) -> None:
    """Other trainers ask the judge through the reward server, which refuses servers and files of theirs."""
    judge.set(content="REWARD: 0.250")
    item = {"data_source": JUDGE, "solution_str": "a", "ground_truth": "b", "extra_info": {"problem": "p"}}
    assert 0.25 == reward_server.score(item)[0]["value"]
    reply = reward_server.post(
        f"/get_reward?reward_type={JUDGE}", {"prompts": ["p"], "responses": ["a"], "golden_responses": ["b"]}
    )
    assert [0.25] == reply.json()["rewards"]
    for field in ("server_url", "prompt_template_path"):
        refused = {**item, "extra_info": {field: "x"}}
        assert 400 == reward_server.post("/v1/score", {"items": [refused]}).status_code


def test_reward_server_without_a_judge(tmp_path: Path) -> None:
    """It names the variable that it lacks; it asks no other reward server in its turn."""
    with running(tmp_path, "--workers", "1", REWARD_SERVER_URL="http://127.0.0.1:9") as one:
        reply = one.post("/v1/score", {"items": [{"data_source": JUDGE, "solution_str": "a", "ground_truth": "b"}]})
    assert 400 == reply.status_code
    assert "LLM_JUDGE_SERVER_URL is not set" in reply.json()["error"]
