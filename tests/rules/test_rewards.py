"""The built-in reward functions: the cases stand in `tests/cases/rewards.json`, each with its reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rewardstack.routes import RULES
from rewardstack_rules.catalogue import load_registry
from rewardstack_rules.execute import judge
from rewardstack_rules.rewards.format import answer_in_format
from rewardstack_rules.rewards.gsm8k import gsm8k

CASES = json.loads((Path(__file__).parents[1] / "cases" / "rewards.json").read_text())
REGISTRY = load_registry([])


@pytest.mark.parametrize("case", CASES, ids=[f"{case['rule']}: {case['why']}" for case in CASES])
def test_value(case: dict[str, Any]) -> None:
    """A reward function gives each case the value, and the parts, that stand in the data."""
    outcome = judge(REGISTRY.get(case["rule"]), case["response"], case["references"], {})

    assert (case["value"], case.get("parts")) == (outcome.value, outcome.parts)


def test_range() -> None:
    """No case's value lies outside the range that its rule declares."""
    ranges = {case["rule"]: REGISTRY.get(case["rule"]).range for case in CASES}

    outside = [
        c for c in CASES if c["value"] is not None and not ranges[c["rule"]][0] <= c["value"] <= ranges[c["rule"]][1]
    ]

    assert outside == []


def test_every_rule_has_cases() -> None:
    """The data has cases for every built-in rule, and the client knows the same rules by name."""
    assert {case["rule"] for case in CASES} == {rule.name for rule in REGISTRY} == set(RULES)


@pytest.mark.parametrize(
    "response",
    ["<answer>" * 200_000, "<think>" + "<answer></answer>" * 200_000, "<think>" + "</think>" * 500_000],
    ids=["answers", "pairs", "ends"],
)
def test_format_of_degenerate_responses(response: str) -> None:
    """Megabytes of tags are not the format, and are read in one pass."""
    assert answer_in_format(response) is None


@pytest.mark.parametrize(
    "response", ["#" * 2_000_000, "#### " * 400_000, "#### " + "1" * 2_000_000, "#### " + "1," * 10**6]
)
def test_gsm8k_of_degenerate_responses(response: str) -> None:
    """Megabytes of marks or digits are a wrong answer, and are read in one pass."""
    assert gsm8k(response, "42").value == 0.0
