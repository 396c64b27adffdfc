"""Verdicts beyond doubt, in microseconds and without any library: equal texts, and plain numbers.

What this decides is what `verification.decide` would decide; it leaves alone whatever it is not sure of.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from rewardstack_verifier.bounds import MAX_DIGITS, refusal
from rewardstack_verifier.comparison.decimals import Decimal, reach
from rewardstack_verifier.question import Question, Ruling
from rewardstack_verifier.reading.lexer import is_same_text

MAX_ANSWER = 200
"""Characters of an answer or reference that are looked at."""
REMEMBERED = 4096
"""Texts whose number is remembered."""

_NUMBER = re.compile(
    r"(?P<sign>-?)(?:(?P<whole>[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.(?P<decimals>\d+))?"
    r"|\\[dt]?frac\{(?P<above>\d+)\}\{(?P<below>\d+)\}|(?P<dividend>\d+)/(?P<divisor>\d+))"
)

_NO_DIGIT = re.compile(r"\D+")


class Number(NamedTuple):
    """A plain number.

    Args:
        value: exactly what is written.
        decimal: the same as a decimal that others round to; None where it is none.
        is_certain: whether it can be read in no other way, as `1,234` can be.
    """

    value: Fraction
    decimal: Decimal | None
    is_certain: bool


def decide_fast_path(question: Question) -> Ruling | None:
    """The verdict, None where this cannot tell.

    Args:
        question: about a response.
    """
    numbers = [number for reference in question.expected if (number := _number(reference)) is not None]
    if question.fault:
        return Ruling(False, question.fault) if numbers else None
    if any(_same_text(question.answer, reference) for reference in question.expected):
        return Ruling(True)
    answer = _number(question.answer) if numbers else None
    if answer is None or question.tolerance is not None or question.simplified:
        return None
    if any(_same(answer, number) for number in numbers):
        return Ruling(True)
    certain = len(numbers) == len(question.expected) and all(one.is_certain for one in (answer, *numbers))
    return Ruling(False, "wrong answer") if certain else None


@lru_cache(maxsize=REMEMBERED)
def _number(text: str) -> Number | None:
    """The plain number that a text is; None where it is anything else, too long to be looked at here, or refused."""
    match = _NUMBER.fullmatch(text) if len(text) <= MAX_DIGITS and text.isascii() else None
    if match is None:
        return None
    sign = -1 if match["sign"] else 1
    if match["whole"]:
        decimals = match["decimals"] or ""
        value = sign * Fraction(int(match["whole"].replace(",", "") + decimals), 10 ** len(decimals))
        return Number(value, (value, len(decimals)) if decimals else None, "," not in text)
    below = int(match["below"] or match["divisor"])
    return Number(sign * Fraction(int(match["above"] or match["dividend"]), below), None, True) if below else None


def _same(answer: Number, reference: Number) -> bool:
    """Whether two numbers are equal, or one rounds to the other as `decimals` allow."""
    distance = abs(answer.value - reference.value)
    return distance == 0 or distance < reach(answer.decimal, reference.decimal)


def _same_text(answer: str, reference: str) -> bool:
    """Whether two texts have the same tokens; False as well where one is not looked at."""
    if max(len(answer), len(reference)) > MAX_ANSWER or _NO_DIGIT.sub("", answer) != _NO_DIGIT.sub("", reference):
        return False
    return not (refusal(answer) or refusal(reference)) and is_same_text(answer, reference)
