"""`POST /v1/score`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rewardstack.core.deadline import HEADER
from tests.rules.conftest import OWN_FUNCTIONS, RewardServer
from tests.support.table import Table
from tests.support.waiting import eventually

CASES = json.loads((Path(__file__).resolve().parents[1] / "cases" / "chat_responses.json").read_text())
RIGHT = {"data_source": "gsm8k", "solution_str": "#### 42", "ground_truth": "42"}
KEYS = ["value", "status", "reason", "source", "cached", "latency_ms", "details"]
DETAILS = ["score", "acc", "ok", "fallback", "unscored", "failed", "cached", "latency_ms", "label_mass"]


def test_reply(server: RewardServer) -> None:
    """Each sample has a score with all that is known of it."""
    [score] = server.score(RIGHT | {"solution_str": "#### 42 "})

    assert (list(score), list(score["details"])) == (KEYS, DETAILS)
    assert tuple(score[key] for key in KEYS[:5]) == (1.0, "ok", "", "rule:gsm8k", False)


def test_order(server: RewardServer) -> None:
    """Scores come in the order of the samples, whatever routes these take."""
    sources = ["gsm8k", "exact_match", "rule_remote_gsm8k", "gsm8k_test_split", "rule_remote_concise"]

    scores = server.score(*(RIGHT | {"data_source": source} for source in sources))

    expected = [
        ("rule:gsm8k", 1.0),
        ("rule:exact_match", 0.0),
        ("rule:gsm8k", 1.0),
        ("rule:gsm8k", 1.0),
        ("rule:concise", 1.0),
    ]
    assert [(score["source"], score["value"]) for score in scores] == expected


def test_fields_of_a_row(server: RewardServer) -> None:
    """A row of `rewardstack score` is a sample: it may have `response` and verl's `reward_model`."""
    row = {"data_source": "gsm8k", "response": "#### 42", "reward_model": {"style": "rule", "ground_truth": "42"}}

    scores = server.score(row, row | {"solution_str": None, "ground_truth": None}, row | {"solution_str": "#### 41"})

    assert [(score["status"], score["value"]) for score in scores] == [("ok", 1.0), ("ok", 1.0), ("ok", 0.0)]


def test_no_samples(server: RewardServer) -> None:
    """No samples have no scores."""
    assert server.score() == []


def test_parts(server: RewardServer) -> None:
    """A reward of several parts reports them."""
    [score] = server.score(
        RIGHT | {"data_source": "math_verifier", "solution_str": "<think>a</think><answer>42</answer>"}
    )

    assert (score["value"], score["details"]["parts"]) == (1.5, {"format": 0.5, "accuracy": 1.0})


def test_messages_and_targets(server: RewardServer) -> None:
    """Chat messages, and a reference in a `target`, are read as the client reads them; the others are named."""
    samples = [*CASES["read"][:5], *CASES["refused"]]
    reference = {"ground_truth": {"target": ["42"]}}
    scores = server.score(*(RIGHT | {"solution_str": one["solution_str"]} | reference for one in samples))
    expected = [("ok", 1.0)] * 5 + [("unscored", 0.0)] * len(CASES["refused"])
    assert expected == [(one["status"], one["value"]) for one in scores]
    assert all(one["reason"].startswith("solution_str: ") for one in scores[5:])

    [score] = server.score(RIGHT | {"ground_truth": {"answer": "42"}})
    assert "unscored" == score["status"]
    assert "ground_truth: " in score["reason"]


def test_best_reference(server: RewardServer) -> None:
    """The value is the best over the references."""
    [score] = server.score(RIGHT | {"ground_truth": ["1", "42"]})

    assert score["value"] == 1.0


BAD_SAMPLES: list[tuple[dict[str, Any], str, str]] = [
    ({"solution_str": None}, "unscored", "solution_str"),
    ({"solution_str": 42}, "unscored", "solution_str"),
    ({"solution_str": {"text": "#### 42"}}, "unscored", "solution_str"),
    ({"solution_str": ["#### 42"]}, "unscored", "solution_str"),
    ({"ground_truth": None}, "unscored", "ground_truth"),
    ({"ground_truth": ""}, "unscored", "ground_truth"),
    ({"ground_truth": []}, "unscored", "ground_truth"),
    ({"ground_truth": {"a": 1}}, "unscored", "ground_truth"),
    ({"ground_truth": "many"}, "unscored", "the reference has no number"),
    ({"extra_info": [1]}, "unscored", "extra_info"),
    ({"extra_info": {"timeout": "soon"}}, "unscored", "extra_info.timeout"),
    ({"solution_str": ""}, "ok", "no answer"),
    ({"solution_str": "\ud800#### 41"}, "ok", ""),
    ({"solution_str": "\u0000"}, "ok", ""),
    ({"solution_str": "<answer>" * 20000}, "ok", ""),
    ({"data_source": "math", "solution_str": "\ud800"}, "ok", ""),
    ({"data_source": "math_verifier", "solution_str": "<answer>" * 20000}, "ok", ""),
    ({"data_source": "math", "solution_str": "x" * 10_000_000}, "ok", "longer than 2000000 characters"),
    ({"data_source": "math", "ground_truth": "\U0001f600" * 5_000_000}, "unscored", "too long"),
    ({"data_source": "math", "ground_truth": None}, "unscored", "ground_truth"),
]


def test_one_bad_sample(server: RewardServer, table: Table) -> None:
    """A bad sample is its own outcome, worth 0, with a reason; its neighbors are scored."""
    for change, status, reason in BAD_SAMPLES:
        with table.case(f"{change!r:.60}"):
            before, bad, after = server.score(RIGHT, RIGHT | change, RIGHT)

            assert (status, 0.0) == (bad["status"], bad["value"])
            assert reason in bad["reason"]
            assert (before["value"], after["value"]) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("source", "extra", "field"),
    [
        ("gsm8k", {"method": "lax"}, "extra_info.method"),
        ("gsm8k", {"timeout": "soon"}, "extra_info.timeout"),
        ("length", {}, "extra_info.target_length"),
        ("regex_format", {"pattern": "("}, "extra_info.pattern"),
        ("json_schema", {}, "extra_info.schema"),
    ],
)
def test_wrong_option_of_all(server: RewardServer, source: str, extra: dict[str, Any], field: str) -> None:
    """An option that is wrong in every sample is each sample's outcome, which names it; inline and isolated."""
    scores = server.score(*[RIGHT | {"data_source": source, "extra_info": extra}] * 3)

    assert [("unscored", field)] * 3 == [(score["status"], score["field"]) for score in scores]
    assert all(score["reason"].startswith(field) for score in scores)


def test_integer_of_a_million_digits(server: RewardServer) -> None:
    """A number that Python would refuse to read is a sample's outcome like any other number."""
    body = '{"items": [{"data_source": "gsm8k", "solution_str": %s, "ground_truth": "1"}]}' % ("1" * 10**6)

    reply = server.post("/v1/score", data=body, headers={"Content-Type": "application/json"})

    assert (reply.status_code, reply.json()["scores"][0]["status"]) == (200, "unscored")


def test_same_sample_again(server: RewardServer) -> None:
    """A sample that was scored is read from the cache; each worker process has its own where there is no Redis."""
    same = RIGHT | {"solution_str": "#### 42\ncached"}

    assert server.score(same)[0]["cached"] is False
    eventually(lambda: server.score(same)[0]["cached"])
    assert server.score(same)[0]["value"] == 1.0


@pytest.mark.parametrize("milliseconds", ["0", "0.0"])
def test_expired_deadline(server: RewardServer, milliseconds: str) -> None:
    """Work that nobody waits for any more is dropped, and says so."""
    [score] = server.score(RIGHT, headers={HEADER: milliseconds})

    assert (score["status"], "deadline" in score["reason"]) == ("failed", True)


def test_deadline_in_time(start: Callable[..., RewardServer]) -> None:
    """Work that is done in time is scored, and what takes longer is cut off at the deadline."""
    functions = os.pathsep.join(map(str, OWN_FUNCTIONS))
    server = start("--workers", "1", REWARD_FUNCTIONS=functions, VERIFY_TIMEOUT=3600)
    slow = {"data_source": "rule_remote_hang", "solution_str": "slow"}

    quick, cut = server.score(RIGHT, slow, headers={HEADER: "5000"})

    assert (quick["status"], cut["status"]) == ("ok", "failed")
    assert "not scored before its deadline" in cut["reason"]
