"""`gsm8k`: 1 if the last `#### number` of the response is the reference's number, else 0.

The form is that of the GSM8K data set, whose solutions end with `#### 42`.
"""

from __future__ import annotations

import re
from decimal import Decimal

from rewardstack_rules.outcome import Outcome, Unscored

MAX_DIGITS = 64
NUMBER = r"([-+]?)\$?((?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)(?![0-9]|[.,/^][0-9])"
ANSWER = re.compile(r"#### ?" + NUMBER)
BARE = re.compile(NUMBER + r"\Z")


def gsm8k(response: str, reference: str) -> Outcome:
    """Compares two numbers, `1,000` and `$1000.00` being the same.

    Args:
        response: what the policy wrote.
        reference: a number, or a solution that ends with `#### number`.

    Raises:
        Unscored: the reference holds no number.
    """
    expected = _answer(reference) or BARE.match(reference.strip())
    if expected is None:
        raise Unscored("the reference holds no number")
    found = _answer(response)
    if found is None:
        return Outcome(0.0, "no answer of the form #### number")
    if len(found.group()) > MAX_DIGITS:
        return Outcome(0.0, f"the answer is longer than {MAX_DIGITS} characters")
    return Outcome(float(_number(found) == _number(expected)))


def _answer(text: str) -> re.Match[str] | None:
    last = None
    for match in ANSWER.finditer(text):
        last = match
    return last


def _number(match: re.Match[str]) -> Decimal:
    sign, digits = match.groups()
    return Decimal(sign + digits.replace(",", ""))
