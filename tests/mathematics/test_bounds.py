"""Bounds decide by the text alone, on both sides of each limit."""

from __future__ import annotations

from rewardstack_rules.mathematics.bounds import (
    MAX_ANSWER,
    MAX_BARS,
    MAX_COUNT,
    MAX_DIGITS,
    MAX_EXPONENT,
    MAX_NESTING,
    refusal,
    too_large,
)
from tests.support.table import Table

BIG = MAX_COUNT + 1
CASES = [
    ("x" * MAX_ANSWER, ""),
    ("x" * (MAX_ANSWER + 1), "too long"),
    ("1" * MAX_DIGITS, ""),
    ("1" * (MAX_DIGITS + 1), "too many digits"),
    ("(" * MAX_NESTING + "1" + ")" * MAX_NESTING, ""),
    ("(" * (MAX_NESTING + 1) + "1" + ")" * (MAX_NESTING + 1), "too deeply nested"),
    ("\\frac{" * 30 + "1" + "}{2}" * 30, "too deeply nested"),
    ("((((((1))))))" * 5, ""),
    ("2^{3^{2}}", ""),
    ("2^{3^{2^{2}}}", "too high a tower of powers"),
    ("2^3^2^2", "too high a tower of powers"),
    ("2**3**2**2", "too high a tower of powers"),
    ("((2^3)^2)^2", ""),
    ("x^{2} + y^{3} + z^{4}", ""),
    ("2^{-3}", ""),
    (f"x^{{{MAX_EXPONENT}}}", ""),
    (f"x^{{{MAX_EXPONENT + 1}}}", "too large an exponent"),
    (f"x^{{2y + {MAX_EXPONENT + 1}}}", "too large an exponent"),
    (f"x^-{MAX_EXPONENT + 1}", "too large an exponent"),
    (f"x^2 + {MAX_EXPONENT + 1}", ""),
    (f"{MAX_COUNT}!", ""),
    (f"{BIG}!", "too large a number to count to"),
    (f"{BIG}", ""),
    (f"\\binom{{{BIG}}}{{2}}", "too large a number to count to"),
    ("\\binom{10^9}{10^8}", "too large a number to count to"),
    ("\\sum_{k=1}^{10^9} k", "too large a number to count to"),
    ("\\prod_{k=1}^{100} k", ""),
    ("\\frac{10!}{(5!)^2}", ""),
    ("((9!)!)!", "a factorial of a factorial"),
    ("5!!", "a factorial of a factorial"),
    ("\\frac{9!}{2}!", "a factorial of a factorial"),
    ("(2 + 9!)!", "a factorial of a factorial"),
    ("\\frac{n!}{k!(n-k)!}", ""),
    ("3! \\cdot 4! \\cdot (5)!", ""),
    ("9^{9^9}", "too large an exponent"),
    ("2^{10^{3}}", ""),
    ("2^{2^{3}}", ""),
    ("10^{10^{100}}", "too large an exponent"),
    ("|x|" * (MAX_BARS // 2), ""),
    ("|x" * (MAX_BARS + 1), "too many bars"),
    ("\\lvert x \\rvert" * MAX_BARS, "too many bars"),
]


def test_refusal(table: Table) -> None:
    """What is beyond a limit is refused, or not computed, with a reason; what is within is not."""
    for answer, expected in CASES:
        with table.case(f"{answer[:30]} {len(answer)}"):
            assert (refusal(answer) or too_large(answer)) == expected
