"""How the return value of a reward function is read."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from rewardstack_rules.functions.outcome import Outcome
from rewardstack_rules.functions.results import ResultError, as_outcome
from tests.support.table import Table


class Tensor:
    """What of a tensor's interface is used."""

    def __init__(self, *values: float) -> None:
        self._values = values
        self.shape = (len(values),) if len(values) != 1 else ()

    def item(self) -> float:
        """Return the one value."""
        (value,) = self._values
        return value


NO_SCORE = Outcome(None, "the reward function gave no score")
READ: list[tuple[Any, Outcome]] = [
    (1, Outcome(1.0)),
    (0.5, Outcome(0.5)),
    (-2.0, Outcome(-2.0)),
    (True, Outcome(1.0)),
    (np.float32(0.5), Outcome(0.5)),
    (np.int64(3), Outcome(3.0)),
    (np.bool_(True), Outcome(1.0)),
    (np.array(0.5), Outcome(0.5)),
    (np.array([0.5]), Outcome(0.5)),
    (np.array([[0.5]]), Outcome(0.5)),
    (Tensor(0.5), Outcome(0.5)),
    (Decimal("0.5"), Outcome(0.5)),
    (Fraction(1, 2), Outcome(0.5)),
    ([0.5], Outcome(0.5)),
    ((0.5,), Outcome(0.5)),
    ([np.float64(0.5)], Outcome(0.5)),
    ([[0.5]], Outcome(0.5)),
    ([{"score": 0.5, "acc": 1}], Outcome(0.5, parts={"acc": 1.0})),
    ({"score": 1}, Outcome(1.0)),
    ({"score": [0.5]}, Outcome(0.5)),
    ({"score": 1, "a": np.int64(2)}, Outcome(1.0, parts={"a": 2.0})),
    ({"score": 1.0, "acc": True, "pred": "x"}, Outcome(1.0, parts={"acc": 1.0})),
    ({"score": 1.0, "pred": None, "detail": {"a": 1}, "tokens": [1]}, Outcome(1.0)),
    ({"score": 0.0, "reason": "no box"}, Outcome(0.0, "no box")),
    ({"score": 0.0, "reward": 1.0}, Outcome(0.0, parts={"reward": 1.0})),
    ({"reward": 0.5}, Outcome(0.5)),
    (
        {"rewards": np.array([0.5]), "scores": [1], "extra_logs": {"length": np.array([3]), "text": ["a"]}},
        Outcome(0.5, parts={"scores": 1.0, "length": 3.0}),
    ),
    (None, NO_SCORE),
    ([None], NO_SCORE),
    ({"score": None}, NO_SCORE),
    ({"score": None, "reason": "no label"}, Outcome(None, "no label")),
    (Outcome(0.5), Outcome(0.5)),
]
REFUSED: list[tuple[Any, str]] = [
    ("0.5", "the text '0.5'; return a number"),
    ("x" * 999, "the text '" + "x" * 40 + "'; return a number"),
    (1j, "a complex; return"),
    ((0.5, {"why": "x"}), "a tuple of 2 for one response"),
    ([], "a list of 0 for one response"),
    ([0.5, 0.5], "a list of 2 for one response"),
    (np.array([0.5, 0.5]), "a ndarray of 2 for one response"),
    (float("nan"), "nan, which is not finite"),
    (np.float64("nan"), "nan, which is not finite"),
    (float("-inf"), "-inf, which is not finite"),
    (10**400, "1000000000000000000000000000000000000000, which is not finite"),
    ({"score": float("nan")}, "nan as 'score', which is not finite"),
    ({"score": 1.0, "acc": float("inf")}, "inf as 'acc', which is not finite"),
    ({"acc": 1.0, "pred": "x"}, 'a dict without "score" (it has: acc, pred)'),
    ({}, 'a dict without "score" (it has: nothing)'),
    ({"score": "1"}, "the text '1' as 'score'"),
    ((one for one in [0.5]), "a generator (use `return` instead of `yield`)"),
    (object(), "an object; return"),
]


def test_read(table: Table) -> None:
    """Numbers are read, alone, in a list of one and in a dict with a score, whose other numbers are parts."""
    for at, (result, outcome) in enumerate(READ):
        with table.case(f"{at} {result!r}"):
            assert as_outcome(result) == outcome


def test_refused(table: Table) -> None:
    """Anything else is an error that says what was returned and what to return."""
    for at, (result, complaint) in enumerate(REFUSED):
        with table.case(f"{at} {str(result)[:40]}"), pytest.raises(ResultError) as caught:
            as_outcome(result)
        with table.case(f"{at} message"):
            assert complaint in str(caught.value)
