"""`gsm8k`: 1 if the response's number is the reference's, else 0, or `format_score` where it has the form of an answer.

The form is that of the GSM8K data set, whose solutions end with `#### 42`. The two methods and the score for the form
are those of verl's `gsm8k.compute_score` (`verl/utils/reward_score/gsm8k.py`); unlike there, numbers are compared as
numbers, and a fraction, a list or a choice of two is no number.
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
MARK = "####"
LONGEST_LINE = 200
"""Characters behind the mark that are read."""
NUMERAL = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+"
BARE = re.compile(rf"([-+]?)\$?({NUMERAL})\Z")
_END = re.compile(r"\n|<[|/\uff5ca-z]")
"""Where an answer's line ends: at its end, or at a token that ends the text or begins a turn."""
_LOOKS = re.compile(r"[*_`{}$\s]|\\(?:boxed|textbf|text|mathbf|mathrm|[()\[\],! ])")
_CURRENCY = r"(?:\\?[€£¥₹₽₩]|\\ |(?:USD|EUR|GBP|INR|Rs\.?)\s)"
_UNIT = r"[^\W\d_]+(?:[/-][^\W\d_]+)*(?:\^[23]|[²³])?\.?"
_ANSWER = re.compile(
    rf"\s*(?P<sign>[-+]?)\s?{_CURRENCY}?\s*(?P<digits>{NUMERAL})\s*(?:\\?%\s?|[€£¥₹₽₩°]\s?)?"
    rf"(?P<words>(?:\(?{_UNIT}(?:\s+{_UNIT}){{0,3}}\)?)?)\s*[.\u3002]?\s*"
)
_ATTACHED = re.compile(r"[0-9](?![mghsLl]\b)[A-Za-z]\b")
"""A letter right behind a digit that is a factor or an exponent, and no unit."""
_BESIDE = """
or and to plus minus times over by point half third quarter squared cubed factorial remainder
k dozen hundred thousand million billion trillion tausend millionen milliarden mille mil millones
\u4e07 \u4ebf \u5343 \u767e
not no wrong incorrect false maybe perhaps possibly probably if unless oder und ou et o y \u6216
"""
_NO_UNITS = frozenset(_BESIDE.split())
"""Words that a number is not alone with: another number, a factor, a doubt."""
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
    if len(found) > MAX_DIGITS:
        return _outcome(consolation, 0.0, 0.0, f"the answer is longer than {MAX_DIGITS} characters")
    return _outcome(consolation, 1.0, float(Decimal(found) == Decimal(expected)))


def read_out(response: str, references: Sequence[str], extra: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers that are compared, for an explanation.

    Raises:
        RequestError: an option is malformed.
    """
    strict = _is_strict(Fields(extra))
    found = _found(response, strict=strict)
    return {
        "answer": found,
        "found in": ("the last ####" if strict else "the last number") if found else "nothing",
        "references as read": list(map(_expected, references)),
    }


def _is_strict(options: Fields) -> bool:
    return options.choice("method", METHODS) == "strict"


def _expected(reference: str) -> str | None:
    return _answer(reference.rpartition(MARK)[2])


def _found(response: str, *, strict: bool) -> str | None:
    if not strict:
        return _last_number(response[-WINDOW:])
    _, mark, line = response.rpartition(MARK)
    return _answer(line) if mark else None


def _outcome(consolation: float | None, form: float, right: float, reason: str = "") -> Outcome:
    if consolation is None:
        return Outcome(right, reason)
    parts = {"format": consolation * form, "accuracy": (1 - consolation) * right}
    return Outcome(max(right, parts["format"]), reason, parts)


def _answer(text: str) -> str | None:
    """The number that a line says, whatever its looks and unit; None where it says anything else, or two numbers."""
    line = _END.split(text.strip()[: LONGEST_LINE + 1], maxsplit=1)[0]
    if len(line) > LONGEST_LINE:
        return None
    plain = _LOOKS.sub(" ", line.replace("{,}", ",").replace("\u2212", "-"))
    match = _ANSWER.fullmatch(plain)
    if match is None or _ATTACHED.search(plain) or _NO_UNITS & {*re.findall(r"[^\W\d_]+", match["words"].lower())}:
        return None
    return match["sign"] + match["digits"].replace(",", "")


def _last_number(text: str) -> str | None:
    """The last run of digits, None where there is none or where it is no number, such as `1/2`."""
    last = None
    for match in DIGITS.finditer(text):
        last = match
    number = BARE.match(last.group()) if last else None
    return number and number[1] + number[2].replace(",", "")
