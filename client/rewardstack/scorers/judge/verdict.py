"""What a judge decided, and how it is read in a reply: the number on its last `REWARD:` line, after any reasoning.

Nothing else in the reply counts, for the reply may quote the candidate. What is not exactly one number within the
template's scale is no verdict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from rewardstack.errors import ReplyError
from rewardstack.scorers.judge.scale import HUNDRED, UNIT, Scale

UNREADABLE = "no verdict in the judge's reply"
"""How the reason of every such failure begins."""
CUT = "it was cut at max_new_tokens; allow more, or have the template ask for less"
DECORATION = " \t\r*_`#>$\"'"
BULLET = re.compile(r"(?:[-+\u2022]|\d{1,3}[.)])\s{1,8}")
"""The mark of a list's item, behind which a verdict's line may stand."""
MARK = re.compile(rf"REWARD[{re.escape(DECORATION)}]*:")
"""What makes a line a verdict, behind decoration: read nowhere else, and broken in every foreign text."""
END_OF_THINKING = "</think>"
THINKING = "<think>"
NUMBER = re.compile(r"[-+]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][-+]?\d{1,3})?(?![\w.]\d|\w)", re.ASCII)
RATIO = re.compile(r"\s{0,3}\(?(?:/|out of)\s{0,3}(\d{1,7})(?:\.0{1,3})?\)?(?![\w.]\d|\w)")
"""The scale's end behind a number: `8/10`, `0.8 out of 1`."""
PERCENT = re.compile(r"\s{0,3}%")
DIGITS = re.compile(r"\d{1,7}")
FENCED = re.compile(r"```(?:json)?\s{0,8}(\{[^`]*\})\s{0,8}```")
"""An object in a fence."""
PLAIN = re.compile(r"REWARD: (0\.[0-9]{3}|1\.000)")
"""The whole of a structured reply."""
COMPLETE = re.compile(r"\.\d{3}$")
"""A number that a cut cannot have shortened: one of three decimals; so is the end of a scale beyond 1."""


class Verdict(NamedTuple):
    """What a judge decided.

    Args:
        value: from 0 to 1; of a rubric that is not clipped, also below 0.
        note: what else there is to say.
        label_mass: probability that it put on its labels; None for a verdict in words.
        agreement: the share of its votes that agree; None where there are not several.
        parts: of a rubric, what the score's `parts` hold; None for others.
    """

    value: float
    note: str = ""
    label_mass: float | None = None
    agreement: float | None = None
    parts: dict[str, float] | None = None


class UnreadableError(ReplyError):
    """A reply without a verdict."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{UNREADABLE}: {why}")


def read_verdict(text: str, scale: Scale, *, cut: bool = False) -> float:
    """The verdict in a reply, from 0 to 1: of its last `REWARD:` line, else of the JSON object that it has.

    Args:
        text: the reply; reasoning in it ends with `</think>`.
        scale: of the template.
        cut: whether the reply ended at the limit of tokens.

    Raises:
        UnreadableError: there is none, or not exactly one, or it is out of range.
    """
    if scale == UNIT and (plain := PLAIN.fullmatch(text)):
        return float(plain[1])
    lines = without_thinking(text, cut=cut).strip().split("\n")
    at, mark = _last_mark(lines)
    if mark is None:
        value = None if cut else read_json_verdict(text, scale)
        if value is None:
            raise UnreadableError(CUT if cut else "it has no line `REWARD: <number>`")
        return value
    value, number = _number(mark.string[mark.end() :], scale)
    if cut and (at < len(lines) - 1 or not (COMPLETE.search(number) or (scale.high > 1 and value == scale.high))):
        raise UnreadableError(CUT)
    return _in_range(value, number, scale)


def _in_range(value: float, number: str, scale: Scale) -> float:
    if not scale.low <= value <= scale.high:
        raise UnreadableError(f"{number[:24]} is not from {scale.words}")
    return scale.fraction(value)


def verdict_line(text: str) -> str:
    """What `read_verdict` reads of a reply: a line, or a JSON object; empty for nothing."""
    lines = text.rpartition(END_OF_THINKING)[2].strip().split("\n")
    at, mark = _last_mark(lines)
    if mark is not None:
        return lines[at]
    return next((one for one in _objects("\n".join(lines)) if "REWARD" in one), "")


def _last_mark(lines: Sequence[str]) -> tuple[int, re.Match[str] | None]:
    """The last line that is a verdict, by its number, and its mark."""
    marks = ((at, MARK.match(_undecorated(lines[at]))) for at in reversed(range(len(lines))))
    return next(((at, mark) for at, mark in marks if mark), (0, None))


def _undecorated(line: str) -> str:
    line = line.lstrip(DECORATION)
    bullet = BULLET.match(line)
    return line[bullet.end() :].lstrip(DECORATION) if bullet else line


def read_json_verdict(text: str, scale: Scale) -> float | None:
    """The verdict in a JSON object that a reply is, or has after a preamble or in a fence; None where it has none.

    Args:
        text: the reply.
        scale: of the template.

    Raises:
        UnreadableError: the object has no `REWARD`, or several, or one out of range.
    """
    for found in _objects(without_thinking(text, cut=False).strip()):
        try:
            members: Any = json.loads(found, object_pairs_hook=list)
        except (ValueError, RecursionError):
            continue
        numbers = [value for name, value in members if name == "REWARD"]
        number = str(numbers[0]) if len(numbers) == 1 and not isinstance(numbers[0], bool) else ""
        if not NUMBER.fullmatch(number):
            raise UnreadableError("its JSON object has no number REWARD, or several")
        return _in_range(float(number), number, scale)
    return None


def _objects(text: str) -> list[str]:
    """What may be a reply's JSON object: all from its first brace to its last, or the last one in a fence."""
    start, end = text.find("{"), text.rfind("}")
    whole = [text[start : end + 1]] if 0 <= start < end else []
    return whole + FENCED.findall(text)[-1:]


def without_thinking(text: str, *, cut: bool) -> str:
    """The text of a reply behind its reasoning; raises UnreadableError if that does not end."""
    _, mark, tail = text.rpartition(END_OF_THINKING)
    if mark:
        return tail
    if THINKING in tail:
        raise UnreadableError("its reasoning was cut at max_new_tokens" if cut else "its reasoning does not end")
    return tail


def _number(rest: str, scale: Scale) -> tuple[float, str]:
    """The one number behind a verdict's mark, and its text; words may follow it, and the scale's end."""
    rest = rest.lstrip(DECORATION + "<[(").rstrip(DECORATION + ">])")
    found = NUMBER.match(rest)
    if found is None:
        raise UnreadableError(f"its last `REWARD:` line has no number but {rest[:24]!r}")
    value, rest = float(found[0]), rest[found.end() :].lstrip("*_`")
    if ratio := RATIO.match(rest):
        value, rest = _share(value, found[0], int(ratio[1]), scale), rest[ratio.end() :]
    elif percent := PERCENT.match(rest):
        if scale != HUNDRED:
            raise UnreadableError(f"its number has a % sign, and the scale is {scale.words}")
        rest = rest[percent.end() :]
    if "REWARD" in rest or any(char.isdigit() for char in rest):
        raise UnreadableError("its last `REWARD:` line has more than one number")
    return value, found[0]


def _share(value: float, number: str, end: int, scale: Scale) -> float:
    """Return what `8/10` says: a number of the scale that ends there; on 0 to 1, of whole numbers, the fraction."""
    if end == scale.high:
        return value
    if scale == UNIT and end > 1 and DIGITS.fullmatch(number):
        return value / end
    raise UnreadableError(f"its number is out of {end}, and the scale is {scale.words}")
