"""Whether two single things are equal: percentages, ratios, numerals with a base, numbers, algebra."""

from __future__ import annotations

import re

from rewardstack_rules.mathematics import algebra, equations, exact, ratios, symbolic
from rewardstack_rules.mathematics.notation import squeeze
from rewardstack_rules.mathematics.reading import numerals
from rewardstack_rules.mathematics.trail import tell

_BASED = re.compile(r"\(?([0-9A-F]+)\)?\s*_\s*(?:\{?\(?(\d+)\)?\}?|\{?\s*\\text\{\s*(\w+)\s*\}\s*\}?)")
_PRIMED = re.compile(r"[A-Za-z]'")
_LETTER = re.compile(r"[A-Za-z]")


def equal(one: str, other: str) -> bool:
    """Whether an answer that is one thing is the reference.

    Args:
        one: the answer, tidied; no list, matrix or choice.
        other: the reference, the same.
    """
    if one.endswith("%") or other.endswith("%"):
        tell("percentages")
        return _equal_percentages(one, other)
    if _LETTER.fullmatch(one) and _LETTER.fullmatch(other):
        return one == other  # math_verify reads E and e alike
    based = _equal_in_base(one, other)
    if based is None:
        based = ratios.equal(one, other)
    return _equal_in_value(one, other) if based is None else based


def is_based(text: str) -> bool:
    """Whether a tidied text is a numeral with its base."""
    return _BASED.fullmatch(text) is not None


def _equal_in_value(one: str, other: str) -> bool:
    number, expected_number = exact.number(one), exact.number(other)
    if number is not None and expected_number is not None:
        tell("numbers")
        return exact.same(number, expected_number)
    if squeeze(one) == squeeze(other):
        tell("the same text")
        return True
    if (_PRIMED.search(one) is None) != (_PRIMED.search(other) is None):
        return False  # math_verify drops the prime of A'
    if ratios.is_clock(one) != ratios.is_clock(other):
        return False
    if ratios.is_time(one) != ratios.is_time(other) and not (ratios.terms(one) and ratios.terms(other)):
        return False
    if "=" in one and "=" in other:
        if equations.is_unsolved(one, other):
            return False
        if equations.proportional(one, other):
            return True
    decided = algebra.equal(one, other)
    tell("math_verify" if decided is None else "algebra")
    return symbolic.equal(one, other) if decided is None else decided


def _equal_percentages(one: str, other: str) -> bool:
    """At least one has a percent sign."""
    number, expected = exact.number(one.rstrip("% ")), exact.number(other.rstrip("% "))
    if one.endswith("%") == other.endswith("%") or number is None or expected is None:
        return equal(one.rstrip("% "), other.rstrip("% "))
    if one.endswith("%"):
        return exact.same_percentage(number, expected)
    # 1.5 for 150 % leaves nothing open: what was asked for is a percentage.
    return exact.same_percentage(expected, number, asked=True) or (
        expected.value > 100 and number.value * 100 == expected.value
    )


def _equal_in_base(one: str, other: str) -> bool | None:
    """Numerals with a base, such as `1011_2`; None where neither has one. A base left out is the other's."""
    based, expected = _based(one), _based(other)
    if based is None and expected is None:
        return None
    if based is not None and expected is not None:
        return based == expected
    return (based[0] if based else one) == (expected[0] if expected else other)


def _based(text: str) -> tuple[str, str] | None:
    """Digits and base."""
    match = _BASED.fullmatch(text)
    if match is None:
        return None
    base = match[2] or numerals.number([match[3].lower()])
    return (match[1], str(base)) if base else None
