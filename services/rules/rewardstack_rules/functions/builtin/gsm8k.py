"""`gsm8k`: 1 if the response's number equals the reference's; `format_score`, if it is set, for a wrong number; else 0.

By default the number is found by the extraction modes of `rewardstack_verifier.extraction`. The option `method` selects
one of verl's two methods instead, for solutions that end with `#### 42` as in the GSM8K data set. `method` and
`format_score` are those of verl's `gsm8k.compute_score` (`verl/utils/reward_score/gsm8k.py`). Unlike verl, this rule
compares numbers by value, and does not accept a fraction, a list or a choice of two as a number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from rewardstack.core.fields import Fields, field_error
from rewardstack_rules.functions.outcome import Outcome, Unscored
from rewardstack_verifier.api import extract
from rewardstack_verifier.bounds import MAX_RESPONSE
from rewardstack_verifier.question import EXTRACTIONS

METHODS = ("strict", "flexible")
NONE = {"strict": "no answer of the form #### number", "flexible": "no number"}
MAX_DIGITS = 64
WINDOW = 50_000
"""Number of characters at the end of a response in which the method `flexible` looks for the last number."""
MARK = "####"
LONGEST_LINE = 200
"""Maximum number of characters of a line with an answer; a longer line has no number."""
NUMERAL = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+"
BARE = re.compile(rf"([-+]?)\$?({NUMERAL})\Z")
_END = re.compile(r"\n|<[|/\uff5ca-z]")
"""Matches the end of an answer's line: a line break, or a special token such as `</s>` or `<|im_end|>`."""
_LOOKS = re.compile(r"[*_`{}$\s]|\\(?:boxed|textbf|text|mathbf|mathrm|[()\[\],! ])")
_CURRENCY = r"(?:\\?[€£¥₹₽₩]|\\ |(?:USD|EUR|GBP|INR|Rs\.?)\s)"
_UNIT = r"[^\W\d_]+(?:[/-][^\W\d_]+)*(?:\^[23]|[²³])?\.?"
_ANSWER = re.compile(
    rf"\s*(?P<sign>[-+]?)\s?{_CURRENCY}?\s*(?P<digits>{NUMERAL})\s*(?:\\?%\s?|[€£¥₹₽₩°]\s?)?"
    rf"(?P<words>(?:\(?{_UNIT}(?:\s+{_UNIT}){{0,3}}\)?)?)\s*[.\u3002]?\s*"
)
_ATTACHED = re.compile(r"[0-9](?![mghsLl]\b)[A-Za-z]\b")
"""Matches a single letter right after a digit, as in `3x`, unless it is a unit such as `m` or `g`."""
_BESIDE = """
or and to plus minus times over by point half third quarter squared cubed factorial remainder
k dozen hundred thousand million billion trillion tausend millionen milliarden mille mil millones
\u4e07 \u4ebf \u5343 \u767e
not no wrong incorrect false maybe perhaps possibly probably if unless oder und ou et o y \u6216
"""
_NO_UNITS = frozenset(_BESIDE.split())
"""Words that are not units: number words, operators, hedging cues. An answer with one of them has no number."""
DIGITS = re.compile(r"(?<![0-9.,/^_])(?<![\^_]\{)(?:(?<![\w)\]}])[-+])?\$?[.]?[0-9](?:[.,/^]?[0-9]+)*")
"""Matches a run of digits and the characters that join them, which may not be a number (`1/2`). Exponents and indices
do not match."""


def gsm8k(
    response: str,
    reference: str,
    extraction: str | None = None,
    method: str | None = None,
    format_score: float | None = None,
) -> Outcome:
    """Compare the number in the response with the reference's by value: `1,000` equals `$1000.00`.

    Args:
        response: the policy's text.
        reference: a number, or a solution that ends with `#### number`.
        extraction: how to find the number: `standard`, `strict` or `flexible` (`rewardstack_verifier.extraction`).
        method: verl's method, instead of `extraction`: `strict` (the last `#### number`) or `flexible` (the last
            number).
        format_score: score of a wrong number, from 0 to 1. If it is set, the outcome has the parts `format` and
            `accuracy`.

    Raises:
        Unscored: the reference has no number.
        RequestError: an option is malformed, or both `extraction` and `method` are given.
    """
    options = Fields({"extraction": extraction, "method": method, "format_score": format_score})
    how, is_method = _how(options)
    consolation = options.number("format_score", None, 0, 1)
    expected = _expected(reference)
    if expected is None:
        raise Unscored("the reference holds no number")
    found = _found(response, how, is_method=is_method)[0]
    if found is None:
        return _outcome(consolation, 0.0, 0.0, NONE[how] if is_method else _why_none(response))
    if len(found) > MAX_DIGITS:
        return _outcome(consolation, 0.0, 0.0, f"the answer is longer than {MAX_DIGITS} characters")
    if Decimal(found) != Decimal(expected):
        return _outcome(consolation, 1.0, 0.0, f"wrong answer: {found}, the reference is {expected}")
    return _outcome(consolation, 1.0, 1.0)


def read_out(response: str, references: Sequence[str], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers that are compared, for an explanation.

    Raises:
        RequestError: an option is malformed.
    """
    how, is_method = _how(Fields(extra))
    found, place = _found(response, how, is_method=is_method)
    return {
        "answer": found,
        "found in": place if found else "nothing",
        "references as read": list(map(_expected, references)),
    }


def _how(options: Fields) -> tuple[str, bool]:
    """Return the mode or method to find the number, and whether it is one of verl's methods."""
    extraction = options.choice("extraction", EXTRACTIONS)
    if options.get("method") is None:
        return extraction, False
    if options.get("extraction") is not None:
        raise field_error("method", "leave it out, or extraction")
    return options.choice("method", METHODS), True


def _why_none(response: str) -> str:
    return "response too long" if len(response) > MAX_RESPONSE else "no answer that is a number"


def _expected(reference: str) -> str | None:
    return _answer(reference.rpartition(MARK)[2])


def _found(response: str, how: str, *, is_method: bool) -> tuple[str | None, str]:
    """Return the number in a response, or None, and where it was found."""
    if not is_method:
        answer = extract(response, how)
        return (None, "") if answer is None else (_answer(answer.text), answer.place)
    if how == "flexible":
        return _last_number(response[-WINDOW:]), "the last number"
    _, mark, line = response.rpartition(MARK)
    return _answer(line) if mark else None, "the last ####"


def _outcome(consolation: float | None, form: float, right: float, reason: str = "") -> Outcome:
    if consolation is None:
        return Outcome(right, reason)
    parts = {"format": consolation * form, "accuracy": (1 - consolation) * right}
    return Outcome(max(right, parts["format"]), reason, parts)


def _answer(text: str) -> str | None:
    """Return the number on the first line, without markup and unit; None unless this number is all that is on it."""
    line = _END.split(text.strip()[: LONGEST_LINE + 1], maxsplit=1)[0]
    if len(line) > LONGEST_LINE:
        return None
    plain = _LOOKS.sub(" ", line.replace("{,}", ",").replace("\u2212", "-"))
    match = _ANSWER.fullmatch(plain)
    if match is None or _ATTACHED.search(plain) or _NO_UNITS & {*re.findall(r"[^\W\d_]+", match["words"].lower())}:
        return None
    return match["sign"] + match["digits"].replace(",", "")


def _last_number(text: str) -> str | None:
    """Return the last run of digits; None if there is none or it is not a number, such as `1/2`."""
    last = None
    for match in DIGITS.finditer(text):
        last = match
    number = BARE.match(last.group()) if last else None
    return number and number[1] + number[2].replace(",", "")
