"""`gsm8k`: 1 if the response's number is the reference's, else 0, or `format_score` where it has the form of an answer.

The form is that of the GSM8K data set, whose solutions end with `#### 42`. The two methods and the score for the form
are those of verl's `gsm8k.compute_score` (`verl/utils/reward_score/gsm8k.py`); unlike there, numbers are compared as
numbers, and a fraction or a list is no number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from rewardstack.core.fields import Fields
from rewardstack_rules.functions.outcome import Outcome, Unscored

METHODS = ("strict", "flexible")
MAX_DIGITS = 64
WINDOW = 50_000
"""Characters at the end of a response in which the last number is looked for."""
NUMBER = r"([-+]?)\$?((?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)(?![0-9]|[.,/^][0-9])"
ANSWER = re.compile(r"#### ?" + NUMBER)
BARE = re.compile(NUMBER + r"\Z")
DIGITS = re.compile(r"(?<![0-9.,/^_])(?<![\^_]\{)(?:(?<![\w)\]}])[-+])?\$?[.]?[0-9](?:[.,/^]?[0-9]+)*")
"""A run of digits with what joins them, whether that is a number or not; exponents and indices are none."""


def gsm8k(response: str, reference: str, method: str | None = None, format_score: float | None = None) -> Outcome:
    """Compares two numbers, `1,000` and `$1000.00` being the same.

    Args:
        response: what the policy wrote.
        reference: a number, or a solution that ends with `#### number`.
        method: `strict` (the last `#### number`) or `flexible` (the last number, whatever stands before it).
        format_score: what a wrong number is worth, from 0 to 1; the parts `format` and `accuracy` are then reported.

    Raises:
        Unscored: the reference holds no number.
        RequestError: an option is malformed.
    """
    options = Fields({"method": method, "format_score": format_score})
    strict = _is_strict(options)
    consolation = options.number("format_score", None, 0, 1)
    expected = _expected(reference)
    if expected is None:
        raise Unscored("the reference holds no number")
    found = _found(response, strict=strict)
    if found is None:
        return _outcome(consolation, 0.0, 0.0, "no answer of the form #### number" if strict else "no number")
    if len(found.group()) > MAX_DIGITS:
        return _outcome(consolation, 0.0, 0.0, f"the answer is longer than {MAX_DIGITS} characters")
    return _outcome(consolation, 1.0, float(_number(found) == _number(expected)))


def read_out(response: str, references: Sequence[str], extra: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers that are compared, for an explanation.

    Raises:
        RequestError: an option is malformed.
    """
    strict = _is_strict(Fields(extra))
    found, numbers = _found(response, strict=strict), map(_expected, references)
    return {
        "answer": found and found.group(),
        "found in": ("the last ####" if strict else "the last number") if found else "nothing",
        "references as read": [number and number.group() for number in numbers],
    }


def _is_strict(options: Fields) -> bool:
    return options.choice("method", METHODS) == "strict"


def _expected(reference: str) -> re.Match[str] | None:
    return _answer(reference) or BARE.match(reference.strip())


def _found(response: str, *, strict: bool) -> re.Match[str] | None:
    return _answer(response) if strict else _last_number(response[-WINDOW:])


def _outcome(consolation: float | None, form: float, right: float, reason: str = "") -> Outcome:
    if consolation is None:
        return Outcome(right, reason)
    parts = {"format": consolation * form, "accuracy": (1 - consolation) * right}
    return Outcome(max(right, parts["format"]), reason, parts)


def _answer(text: str) -> re.Match[str] | None:
    last = None
    for match in ANSWER.finditer(text):
        last = match
    return last


def _last_number(text: str) -> re.Match[str] | None:
    """The last run of digits, None where there is none or where it is no number, such as `1/2`."""
    last = None
    for match in DIGITS.finditer(text):
        last = match
    return None if last is None else BARE.match(last.group())


def _number(match: re.Match[str]) -> Decimal:
    sign, digits = match.groups()
    return Decimal(sign + digits.replace(",", ""))
