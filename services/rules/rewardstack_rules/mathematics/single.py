"""Whether two single things are equal: units, percentages, ratios, numerals with a base, numbers, algebra."""

from __future__ import annotations

import re

from rewardstack_rules.mathematics import algebra, equations, exact, ratios, symbolic, units, words
from rewardstack_rules.mathematics.notation import squeeze
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
    worded = _equal_in_words(one, other)
    if worded is not None:
        tell("words")
        return worded
    (one, unit), (other, expected_unit) = units.measure(one), units.measure(other)
    if {unit, expected_unit} == {"dozen", ""} and _equal_in_value(
        f"12({one if unit else other})", other if unit else one
    ):
        return True
    if unit == "cent" and not expected_unit and "." in other:
        expected_unit = "dollar"  # 0.75 can be no number of cents
    if units.units_differ(unit, expected_unit):
        tell("units")
        return _equal_converted((one, unit), (other, expected_unit))
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


def _equal_converted(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Two quantities in units that differ."""
    factor = units.ratio(one[1], other[1])
    if factor is None:
        return False
    number, expected = exact.number(one[0]), exact.number(other[0])
    if number is not None and expected is not None:
        return number.value * factor == expected.value
    return algebra.equal(f"\\frac{{{factor.numerator}}}{{{factor.denominator}}}({one[0]})", other[0]) or False


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


def _equal_in_words(one: str, other: str) -> bool | None:
    """Times of day and words; None where neither is any of these."""
    time, expected_time = words.clock(one), words.clock(other)
    if time is not None and expected_time is not None:
        return words.same_time(time, expected_time)
    if time is not None and time[1] == 0 and other.isdecimal():
        return time[0] == int(other)
    said, expected = words.phrase(one), words.phrase(other)
    if said is None and expected is None:
        return None
    return said == expected or (words.says_nothing(one) and words.says_nothing(other))


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
    base = match[2] or words.numeral(f"\\text{{{match[3]}}}")
    return (match[1], base) if base else None
