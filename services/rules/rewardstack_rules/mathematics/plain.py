"""Verdicts beyond doubt, in microseconds and without any library: equal texts, and plain numbers.

What this decides is what `verification.decide` would decide; it leaves alone whatever it is not sure of.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from rewardstack_rules.mathematics import exact
from rewardstack_rules.mathematics.bounds import MAX_DIGITS, refusal
from rewardstack_rules.mathematics.notation import squeeze, tidy
from rewardstack_rules.mathematics.question import Question, Verdict

MAX_ANSWER = 200
"""Characters of an answer or reference that are looked at."""
REMEMBERED = 4096
"""Texts whose reading is remembered."""


class _Reading(NamedTuple):
    """A text, tidied: without spaces and fonts, and as a number if it is one."""

    squeezed: str
    number: exact.Number | None


def decide_plainly(question: Question) -> Verdict | None:
    """The verdict, None where this cannot tell.

    Args:
        question: about a response.
    """
    references = [_read(reference) for reference in question.expected]
    numbers = [one.number for one in references if one is not None and one.number is not None]
    if question.fault:
        return Verdict(False, question.fault) if numbers else None
    answer = _read(question.answer)
    if answer is None:
        return None
    if any(one is not None and one.squeezed == answer.squeezed for one in references):
        return Verdict(True)
    if answer.number is None or not numbers:
        return None
    if any(exact.same(answer.number, number) for number in numbers):
        return Verdict(True)
    return Verdict(False, "wrong answer") if len(numbers) == len(references) else None


@lru_cache(maxsize=REMEMBERED)
def _read(text: str) -> _Reading | None:
    """None where the text is too long to be looked at here, or refused."""
    if len(text) <= MAX_DIGITS and text.isascii() and text.isdecimal():
        return _Reading(text, exact.Number(Fraction(int(text)), False))
    if len(text) > MAX_ANSWER or refusal(text):
        return None
    tidied = tidy(text)
    return _Reading(squeeze(tidied), exact.number(tidied))
