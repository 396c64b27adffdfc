"""Answers are compared by their values: numbers exactly, functions at points, what has parts by its parts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rewardstack_verifier.comparison.compare import compare
from rewardstack_verifier.question import Question
from rewardstack_verifier.reading.operators import unevaluated_operators
from rewardstack_verifier.verification import decide
from tests.support.table import Table
from tests.verifier.fuzz import MOST_FLIPS, flips, near_misses, questions
from tests.verifier.writings import WRITINGS

FILES = sorted((Path(__file__).parents[1] / "cases" / "values").glob("*.json"))
CASES = [case for path in FILES for case in json.loads(path.read_text())]
WRITTEN = 150
"""Questions of the cases that are written in other ways."""
SOME_NEAR, NEAR = 500, 10_000
"""Pairs of numbers and functions that are nearly equal: in each run, and each night."""
POLICIES = {
    "a decimal stands for what rounds to it, and a comma may be decimal": r"\d[.,]\d",
    "a value is said with the decimal that it is about": r"≈|\\approx",
    "a percentage that is asked for may be said as a number above one": r"%",
    "a base may be left out where it is asked for": r"\d_\{?\d",
    "an answer may add a unit that may be a factor, but not leave it out": r"^\d+ [a-z]$",
    "a curve or sum of powers says the value of its left side, and that value says no curve": r"(x.*[yz]|\^2\+).*=",
}
"""Why an answer that equals a reference need not be equalled by it, as `docs/rules.md` has it, by what both show."""


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_values(path: Path, table: Table) -> None:
    """Two answers are the same, are not, or it is left to their texts, as the data says with a reason."""
    for case in json.loads(path.read_text()):
        with table.case(f"{case['answer']} | {case['reference']}"):
            assert compare(case["answer"], case["reference"]) is case["same"], case["reason"]


def test_either_order(table: Table) -> None:
    """Which of two is the answer matters only for decimals, work that is left undone, and where `turned` says so."""
    exact = [case for case in CASES if "." not in case["answer"] + case["reference"] and _is_done(case)]
    for at, case in enumerate(exact):
        with table.case(f"{at}: {case['answer']} and {case['reference']}"):
            assert compare(case["reference"], case["answer"]) is case.get("turned", case["same"])


def _is_done(case: dict[str, Any]) -> bool:
    return unevaluated_operators(case["answer"]) == unevaluated_operators(case["reference"])


@pytest.mark.nightly
def test_order_of_cases() -> None:
    """With answer and reference swapped a verdict is the same, except where a policy says why it is not."""
    asked = [one for one in questions() if not unevaluated_operators(one.answer + one.expected[0])]
    swapped = [(one, Question(one.expected[0], (one.answer,))) for one in asked]
    turned = [one for one, other in swapped if bool(decide(one).right) is not bool(decide(other).right)]
    reasons = {one: [name for name, sign in POLICIES.items() if _shows(sign, one)] for one in turned}
    assert [one for one, names in reasons.items() if not names] == []
    assert {name for names in reasons.values() for name in names} == {*POLICIES}


def _shows(sign: str, question: Question) -> bool:
    return any(re.search(sign, text) for text in (question.answer, *question.expected))


@pytest.mark.nightly
def test_how_it_is_written() -> None:
    """What changes the looks of an answer or reference, not its meaning, changes one verdict in a thousand at most."""
    found = list(flips(Random(18).sample(questions(), WRITTEN)))
    assert len(found) > WRITTEN * len(WRITINGS)
    assert len([flip for flip in found if flip]) <= MOST_FLIPS * len(found)


@pytest.mark.parametrize("count", [SOME_NEAR, pytest.param(NEAR, marks=pytest.mark.nightly)])
def test_near_misses(count: int) -> None:
    """Of numbers and functions that differ by very little none is taken for equal."""
    assert [pair for pair in near_misses(Random(18), count) if compare(*pair) is not False] == []


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "9^{9^{9^{9}}}",
            "((((10!)!)!)!)!",
            "10^{10^{10}}",
            "\\binom{10^9}{5*10^8}",
            "x^{x^{x^{x}}}",
            "1e999",
            "(1e999)!",
        ),
        *("\\sin(10^{10^{6}})", "e^{e^{e^{e^{e}}}}", "\\sqrt[1000]{2}+\\sqrt[999]{3}", "|" * 20, "(" * 30, "-" * 900),
    ],
)
def test_hostile_answers(answer: str) -> None:
    """An answer made to take for ever is not: it is wrong, or left open."""
    assert compare(answer, "\\frac{1}{3}") is not True
