"""Answers within the bounds need a bounded stack, and have one verdict however little of it the caller leaves."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial

import pytest

from rewardstack_verifier import Comparison, equivalent
from rewardstack_verifier.reading.readings import parse_readings

NESTED = {
    "fractions": "1/" * 490 + "1",
    "factorials": "5" + "!" * 250,
    "quotients": "a/b*" * 150 + "1",
    "powers": "2^" * 250 + "1",
    "signs": "-" * 490 + "2 and 1/3",
    "functions": "\\sin" * 245 + "x",
    "functions of opposites": "\\sin-" * 190 + "x",
    "signs of both": "1\\pm" * 240 + "1",
    "unions": "R\\cup" * 150 + "R",
    "within the bound": "((1/" * 9 + "2" + "))" * 9,
}
REFERENCES = ("5", "\\sin(x)", "(1, 2) \\cup (3, 4)", "5 cm")
SPARE = (60, 90, 120, 240)
"""Frames that a caller leaves."""


@pytest.mark.parametrize("answer", NESTED.values(), ids=NESTED)
def test_any_stack(answer: str) -> None:
    """No verdict depends on the depth of the stack."""
    for reference in REFERENCES:
        expected = equivalent(answer, reference)
        assert not expected.equal
        for spare in SPARE:
            parse_readings.cache_clear()
            assert _deep(spare, partial(equivalent, answer, reference)) == expected


def _deep(spare: int, work: Callable[[], Comparison]) -> Comparison:
    """Return what work returns where few frames are left."""

    def down(frames: int) -> Comparison:
        return down(frames - 1) if frames > 0 else work()

    return down(sys.getrecursionlimit() - len(inspect.stack(0)) - spare)
