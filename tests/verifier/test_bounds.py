"""Bounds decide by the text alone, on both sides of each limit."""

from __future__ import annotations

from rewardstack_verifier.bounds import (
    MAX_ANSWER,
    MAX_BARS,
    MAX_DIGITS,
    MAX_NESTING,
    refusal,
)
from tests.support.table import Table

CASES = [
    ("x" * MAX_ANSWER, ""),
    ("x" * (MAX_ANSWER + 1), "too long"),
    ("1" * MAX_DIGITS, ""),
    ("(" * MAX_NESTING + "1" + ")" * MAX_NESTING, ""),
    ("(" * (MAX_NESTING + 1) + "1" + ")" * (MAX_NESTING + 1), "too deeply nested"),
    ("\\frac{" * 30 + "1" + "}{2}" * 30, "too deeply nested"),
    ("((((((1))))))" * 5, ""),
    ("2^{3^{2}}", ""),
    ("((2^3)^2)^2", ""),
    ("x^{2} + y^{3} + z^{4}", ""),
    ("2^{-3}", ""),
    ("\\prod_{k=1}^{100} k", ""),
    ("\\frac{10!}{(5!)^2}", ""),
    ("\\frac{n!}{k!(n-k)!}", ""),
    ("3! \\cdot 4! \\cdot (5)!", ""),
    ("2^{10^{3}}", ""),
    ("2^{2^{3}}", ""),
    ("|x|" * (MAX_BARS // 2), ""),
    ("|x" * (MAX_BARS + 1), "too many bars"),
    ("\\lvert x \\rvert" * MAX_BARS, "too many bars"),
]


def test_refusal(table: Table) -> None:
    """What is beyond a limit is refused with a reason; what is within is not."""
    for answer, expected in CASES:
        with table.case(f"{answer[:30]} {len(answer)}"):
            assert refusal(answer) == expected
