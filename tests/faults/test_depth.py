"""Samples that are nested without end: each has its own outcome, and costs its neighbours nothing."""

from __future__ import annotations

from typing import Any

import pytest

from rewardstack import Request, score
from rewardstack.plain import MOST_DEEP
from rewardstack_rules.protocols.depth import LEVELS, pruned
from tests.rules.conftest import RewardServer

DEEP = f"its reference or extra_info is nested more than {MOST_DEEP} deep"


def nested(levels: int) -> str:
    """JSON, lists and objects by turns."""
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
    assert ("unscored", DEEP) == (deep["status"], deep["reason"])


@pytest.mark.parametrize("levels", [104, 600, 1500, 100_000])
def test_a_nested_sample_of_a_trainer(monkeypatch: pytest.MonkeyPatch, levels: int) -> None:
    """A trainer's own sample that is too deep is unscored, and no exception."""
    value: Any = "5"
    for _ in range(levels):
        value = [value]

    [one] = score([Request("gsm8k", "#### 5", value)])

    assert ("unscored", DEEP) == (one.status, one.reason)


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
    assert kept == pruned(text.encode()).decode()
