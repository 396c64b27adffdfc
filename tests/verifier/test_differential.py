"""Generated pairs, against what is known of them and against math_verify."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rewardstack_verifier import verify
from tests.support.table import Table
from tests.verifier.math_verify_alone import verdicts
from tests.verifier.pairs import Pair, pairs

SEED = 20_260
EACH = 8
RULES = json.loads((Path(__file__).parents[1] / "cases" / "mathematics_differences.json").read_text())
PAIRS = list(pairs(SEED, EACH))
RESPONSES = [(pair.reference, f"Therefore it is $\\boxed{{{pair.answer}}}$.") for pair in PAIRS]


def test_pairs_are_decided_as_they_were_made(table: Table) -> None:
    """Every pair has the verdict that follows from how it was made."""
    for place, (pair, (reference, response)) in enumerate(zip(PAIRS, RESPONSES, strict=True)):
        with table.case(f"{place}: {pair.transformation}"):
            assert verify(response, [reference]).right is pair.right, pair


@pytest.mark.nightly
def test_differences_are_explained() -> None:
    """math_verify decides otherwise for the transformations that the data explains, and for no other."""
    explained = {rule["transformation"]: rule["math_verify"] for rule in RULES}
    assert all(rule["reason"] for rule in RULES)
    different: list[Pair] = [
        pair for pair, right in zip(PAIRS, verdicts(RESPONSES), strict=True) if right is not pair.right
    ]
    assert explained == {pair.transformation: not pair.right for pair in different}
