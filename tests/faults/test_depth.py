"""Samples that are nested without end: each has its own outcome, and costs its neighbours nothing."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from rewardstack import Request, score
from rewardstack.core.json_types import TOO_DEEP
from rewardstack_rules.http.protocols.body import LEVELS, prune
from tests.rules.conftest import RewardServer
from tests.support.table import Table

LONG = 9 * 2**20
"""Characters beside what is nested."""
OUTPUT = '"responses_create_params": {"input": "p"}, "response": {"output": [{"type": "message", "content": "#### 5"}]}'
TRAINERS = {
    "Align-Anything": (
        "/get_reward",
        '{"prompts": ["p", "p"], "responses": ["#### 5", "#### 5"], "golden_responses": ["5", NESTED]}',
        200,
        '"statuses":["ok","unscored"]',
    ),
    "OpenRLHF": (
        "/get_reward",
        '{"query": ["p#### 5", "p#### 5"], "prompts": ["p", "p"], "labels": ["5", NESTED]}',
        200,
        '"statuses":["ok","unscored"]',
    ),
    "slime": ("/get_reward", '{"prompt": "p", "response": "#### 5", "label": NESTED}', 400, TOO_DEEP),
    "slime's prompt": ("/get_reward", '{"prompt": NESTED, "response": "#### 5", "label": "5"}', 400, TOO_DEEP),
    "NeMo Gym": ("/verify", f'{{{OUTPUT}, "answer": NESTED}}', 200, '"failure_kind":"rewardstack:unscored"'),
    "NeMo Gym's own fields": (
        "/verify",
        f'{{{OUTPUT}, "answer": "5", "level": NESTED}}',
        200,
        '"failure_kind":"rewardstack:unscored"',
    ),
    "ROLL": (
        "/roll/submit",
        '{"prompt": "p", "response": "#### 5", "reward_info": {"ground_truth": NESTED}}',
        200,
        '"reward_request_id":"unscored_0.0_',
    ),
}
"""For each its path, a body, and the status and words with which the sample that is nested is answered."""


def nested(levels: int) -> str:
    """Nested JSON that alternates between lists and objects."""
    return '[{"a":' * (levels // 2) + "1" + "}]" * (levels // 2)


def body(field: str, levels: int) -> str:
    """A batch of three, the one in the middle with a nested field."""
    good = '{"data_source": "gsm8k", "solution_str": "#### 5", "ground_truth": "5"}'
    extra = "" if field == "ground_truth" else ', "ground_truth": "5"'
    value = f'{{"a": {nested(levels)}}}' if field == "extra_info" else nested(levels)
    bad = f'{{"data_source": "gsm8k", "solution_str": "#### 5", "{field}": {value}{extra}}}'
    return f'{{"items": [{good}, {bad}, {good}]}}'


@pytest.mark.parametrize("levels", [104, 600, 900, 1500, 100_000])
@pytest.mark.parametrize("field", ["ground_truth", "extra_info"])
def test_a_nested_sample_is_alone(server: RewardServer, field: str, levels: int) -> None:
    """Over HTTP a sample that is too deep is unscored and says so, however deep; its neighbours have their scores."""
    reply = server.post("/v1/score", data=body(field, levels), headers={"Content-Type": "application/json"})

    assert reply.status_code == 200, reply.text[:200]
    one, deep, other = reply.json()["scores"]
    assert ("ok", "ok") == (one["status"], other["status"])
    assert ("unscored", TOO_DEEP) == (deep["status"], deep["reason"])


def test_a_nested_sample_in_a_long_body(server: RewardServer) -> None:
    """So it is where the batch has megabytes of other text."""
    long = body("ground_truth", 1500).replace("#### 5", "#### 5" + " " * LONG, 1)

    reply = server.post("/v1/score", data=long, headers={"Content-Type": "application/json"})

    assert reply.status_code == 200, reply.text[:200]
    assert ["ok", "unscored", "ok"] == [one["status"] for one in reply.json()["scores"]]


def test_a_nested_sample_in_another_protocol(server: RewardServer, table: Table) -> None:
    """Every protocol has its own words for a sample that is too deep, and uses them however deep it is."""
    for trainer, levels in product(TRAINERS, [104, 600, 900, 990, 1500, 100_000]):
        with table.case(f"{trainer}, {levels}"):
            path, text, status, words = TRAINERS[trainer]

            data = text.replace("NESTED", nested(levels))
            reply = server.post(f"{path}?reward_type=gsm8k", data=data, headers={"Content-Type": "application/json"})

            assert reply.status_code == status, reply.text[:200]
            assert words in reply.text


@pytest.mark.parametrize("levels", [104, 600, 1500, 100_000])
def test_a_nested_sample_of_a_trainer(monkeypatch: pytest.MonkeyPatch, levels: int) -> None:
    """A trainer's own sample that is too deep is unscored, and no exception."""
    value: Any = "5"
    for _ in range(levels):
        value = [value]

    [one] = score([Request("gsm8k", "#### 5", value)])

    assert ("unscored", TOO_DEEP) == (one.status, one.reason)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("[" * (LEVELS + 9) + "]" * (LEVELS + 9), "[" * LEVELS + "null" + "]" * LEVELS),
        ("[" * LEVELS + '[1],"]",{"a":[]},2' + "]" * LEVELS, "[" * LEVELS + 'null,"]",null,2' + "]" * LEVELS),
        ('["[[\\"[[",{}]', '["[[\\"[[",{}]'),
        ("[" * (LEVELS + 9), "[" * LEVELS + "null"),
        ("]]", "]]"),
    ],
)
def test_what_is_kept(text: str, kept: str) -> None:
    """What stands too deep is null, what is beside it stays, and brackets within texts are none."""
    assert kept == prune(text.encode()).decode()
