"""Parse the verdict in a judge's reply: the number on the last `REWARD:` line after any reasoning.

The rest of the reply is ignored, because it may quote the candidate. The line must have exactly one number, which must
be on the template's scale. Without a `REWARD:` line, the reply may be a JSON object with the member `REWARD`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple
from unicodedata import category

from rewardstack.cause import Cause
from rewardstack.errors import ReplyError
from rewardstack.scorers.judge.scale import HUNDRED, UNIT, Scale
from rewardstack_verifier.transcript import last_turn, separate_reasoning

UNREADABLE = "no verdict in the judge's reply"
"""Start of the message of every `UnreadableError`."""
DECORATION = " \t\r*_`#>$\"'"
"""Characters that may surround a verdict, such as Markdown emphasis."""
BULLET = re.compile(r"(?:[-+\u2022]|\d{1,3}[.)])\s{1,8}")
"""A bullet or number of a list, which may precede a verdict."""
VERDICT_MARKER = re.compile(rf"REWARD[\n{re.escape(DECORATION)}]*:")
"""The marker of a verdict line or JSON member. `fences` neutralizes it in all untrusted text."""
NUMBER = re.compile(r"[-+]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][-+]?\d{1,3})?(?![\w.]\d|\w)", re.ASCII)
RATIO = re.compile(r"\s{0,3}\(?(?:/|out of)\s{0,3}(\d{1,7})(?:\.0{1,3})?\)?(?![\w.]\d|\w)")
"""Matches the rest of a ratio after its first number: `/10` in `8/10`, or ` out of 1` in `0.8 out of 1`.

Group 1 is the second number of the ratio.
"""
PERCENT = re.compile(r"\s{0,3}%")
DIGITS = re.compile(r"\d{1,7}")
FENCED = re.compile(r"```(?:json)?\s{0,8}(\{[^`]*\})\s{0,8}```")
"""A JSON object in a code fence."""
CONTINUED = re.compile(
    r"\s{0,3}(?:[%/\uff05\u2030\u2192]|percent\b|(?:to|-|\u2013|~)\s{0,3}[\d.]"
    r"|(?:would|could|might|may|should|if|unless|or)\b|(?:(?:points?|marks?|stars?)\s{1,3})?"
    r"out of\s{1,3}(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|(?:a|one) hundred)\b)|,\d",
    re.IGNORECASE,
)
"""Matches text that continues the number before it, or makes it a supposition.

For example `7 percent`, `1 out of ten`, `0.8 to 0.9`, `0,85` and `1 would be too high`.
"""
PLAIN = re.compile(r"REWARD: (0\.[0-9]{3}|1\.000)")
"""A reply that is only a verdict line with a number from 0 to 1."""


class Verdict(NamedTuple):
    """The verdict of a judge.

    Args:
        value: the verdict from 0 to 1; can be below 0 for a rubric that is not clipped.
        note: the score's `reason`; may be empty.
        label_mass: total probability of the labels; None if the verdict is not read from probabilities.
        agreement: for several votes, the share of the votes with the most frequent value. For a comparison, the share
            of the pairs with the same winner in both orders. None if unknown.
        parts: the parts of the score of a rubric or comparison; None for other verdicts.
    """

    value: float
    note: str = ""
    label_mass: float | None = None
    agreement: float | None = None
    parts: dict[str, float] | None = None


class UnreadableError(ReplyError):
    """A reply has no readable verdict.

    Args:
        why: what is wrong with the reply.
        cause: the cause, if it is known more precisely.
    """

    cause = Cause.NO_VERDICT

    def __init__(self, why: str, *, cause: Cause | None = None) -> None:
        super().__init__(f"{UNREADABLE}: {why}", cause=cause)
        self.why = why


class IncompleteError(UnreadableError):
    """A reply did not end by itself.

    Args:
        why: why it ended.
        is_truncated: whether it ended at the token limit.
        cause: the cause, if it did not.
    """

    def __init__(self, why: str, *, is_truncated: bool = False, cause: Cause | None = None) -> None:
        super().__init__(why, cause=Cause.JUDGE_TRUNCATED if is_truncated else cause)
        self.is_truncated = is_truncated


def parse_verdict(text: str, scale: Scale) -> float:
    """Return the verdict in a reply, as a number from 0 to 1.

    The verdict is read from the last `REWARD:` line. Without such a line, it is read from a JSON object.

    Args:
        text: the reply, with or without reasoning.
        scale: the scale of the template.

    Raises:
        UnreadableError: there is no verdict, more than one number, or a number that is not on the scale.
    """
    if scale == UNIT and (plain := PLAIN.fullmatch(text)):
        return float(plain[1])
    lines = without_thinking(text).strip().split("\n")
    index, marker = _find_last_marker(lines)
    rest = "\n".join(lines[index + 1 :]) if marker else ""
    if '"REWARD"' in rest and read_json_verdict(rest, scale) is not None:
        raise UnreadableError("it has a line `REWARD: <number>`, and then a JSON object with REWARD")
    if marker is None:
        value = read_json_verdict(text, scale)
        if value is None:
            raise UnreadableError("it has no line `REWARD: <number>`")
        return value
    value, number = _parse_number(marker.string[marker.end() :], scale)
    return _to_fraction(value, number, scale)


def _to_fraction(value: float, number: str, scale: Scale) -> float:
    if not scale.low <= value <= scale.high:
        raise UnreadableError(f"{number[:24]} is not from {scale.text}")
    return scale.fraction(value)


def verdict_line(text: str) -> str:
    """Return the line or JSON object from which `parse_verdict` reads the verdict; empty if there is none."""
    lines = separate_reasoning(last_turn(text)).answer.strip().split("\n")
    index, marker = _find_last_marker(lines)
    if marker is not None:
        return lines[index]
    return next((one for one in _find_json_objects("\n".join(lines)) if "REWARD" in one), "")


def _find_last_marker(lines: Sequence[str]) -> tuple[int, re.Match[str] | None]:
    """Return the index of the last verdict line and the match of its marker; `(0, None)` if there is none."""
    markers = ((index, VERDICT_MARKER.match(_strip_decoration(lines[index]))) for index in reversed(range(len(lines))))
    return next(((index, marker) for index, marker in markers if marker), (0, None))


def _strip_decoration(line: str) -> str:
    line = line.lstrip(DECORATION)
    bullet = BULLET.match(line)
    return line[bullet.end() :].lstrip(DECORATION) if bullet else line


def read_json_verdict(text: str, scale: Scale) -> float | None:
    """Return the verdict in a reply's JSON object, as a number from 0 to 1; None if the reply has no JSON object.

    Args:
        text: the reply; other text, or a code fence, may surround the object.
        scale: the scale of the template.

    Raises:
        UnreadableError: the object does not have exactly one number `REWARD` that is on the scale.
    """
    for match in _find_json_objects(without_thinking(text).strip()):
        try:
            members: Any = json.loads(match, object_pairs_hook=list)
        except (ValueError, RecursionError):
            continue
        numbers = [value for name, value in members if name == "REWARD"]
        number = str(numbers[0]) if len(numbers) == 1 and not isinstance(numbers[0], bool) else ""
        if not NUMBER.fullmatch(number) or '"REWARD"' not in match:  # an escaped name may be a quotation
            raise UnreadableError("its JSON object does not have exactly one number REWARD")
        return _to_fraction(float(number), number, scale)
    return None


def _find_json_objects(text: str) -> list[str]:
    """Return texts that may be a JSON object: from the first to the last brace, and the text in the last code fence."""
    start, end = text.find("{"), text.rfind("}")
    outer = [text[start : end + 1]] if 0 <= start < end else []
    return outer + FENCED.findall(text)[-1:]


def without_thinking(text: str) -> str:
    """Return the last turn of a reply without reasoning; raise UnreadableError if the reasoning does not end."""
    separated = separate_reasoning(last_turn(text))
    if separated.is_open:
        raise UnreadableError("its reasoning does not end")
    return separated.answer


def _parse_number(rest: str, scale: Scale) -> tuple[float, str]:
    """Return the number after the marker of a verdict line: its value, and its text in the reply.

    `%` or words may follow the number. If the number begins a ratio, the value is the result of `_parse_ratio`.

    Args:
        rest: the verdict line after the marker.
        scale: the scale of the template.

    Raises:
        UnreadableError: there is no number or more than one, or `%` or the ratio does not fit the scale.
    """
    rest = rest.lstrip(DECORATION + "<[(").rstrip(DECORATION + ">])")
    match = NUMBER.match(rest)
    if match is None:
        raise UnreadableError(f"its last `REWARD:` line has no number: {rest[:24]!r}")
    value, rest = float(match[0]), rest[match.end() :].lstrip("*_`")
    if ratio := RATIO.match(rest):
        value, rest = _parse_ratio(value, match[0], int(ratio[1]), scale), rest[ratio.end() :]
    elif percent := PERCENT.match(rest):
        if scale != HUNDRED:
            raise UnreadableError(f"its number has a % sign, but the scale is {scale.text}")
        rest = rest[percent.end() :]
    if "REWARD" in rest or CONTINUED.match(rest) or any(category(char)[0] == "N" for char in rest):
        raise UnreadableError("its last `REWARD:` line has more than one number")
    return value, match[0]


def _parse_ratio(value: float, number: str, end: int, scale: Scale) -> float:
    """Return the value of a ratio: `8/10` is 8 if the scale ends at 10, and 0.8 if the scale is from 0 to 1."""
    if end == scale.high:
        return value
    if scale == UNIT and end > 1 and DIGITS.fullmatch(number):
        return value / end
    raise UnreadableError(f"its number is a ratio out of {end}, but the scale is {scale.text}")
