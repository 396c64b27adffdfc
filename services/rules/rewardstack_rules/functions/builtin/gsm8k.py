"""`gsm8k`: 1 if the number in the response equals the number in the reference, else 0.

If the option `format_score` is set, a wrong number scores that value.

The option `extraction` selects how to find the number in the response (`rewardstack_verifier.extraction`). The option
`method` selects one of verl's two methods instead: the number after the last `####`, or the last number. `method` and
`format_score` are those of verl's `gsm8k.compute_score` (`verl/utils/reward_score/gsm8k.py`). Unlike verl, this rule
compares numbers by value, and does not accept a fraction, a list or two alternatives (`3 or 4`) as a number.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from rewardstack.cause import Cause
from rewardstack.core.fields import Fields, field_error
from rewardstack_rules.functions.outcome import Outcome, Unscored
from rewardstack_verifier.api import extract
from rewardstack_verifier.bounds import MAX_RESPONSE
from rewardstack_verifier.question import EXTRACTIONS

METHODS = ("strict", "flexible")
NO_NUMBER_REASONS = {
    "strict": "the response has no answer of the form #### number",
    "flexible": "the response has no number",
}
MAX_DIGITS = 64
"""Maximum number of characters of a number, including sign and decimal point; a longer one is wrong."""
WINDOW = 50_000
"""Number of characters at the end of a response in which the method `flexible` looks for the last number."""
MARK = "####"
"""Text before the answer in the solutions of the GSM8K data set."""
LONGEST_LINE = 200
"""Maximum number of characters in the line of an answer. In a longer line, no number is found."""
NUMERAL = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+"
PLAIN_NUMBER = re.compile(rf"([-+]?)\$?({NUMERAL})\Z")
_END = re.compile(r"\n|<[|/\uff5ca-z]")
"""Matches the end of an answer's line: a line break, or a special token such as `</s>` or `<|im_end|>`."""
_MARKUP = re.compile(r"[*_`{}$\s]|\\(?:boxed|textbf|text|mathbf|mathrm|[()\[\],! ])")
_CURRENCY = r"(?:\\?[€£¥₹₽₩]|\\ |(?:USD|EUR|GBP|INR|Rs\.?)\s)"
_UNIT = r"[^\W\d_]+(?:[/-][^\W\d_]+)*(?:\^[23]|[²³])?\.?"
_ANSWER = re.compile(
    rf"\s*(?P<sign>[-+]?)\s?{_CURRENCY}?\s*(?P<digits>{NUMERAL})\s*(?:\\?%\s?|[€£¥₹₽₩°]\s?)?"
    rf"(?P<words>(?:\(?{_UNIT}(?:\s+{_UNIT}){{0,3}}\)?)?)\s*[.\u3002]?\s*"
)
_ARITHMETIC = re.compile(
    r"[-+*/\u00d7\u00b7\u00f7x()\d.,$\s]*\d\s*[-+*/\u00d7\u00b7\u00f7x][-+*/\u00d7\u00b7\u00f7x()\d.,$\s]*=(?=[^=]*\Z)"
)
"""Matches arithmetic before a result: `3 * 5 =`."""
_ATTACHED = re.compile(r"[0-9](?![mghsLl]\b)[A-Za-z]\b")
"""Matches a single letter right after a digit, as in `3x`, unless it is a unit such as `m` or `g`. An answer that
matches is not a number."""
_NO_UNIT_WORDS = """
or and to plus minus times over by point half third quarter squared cubed factorial remainder
k dozen hundred thousand million billion trillion tausend millionen milliarden mille mil millones
\u4e07 \u4ebf \u5343 \u767e
not no wrong incorrect false maybe perhaps possibly probably if unless oder und ou et o y \u6216
"""
_NO_UNITS = frozenset(_NO_UNIT_WORDS.split())
"""Words that are not units: number words, operators, hedging cues. An answer that contains one is not a number."""
DIGITS = re.compile(r"(?<![0-9.,/^_])(?<![\^_]\{)(?:(?<![\w)\]}])[-+])?\$?[.]?[0-9](?:[.,/^]?[0-9]+)*")
"""Matches digits and the characters that join them. A match need not be a number (`1/2`). Exponents and indices do not
match."""


def gsm8k(
    response: str,
    reference: str,
    extraction: str | None = None,
    method: str | None = None,
    format_score: float | None = None,
) -> Outcome:
    """Compare the numbers in the response and the reference by value: `1,000` equals `$1000.00`.

    Args:
        response: the policy's text.
        reference: a number, or a solution that ends with `#### number`.
        extraction: how to find the number: `standard` (default), `strict` or `flexible`
            (`rewardstack_verifier.extraction`).
        method: verl's method, instead of `extraction`: `strict` (the last `#### number`) or `flexible` (the last
            number).
        format_score: score of a wrong number, from 0 to 1. If it is set, the outcome has the parts `format` and
            `accuracy`.

    Raises:
        Unscored: the reference has no number.
        RequestError: an option is malformed, or both `extraction` and `method` are given.
    """
    options = Fields({"extraction": extraction, "method": method, "format_score": format_score})
    how, is_method = _search_mode(options)
    format_reward = options.number("format_score", None, 0, 1)
    expected = _reference_number(reference)
    if expected is None:
        raise Unscored("the reference has no number", cause=Cause.BAD_REFERENCE)
    found = _find_number(response, how, is_method=is_method)[0]
    if found is None:
        return _outcome(format_reward, 0.0, 0.0, NO_NUMBER_REASONS[how] if is_method else _no_number_reason(response))
    if len(found) > MAX_DIGITS:
        return _outcome(format_reward, 0.0, 0.0, f"the answer is longer than {MAX_DIGITS} characters")
    if Decimal(found) != Decimal(expected):
        return _outcome(format_reward, 1.0, 0.0, f"wrong answer: {found}, the reference is {expected}")
    return _outcome(format_reward, 1.0, 1.0)


def read_out(response: str, references: Sequence[str], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers that the rule compares, to explain a score.

    Raises:
        RequestError: an option is malformed.
    """
    how, is_method = _search_mode(Fields(extra))
    found, place = _find_number(response, how, is_method=is_method)
    return {
        "answer": found,
        "found in": place if found else "nothing",
        "references as read": list(map(_reference_number, references)),
    }


def _search_mode(options: Fields) -> tuple[str, bool]:
    """Return an extraction mode and False, or one of verl's methods and True."""
    extraction = options.choice("extraction", EXTRACTIONS)
    if options.get("method") is None:
        return extraction, False
    if options.get("extraction") is not None:
        raise field_error("method", "set either method or extraction, not both")
    return options.choice("method", METHODS), True


def _no_number_reason(response: str) -> str:
    return "the response is too long" if len(response) > MAX_RESPONSE else "the response has no answer that is a number"


def _reference_number(reference: str) -> str | None:
    return _parse_number(reference.rpartition(MARK)[2])


def _find_number(response: str, how: str, *, is_method: bool) -> tuple[str | None, str]:
    """Return the number in a response (None if there is none), and the place where it was found."""
    if not is_method:
        answer = extract(response, how)
        return (None, "") if answer is None else (_parse_number(answer.text), answer.place)
    if how == "flexible":
        return _last_number(response[-WINDOW:]), "the last number"
    _, mark, line = response.rpartition(MARK)
    return _parse_number(line) if mark else None, "the last ####"


def _outcome(format_reward: float | None, form: float, right: float, reason: str = "") -> Outcome:
    """Return the outcome of a response.

    Args:
        format_reward: the option `format_score`; None if it is not set.
        form: 1 if the response has a number of at most `MAX_DIGITS` characters, else 0.
        right: 1 if this number is correct, else 0.
        reason: why `right` is 0; else empty.
    """
    if format_reward is None:
        return Outcome(right, reason)
    parts = {"format": format_reward * form, "accuracy": (1 - format_reward) * right}
    return Outcome(max(right, parts["format"]), reason, parts)


def _parse_number(text: str) -> str | None:
    """Return the number on the first line, without markup and unit; None if the line contains anything else."""
    line = _END.split(text.strip()[: LONGEST_LINE + 1], maxsplit=1)[0]
    if len(line) > LONGEST_LINE:
        return None
    line = unicodedata.normalize("NFKC", line).replace("\\times", "\u00d7").replace("\\cdot", "\u00b7")
    line = _ARITHMETIC.sub("", line.replace("{,}", ",").replace("\u2212", "-"), count=1)
    plain = _MARKUP.sub(" ", line)
    match = _ANSWER.fullmatch(plain)
    if match is None or _ATTACHED.search(plain) or _NO_UNITS & {*re.findall(r"[^\W\d_]+", match["words"].lower())}:
        return None
    return match["sign"] + match["digits"].replace(",", "")


def _last_number(text: str) -> str | None:
    """Return the last match of `DIGITS` if it is a number; None if it is not (`1/2`), or if nothing matches."""
    last = None
    for match in DIGITS.finditer(text):
        last = match
    number = PLAIN_NUMBER.match(last.group()) if last else None
    return number and number[1] + number[2].replace(",", "")
