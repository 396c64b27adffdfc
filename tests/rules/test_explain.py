"""`POST /v1/explain`: one sample, and how it comes to its score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rewardstack import Request
from rewardstack.errors import BudgetError
from rewardstack.settings import DEFAULTS
from rewardstack_rules.functions.catalog import load_registry
from rewardstack_rules.scoring.evaluator import Evaluator
from rewardstack_rules.settings import Settings
from tests.client.judge.conftest import FAKE_JUDGE, sample
from tests.rules.conftest import RewardServer
from tests.rules.test_openapi import document, fits
from tests.rules.test_rewards import CASES
from tests.rules.test_score_protocol import RIGHT
from tests.support.servers import FaultServer

__all__ = ["document"]


def facts(reply: dict[str, Any], name: str) -> dict[str, Any]:
    """The facts of the first step of a name."""
    found: dict[str, Any] = next(step["facts"] for step in reply["steps"] if step["step"] == name)
    return found


def explain(server: RewardServer, item: dict[str, Any]) -> dict[str, Any]:
    """The explanation of one sample."""
    reply = server.post("/v1/explain", item)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def test_the_same_as_scoring(server: RewardServer, document: dict[str, Any]) -> None:
    """Of every case the explanation has the score that scoring gives, in the form that the document says."""
    items = [
        {
            "data_source": f"rule_remote_{case['rule']}",
            "solution_str": case["response"],
            "ground_truth": case["references"],
            "extra_info": {**case.get("extra", {}), "cache_enabled": False},
        }
        for case in CASES
    ]
    for item, scored in zip(items, server.score(*items), strict=True):
        reply = explain(server, item)
        assert fits(document, "Explanation", reply)
        assert {**reply["score"], "latency_ms": 0, "details": 0} == {**scored, "latency_ms": 0, "details": 0}


@pytest.mark.parametrize(
    ("solution", "answer", "place"),
    [
        (r"So \boxed{7}.", "7", r"\boxed"),
        ("<answer>7</answer>", "7", "the whole response, in <answer>"),
        (r"<answer>It is \boxed{7}</answer>", "7", r"\boxed, in <answer>"),
        ("#### 7", "7", "####"),
        ("The answer is 7.", "7", "the answer is ..."),
        ("$7$", "7", "the whole response"),
        ("We count them. So there are 7.", None, "nothing"),
        (r"So \boxed{", None, "nothing"),
    ],
)
def test_where_an_answer_stood(server: RewardServer, solution: str, answer: str | None, place: str) -> None:
    """The answer is told with where it was found, and the reference as it was read."""
    item = {"data_source": "math", "solution_str": solution, "ground_truth": r"Hence \boxed{8}."}
    told = facts(explain(server, item), "prepared")
    assert (told["answer"], told["found in"], told["references as read"]) == (answer, place, ["8"])


@pytest.mark.parametrize(
    ("answer", "reference", "decided", "comparisons"),
    [
        ("7", "7", "a comparison of the texts", None),
        ("7.0", "7", "the fast path", None),
        ("2x", "x+x", "an isolated process", {"values"}),
        ("3 m", "300 cm", "an isolated process", {"values"}),
    ],
)
def test_what_decided(
    server: RewardServer, answer: str, reference: str, decided: str, comparisons: set[str] | None
) -> None:
    """It is told whether the texts, the fast path or a comparison in an isolated process decided, and which."""
    item = {"data_source": "math", "solution_str": rf"\boxed{{{answer}}}", "ground_truth": reference}
    reply = explain(server, item | {"extra_info": {"cache_enabled": False}})
    assert facts(reply, "prepared")["decided by"].startswith(decided)
    if comparisons is None:
        assert "compared" not in [step["step"] for step in reply["steps"]]
    else:
        assert comparisons & set(facts(reply, "compared")["comparisons"])


def test_gsm8k(server: RewardServer) -> None:
    """Its numbers are told, and where the response's was found."""
    told = facts(explain(server, RIGHT | {"solution_str": "It is #### 1,041 then"}), "prepared")
    assert (told["answer"], told["found in"], told["references as read"]) == ("1041", "####", ["42"])


def test_where_a_function_runs(server: RewardServer) -> None:
    """The explanation says that a custom function ran in an isolated process, with its reason and its parts."""
    reply = explain(server, {"data_source": "rule_remote_concise", "solution_str": "x", "ground_truth": "x"})
    assert facts(reply, "function") == {"ran": "in an isolated process"}


def test_a_cached_score(start: Callable[..., RewardServer]) -> None:
    """A score that the server has cached is explained as it is, unless `rescore` asks for another comparison."""
    server = start("--workers", "1")
    item = {"data_source": "math", "solution_str": r"\boxed{2x}", "ground_truth": "x+x"}
    server.score(item)
    for asked, again in (({}, False), ({"rescore": False}, False), ({"rescore": True}, True)):
        reply = explain(server, item | asked)
        assert (reply["score"]["value"], reply["score"]["cached"]) == (1, True)
        assert ("scored again" in [step["step"] for step in reply["steps"]]) is again, asked


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ([RIGHT], 400, "body"),
        (RIGHT | {"rescore": 1}, 400, "rescore"),
        ({}, 400, "body.data_source"),
        (RIGHT | {"extra_info": {"server_url": "http://x"}}, 400, "body.extra_info.server_url"),
        (RIGHT | {"data_source": "nothing"}, 404, "data_source"),
        (RIGHT | {"data_source": "rule_remote_nothing"}, 404, "data_source"),
    ],
)
def test_refusals(server: RewardServer, body: Any, status: int, field: str) -> None:
    """A body that is no sample, and a source that nothing scores, are refused as by /v1/score."""
    reply = server.post("/v1/explain", body)
    assert (reply.status_code, reply.json()["field"]) == (status, field)


def test_a_key_is_needed(guarded: RewardServer) -> None:
    """Where the server has keys, an explanation takes one of them, and the limit of a body holds."""
    key = {"X-API-Key": "first-key-of-tests"}
    assert guarded.post("/v1/explain", RIGHT).status_code == 401
    assert guarded.post("/v1/explain", RIGHT, headers=key).status_code == 200
    assert guarded.post("/v1/explain", RIGHT | {"solution_str": "x" * 200_000}, headers=key).status_code == 413


def test_a_function_that_hangs(hasty: RewardServer) -> None:
    """A function that does not end is ended, and the explanation says so."""
    reply = explain(hasty, {"data_source": "rule_remote_hang", "solution_str": "slow", "ground_truth": "x"})
    assert reply["score"]["status"] == "failed" and "took longer than 1 s" in reply["score"]["reason"]


@pytest.mark.parametrize("explained_first", [True, False])
def test_a_budget(monkeypatch: pytest.MonkeyPatch, explained_first: bool) -> None:
    """What a server's process may spend, it spends on scores and on explanations together."""
    judge = FaultServer(script=FAKE_JUDGE)
    for name in DEFAULTS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LLM_JUDGE_SERVER_URL", judge.url)
    monkeypatch.setenv("REWARDSTACK_MAX_REQUESTS", "1")
    evaluator = Evaluator(Settings.from_env({}), load_registry([]))
    request = sample(temperature=0, cache_enabled=False)
    try:
        if explained_first:
            assert not evaluator.explain(request, limit=30, tenant="", rescore=True).error
            with pytest.raises(BudgetError):
                evaluator.score([request], limit=30, tenant="")
        else:
            assert "ok" == evaluator.score([request], limit=30, tenant="")[0].status
            told = evaluator.explain(request, limit=30, tenant="", rescore=True).score
            assert told is not None and told.reason.startswith("REWARDSTACK_MAX_REQUESTS: ")
    finally:
        judge.kill()


def test_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was explained is not found in the server's memory afterwards, however little it took to score it."""
    for name in DEFAULTS:
        monkeypatch.delenv(name, raising=False)
    evaluator, request = Evaluator(Settings.from_env({}), load_registry([])), Request("gsm8k", "#### 42", "42")
    for _ in range(2):
        told = evaluator.explain(request, limit=30, tenant="", rescore=True).score
        assert told is not None and (told.status, told.cached) == ("ok", False)
