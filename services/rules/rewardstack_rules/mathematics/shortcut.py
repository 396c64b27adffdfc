"""Verdicts beyond doubt, in microseconds and without any library: equal texts, and plain numbers.

What this decides is what `verification.decide` would decide; it leaves alone whatever it is not sure of.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from rewardstack_rules.mathematics import exact
from rewardstack_rules.mathematics.bounds import MAX_DIGITS, refusal
from rewardstack_rules.mathematics.notation import squeeze, tidy
from rewardstack_rules.mathematics.question import Question, Verdict

MAX_ANSWER = 200
"""Characters of an answer or reference that are looked at."""
REMEMBERED = 4096
"""Texts whose number is remembered."""

_NUMERIC = re.compile(r"(?:[-+\d\s.,/*^{}]|\\[dtc]?frac|\\times|\\cdot)+")
_NO_DIGIT = re.compile(r"\D+")


def decide_plainly(question: Question) -> Verdict | None:
    """The verdict, None where this cannot tell.

    Args:
        question: about a response.
    """
    numbers = [number for reference in question.expected if (number := _number(reference)) is not None]
    if question.fault:
        return Verdict(False, question.fault) if numbers else None
    if any(_same_text(question.answer, reference) for reference in question.expected):
        return Verdict(True)
    answer = _number(question.answer) if numbers else None
    if answer is None:
        return None
    if any(exact.same(answer, number) for number in numbers):
        return Verdict(True)
    return Verdict(False, "wrong answer") if len(numbers) == len(question.expected) else None


@lru_cache(maxsize=REMEMBERED)
def _number(text: str) -> exact.Number | None:
    """The plain number that a text is; None where it is anything else, too long to be looked at here, or refused."""
    if len(text) <= MAX_DIGITS and text.isascii() and text.isdecimal():
        return exact.Number(Fraction(int(text)), False)
    if len(text) > MAX_ANSWER or not _NUMERIC.fullmatch(text) or refusal(text):
        return None
    return exact.number(tidy(text))


def _same_text(answer: str, reference: str) -> bool:
    """Whether two texts differ in spaces and fonts only; False as well where one is not looked at."""
    if max(len(answer), len(reference)) > MAX_ANSWER or _NO_DIGIT.sub("", answer) != _NO_DIGIT.sub("", reference):
        return False
    return not (refusal(answer) or refusal(reference)) and squeeze(tidy(answer)) == squeeze(tidy(reference))
