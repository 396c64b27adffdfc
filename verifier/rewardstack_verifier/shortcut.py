"""Decide simple cases in microseconds, without third-party libraries: equal texts, and plain numbers.

`verification.decide` decides all other cases. For the simple cases, it would give the same verdicts.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from rewardstack_verifier.bounds import MAX_DIGITS, refusal
from rewardstack_verifier.comparison.decimals import Decimal, max_distance
from rewardstack_verifier.question import Question, Ruling
from rewardstack_verifier.reading.lexer import is_same_text

MAX_ANSWER = 200
"""Maximum length of an answer or reference to compare as text."""
CACHED_TEXTS = 4096
"""Maximum number of results of `_parse_number` in its cache."""

_NUMBER = re.compile(
    r"(?P<sign>-?)(?:(?P<whole>[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.(?P<decimals>\d+))?"
    r"|\\[dt]?frac\{(?P<above>\d+)\}\{(?P<below>\d+)\}|(?P<dividend>\d+)/(?P<divisor>\d+))"
)

_NO_DIGIT = re.compile(r"\D+")


class Number(NamedTuple):
    """A plain number.

    Args:
        value: value of the number.
        decimal: value and number of decimal places; None if the number has no decimal point.
        is_certain: whether the text has only one reading; `1,234` can also be a list of two numbers.
    """

    value: Fraction
    decimal: Decimal | None
    is_certain: bool


def decide_fast_path(question: Question) -> Ruling | None:
    """Return the verdict on a question; None if the fast path cannot decide it.

    Args:
        question: the answer and its references.
    """
    numbers = [number for reference in question.expected if (number := _parse_number(reference)) is not None]
    if question.fault:
        return Ruling(False, question.fault) if numbers else None
    if any(_have_same_text(question.answer, reference) for reference in question.expected):
        return Ruling(True)
    answer = _parse_number(question.answer) if numbers else None
    if answer is None or question.tolerance is not None or question.simplified:
        return None
    if any(_are_equal(answer, number) for number in numbers):
        return Ruling(True)
    is_certain_ = len(numbers) == len(question.expected) and all(one.is_certain for one in (answer, *numbers))
    return Ruling(False, "wrong answer") if is_certain_ else None


@lru_cache(maxsize=CACHED_TEXTS)
def _parse_number(text: str) -> Number | None:
    """Parse a plain number; None if the text is not a plain number, or is too long."""
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


def _are_equal(answer: Number, reference: Number) -> bool:
    """Return whether two numbers are equal, or close enough for the digits that they show (`decimals.max_distance`)."""
    distance = abs(answer.value - reference.value)
    return distance == 0 or distance < max_distance(answer.decimal, reference.decimal)


def _have_same_text(answer: str, reference: str) -> bool:
    """Return whether two texts have the same tokens; False if a text is too long or refused by `bounds`."""
    if max(len(answer), len(reference)) > MAX_ANSWER or _NO_DIGIT.sub("", answer) != _NO_DIGIT.sub("", reference):
        return False
    return not (refusal(answer) or refusal(reference)) and is_same_text(answer, reference)
