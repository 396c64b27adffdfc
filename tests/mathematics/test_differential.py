"""Generated pairs, against what is known of them and against math_verify."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.mathematics.math_verify_alone import TIMEOUT, verdicts
from tests.mathematics.pairs import Pair, pairs

SEED = 20_260
EACH = 8
RULES = json.loads((Path(__file__).parents[1] / "cases" / "mathematics_differences.json").read_text())
PAIRS = list(pairs(SEED, EACH))
RESPONSES = [(pair.reference, f"Therefore it is $\\boxed{{{pair.answer}}}$.") for pair in PAIRS]

_OURS = """
import json, sys
from rewardstack_rules.mathematics import verify
for line in sys.stdin:
    reference, response = json.loads(line)
    print(json.dumps(verify(response, [reference]).right))
"""


def test_pairs_are_decided_as_they_were_made() -> None:
    """Every pair has the verdict that follows from how it was made."""
    lines = "".join(json.dumps(pair) + "\n" for pair in RESPONSES)
    done = subprocess.run(
        [sys.executable, "-c", _OURS],
        input=lines,
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    decided = [json.loads(line) for line in done.stdout.splitlines()]
    assert [] == [pair for pair, right in zip(PAIRS, decided, strict=True) if right is not pair.right]


def test_differences_are_explained() -> None:
    """math_verify decides otherwise for the transformations that the data explains, and for no other."""
    explained = {rule["transformation"]: rule["math_verify"] for rule in RULES}
    assert all(rule["reason"] for rule in RULES)
    different: list[Pair] = [
        pair for pair, right in zip(PAIRS, verdicts(RESPONSES), strict=True) if right is not pair.right
    ]
    assert explained == {pair.transformation: not pair.right for pair in different}
