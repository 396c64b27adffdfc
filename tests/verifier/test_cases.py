"""The verdicts of `tests/cases/mathematics/*.json`, each with its reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rewardstack_verifier import Options, verify
from rewardstack_verifier.extraction.extract import STANDARD
from tests.support.table import Table
from tests.verifier.math_verify_alone import verdicts

FILES = sorted((Path(__file__).parents[1] / "cases" / "mathematics").glob("*.json"))
CASES = [case for path in FILES for case in json.loads(path.read_text())]
BEYOND = json.loads((FILES[0].parent / "bounds.json").read_text())
"""What math_verify alone may take minutes for."""
PARTS = 8
"""In which it is asked about the others, a quarter of a minute for each: each has its own timeout and CPU."""


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_case(path: Path, table: Table) -> None:
    """The verdict is the one that the data gives a reason for, by the extraction that it names, else `standard`."""
    for place, case in enumerate(json.loads(path.read_text())):
        with table.case(f"{place}: {case['reference'][:30]} | {case['reason']}"):
            options = Options(case.get("extraction", STANDARD))
            verdict = verify(case["response"], [case["reference"]], options)
            assert verdict.right is case["right"], case["reason"]


def test_cases_are_unique() -> None:
    """No case is duplicated, and each has a reason."""
    keys = [(case["reference"], case["response"]) for case in CASES]
    assert len(set(keys)) == len(keys)
    assert all(case["reason"] for case in CASES)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
def test_differences(part: int) -> None:
    """math_verify decides otherwise exactly where the data says that it does."""
    decided = [case for case in CASES if case not in BEYOND][part::PARTS]
    expected = [case.get("math_verify", case["right"]) for case in decided]
    assert verdicts((case["reference"], case["response"]) for case in decided) == expected
