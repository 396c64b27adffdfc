"""Plain numbers, compared exactly: integers, decimals, fractions, mixed numbers, powers of ten."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from rewardstack_rules.mathematics.comparison.decimals import Decimal, reach

PLACES = 6
"""Digits behind the point from which on a decimal may stand for a number that it rounds, or cuts off."""

RELATIVE = Fraction(1, 100_000)
"""How far it may be from that number in proportion (math_verify compares six digits behind the point, and no more)."""

_SCALE = r"(?:\\times|\\cdot|\*)\s*10\s*\^\s*(?:\{\s*([+-]?\d{1,3})\s*\}|(\d{1,3}))"
_DECIMAL = re.compile(rf"([+-]?)\s*(\d+(?:\.\d*)?|\.\d+)\s*(?:{_SCALE})?")
_DOLLARS = re.compile(r"^([+-]?)\s*\\text\{dollar\}\s*")
_POWER = re.compile(r"^([+-]?)\s*(?=10\s*\^)")
_FRACTION = re.compile(
    r"(?P<sign>[+-]?)\s*"
    r"(?:(?P<whole>\d*)\s*\\frac\s*\{\s*(?P<above>[+-]?\d+)\s*\}\s*\{\s*(?P<below>[+-]?\d+)\s*\}"
    r"|(?P<dividend>\d+)\s*/\s*(?P<divisor>[+-]?\d+))"
)


class Number(NamedTuple):
    """A plain number.

    Args:
        value: exactly what is written.
        places: digits behind the point.
    """

    value: Fraction
    places: int


def number(text: str) -> Number | None:
    """The plain number, or amount of dollars, that a tidied text is; None where it is anything else."""
    text = _DOLLARS.sub(r"\1", text)
    text = _POWER.sub(r"\g<1>1\\cdot ", text.strip())
    decimal = _DECIMAL.fullmatch(text)
    if decimal is not None:
        sign, digits, braced, bare = decimal.groups()
        value = Fraction("0" + digits) * Fraction(10) ** int(braced or bare or 0)
        return Number(-value if sign == "-" else value, len(digits.partition(".")[2]) - int(braced or bare or 0))
    fraction = _FRACTION.fullmatch(text)
    if fraction is None:
        return None
    sign, whole, above, below = (fraction[name] or "" for name in ("sign", "whole", "above", "below"))
    above, below = above or fraction["dividend"], below or fraction["divisor"]
    if int(below) == 0 or (whole and "-" in above + below):
        return None
    value = int(whole or 0) + Fraction(int(above), int(below))
    return Number(-value if sign == "-" else value, 0)


def text(value: Fraction) -> str:
    """A rational number as it is written."""
    return str(value) if value.denominator == 1 else f"\\frac{{{value.numerator}}}{{{value.denominator}}}"


def same(answer: Number, reference: Number) -> bool:
    """Whether two numbers are equal, or one rounds to the other as `decimals` allow."""
    distance = abs(answer.value - reference.value)
    return distance == 0 or distance < reach(_decimal(answer), _decimal(reference))


def _decimal(number: Number) -> Decimal | None:
    return (number.value, number.places) if number.places else None


def tolerance(*places: int) -> Fraction:
    """How far numbers with so many digits behind the point may lie apart: by less than 1 in a rounded one's last digit.

    A number with fewer digits than a rounded one needs is taken to be exact.
    """
    rounded = [count for count in places if count >= PLACES]
    return Fraction(1, 10 ** min(rounded)) if rounded else Fraction(0)


def same_percentage(percentage: Number, bare: Number, asked: bool = False) -> bool:
    """Whether a number with a percent sign equals one without.

    The bare number is read one way only: up to 1 it is a fraction, above it is a percentage whose sign was left out.

    Args:
        percentage: what stands before the percent sign.
        bare: the other number.
        asked: whether the percentage is the reference.
    """
    scale = 100 if abs(bare.value) <= 1 else 1
    fraction = Number(percentage.value / scale, percentage.places + (2 if scale == 100 else 0))
    return same(bare, fraction) if asked else same(fraction, bare)
