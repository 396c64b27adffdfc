"""A judge that only the reward server knows, and the reward server's own judge."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rewardstack import Request, client, errors, score
from rewardstack.cache.store import ResultCache
from rewardstack.pipeline.scorer import Scorer
from rewardstack.routing.routes import RouteTable
from rewardstack.score import Item, Score, Usage
from rewardstack.scorers import factory
from rewardstack.scorers.factory import Backends
from rewardstack.settings import Settings
from tests.client.judge.conftest import JUDGE, asked, sample
from tests.rules.conftest import RewardServer, running
from tests.support.explaining import explained, named
from tests.support.servers import FaultServer

SERVER = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def one_server(
    needs_process: None, one_judge: FaultServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RewardServer]:
    """A real reward server that knows the judge; it remembers scores, so each test has samples of its own."""
    folder = tmp_path_factory.mktemp("relay")
    with running(folder, "--workers", "1", LLM_JUDGE_SERVER_URL=one_judge.url) as one:
        yield one


@pytest.fixture
def reward_server(one_server: RewardServer, judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> RewardServer:
    """The reward server; the client knows it alone."""
    monkeypatch.delenv("LLM_JUDGE_SERVER_URL")
    monkeypatch.setenv("REWARD_SERVER_URL", one_server.url)
    return one_server


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


def test_cost_behind_a_reward_server(
    needs_process: None, judge: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client is told what the server's judge took; once the server's budget is spent it asks once, gets an error at
    once, and may ask on for what is in the cache. The server's metrics have the cost by route."""
    judge.set(usage={"prompt_tokens": 30, "completion_tokens": 4})
    with running(
        tmp_path, "--workers", "1", LLM_JUDGE_SERVER_URL=judge.url, REWARDSTACK_MAX_REQUESTS="1"
    ) as reward_server:
        monkeypatch.delenv("LLM_JUDGE_SERVER_URL")
        monkeypatch.setenv("REWARD_SERVER_URL", reward_server.url)
        first = sample("first", temperature=0)
        assert [Usage(1, 30, 4)] == [one.usage for one in score([first])]
        with pytest.raises(errors.BudgetError, match="REWARDSTACK_MAX_REQUESTS: this process has used 1 of 1 requests"):
            score([sample("second", temperature=0)])
        assert [("ok", None)] == [(one.status, one.usage) for one in score([first])]
        item = {"data_source": JUDGE, "solution_str": "third", "ground_truth": "b", "extra_info": {"problem": "p"}}
        reply = reward_server.post("/v1/score", {"items": [item]})
        assert (503, False) == (reply.status_code, "Retry-After" in reply.headers)
        assert "REWARDSTACK_MAX_REQUESTS" == reply.headers["X-Reward-Budget"] == reply.json()["field"]
        found = explained(sample("fourth", temperature=0)).score
        assert found and found.status == "failed" and "has used 1 of 1 requests" in found.reason
        metrics = reward_server.get("/metrics").text
    assert 'rewardstack_model_requests_total{route="llm_judge"} 1.0' in metrics
    assert 'rewardstack_model_tokens_total{kind="prompt",route="llm_judge"} 30.0' in metrics
    asked_of_server = [line for line in metrics.splitlines() if line.startswith("rewardstack_requests_total{")]
    assert [line for line in asked_of_server if 'code="503"' in line and line.endswith(" 2.0")]


def test_cap_that_bounds_nothing(
    reward_server: RewardServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A cap of a process whose judge the reward server asks is no cap of that server's, which is said."""
    monkeypatch.setenv("REWARDSTACK_MAX_REQUESTS", "1")
    monkeypatch.setattr(factory, "_warn_of_limits", factory._warn_of_limits.__wrapped__)
    assert ["ok", "ok"] == [one.status for one in score([sample("capped"), sample("also capped")])]
    assert "not those of the reward server; set them on the reward server" in caplog.text


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


def test_explained(reward_server: RewardServer, judge: FaultServer) -> None:
    """The reward server, which asks the judge, tells what it asked and what came."""
    judge.set(content="REWARD: 0.250")
    found = explained(sample("explained", "b"))
    [told] = named(found.steps, "request for a verdict")
    assert (told["reply"], told["verdict"]) == ("REWARD: 0.250", 0.25)
    assert found.score is not None and (found.score.value, found.score.source) == (0.25, "llm_judge")


def test_reward_server_without_a_judge(needs_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the variable that it lacks, which is an error of the call, and asks no other reward server."""
    with running(tmp_path, "--workers", "1", REWARD_SERVER_URL="http://127.0.0.1:9") as one:
        reply = one.post("/v1/score", {"items": [{"data_source": JUDGE, "solution_str": "a", "ground_truth": "b"}]})
        monkeypatch.setenv("REWARD_SERVER_URL", one.url)
        for source, variable in ((JUDGE, "LLM_JUDGE_SERVER_URL"), ("embedding_remote", "EMBEDDING_SERVER_URL")):
            with pytest.raises(errors.SettingsError, match=f"{variable} is not set.* of the reward server") as caught:
                score([Request(source, "a", "b", {"problem": "p"})], on_error="none")
            assert caught.value.field == variable
    assert 400 == reply.status_code
    assert "LLM_JUDGE_SERVER_URL is not set" in reply.json()["error"]


async def relay(kind: str) -> Scorer[object]:
    """What a client has for a leaf of this kind that knows a reward server alone."""
    settings, backends = Settings.from_env({"REWARD_SERVER_URL": SERVER}), Backends()
    made = backends.scorers(settings, ResultCache(settings), "", RouteTable())[kind]("")
    await backends.close()
    return made


def prepared(scorer: Scorer[object], *items: Item) -> list[object]:
    """The items as the scorer prepares them."""
    samples = [scorer.prepare(item) for item in items]
    assert not any(isinstance(sample, Score) for sample in samples)
    return samples


async def test_batch_keys() -> None:
    """Samples are sent as to the judge itself: those of one problem together, `batch_size` has a batch key of its own;
    the reward server accepts several in each request, and a sample that names a judge has that judge's own key."""
    scorer = await relay("judge")
    extras: list[dict[str, Any]] = [
        {"problem": "a"},
        {"problem": "b"},
        {"problem": "a", "batch_size": 3},
        {"server_url": "http://judge:1"},
        {"problem": "a", "server_url": math.nan},
    ]
    samples = prepared(scorer, *(Item("6", ("7",), extra) for extra in extras))
    assert scorer.batch is not None
    keys = [scorer.batch(sample) for sample in samples]
    assert [64, 64, 64, 1, 64] == [key.size for key in keys]
    assert ["a", "b", "a", "", "a"] == [key.affinity for key in keys]
    assert keys[0] == keys[4] == keys[1]._replace(affinity="a")
    assert 3 * 64 == keys[2].max_in_flight < keys[0].max_in_flight
    assert 3 == len({key.name for key in keys})


async def test_nothing_to_ask() -> None:
    """What the judge and the embedding need not be asked is scored here, and substitutes are the embedding's own."""
    judge, embedding = await relay("judge"), await relay("embedding")
    empty = judge.prepare(Item(" ", ("7",)))
    assert isinstance(empty, Score) and (0.0, "there is no answer") == (empty.value, empty.reason)
    assert judge.fallback is None and embedding.fallback is not None
    assert (1.0, "fallback") == ((found := embedding.fallback(Item("left", ("left",)))).value, found.status)


def test_report(reward_server: RewardServer, caplog: pytest.LogCaptureFixture) -> None:
    """A batch that a reward server judges has its line in the log, as one that is sent to the judge itself."""
    with caplog.at_level(logging.INFO, "rewardstack"):
        score([sample("one"), sample("two")])
    assert ["llm_judge: 2 samples in"] == [
        record.getMessage()[:23] for record in caplog.records if "samples in" in record.getMessage()
    ]


def test_batch_size(reward_server: RewardServer, judge: FaultServer) -> None:
    """`batch_size` bounds the requests in flight at a judge behind a reward server."""
    judge.set(delay=0.05)
    scores = score([sample(f"bounded {at}", batch_size=3) for at in range(12)])
    assert {"ok"} == {one.status for one in scores}
    assert 1 <= judge.stats()["max_concurrent"] <= 3


def test_groups(needs_process: None, judge: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group is one request, however many there are, from one call or several; one that is too large is not divided.
    The server waits for nobody: an incomplete group is unscored."""
    monkeypatch.setattr(client, "_registered", {})
    judge.set(compares=True)
    routes = tmp_path / "routes.toml"
    tables = {"ruler": 'compare = "listwise"', "eight": 'compare = "listwise"\ngroup_size = 8\ngroup_wait = 20'}
    routes.write_text("\n".join(f'[judges.{name}]\nmodel = "small"\n{table}\n' for name, table in tables.items()))
    variables = {"REWARDSTACK_ROUTES": str(routes), "MAX_BODY_BYTES": "100000"}
    with running(tmp_path, "--workers", "1", LLM_JUDGE_SERVER_URL=judge.url, **variables) as reward_server:
        monkeypatch.delenv("LLM_JUDGE_SERVER_URL")
        monkeypatch.setenv("REWARD_SERVER_URL", reward_server.url)
        monkeypatch.setenv("REWARDSTACK_ROUTES", str(routes))
        groups = [[f"It is {at} of {member}." for member in range(8)] for at in range(17)]
        members = [Request("ruler", text, None, {"problem": f"p{at}"}) for at in range(17) for text in groups[at]]
        assert [at / 100 for _ in groups for at in range(8)] == [one.value for one in score(members)]
        with ThreadPoolExecutor(8) as threads:
            waiting = [Request("eight", text, None, {"problem": "late", "timeout": 30}) for text in groups[0]]
            assert [at / 100 for at in range(8)] == [
                one.value for [one] in threads.map(lambda one: score([one]), waiting)
            ]
        found = [re.findall(r"^It is (\d+) of", body["messages"][1]["content"], re.MULTILINE) for body in asked(judge)]
        assert {(8, 1)} == {(len(one), len({*one})) for one in found} and 36 == len(found)
        large = [Request("ruler", text * 2000, None, {"problem": "large"}) for text in groups[0]]
        assert {"failed"} == {one.status for one in score(large, on_error="none")}
        assert "a group of 8 samples (" in score(large, on_error="none")[0].reason
        item = {"data_source": "eight", "solution_str": "It is 1.", "extra_info": {"problem": "p"}}
        alone = reward_server.post("/v1/score", {"items": [item]}).json()["scores"][0]
        assert "unscored" == alone["status"] and "the request has 1 of the 8 members of a group" in alone["reason"]
