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

UNREADABLE = "no verdict in the judge's reply"
"""How the reason of every such failure begins."""
CUT = "it was cut at max_new_tokens; allow more, or have the template ask for less"
DECORATION = " \t\r*_`#>$\"'"
MARK = re.compile(rf"REWARD[{re.escape(DECORATION)}]*:")
"""What makes a line a verdict, behind decoration: read nowhere else, and broken in every foreign text."""
END_OF_THINKING = "</think>"
THINKING = "<think>"
NUMBER = re.compile(r"[-+]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][-+]?\d{1,3})?(?![\w.]\d|\w)", re.ASCII)
RATIO = re.compile(r"\s{0,3}/\s{0,3}(\d{1,3})(?![\w.]\d|\w)", re.ASCII)
JSON = re.compile(r"(?:```(?:json)?\s*)?(\{.*\})(?:\s*```)?", re.DOTALL)
"""A reply that is an object, in a fence or not."""
PLAIN = re.compile(r"REWARD: (0\.[0-9]{3}|1\.000)")
"""The whole of a structured reply."""
COMPLETE = re.compile(r"(?:\.\d{3}|100(?:\.0+)?)$")
"""A number that a cut cannot have shortened: three decimals, or the end of the scale."""


class Verdict(NamedTuple):
    """What a judge decided.

    Args:
        value: from 0 to 1.
        note: what else there is to say.
        label_mass: probability that it put on its labels; None for a verdict in words.
        agreement: the share of its votes that agree; None where there are not several.
    """

    value: float
    note: str = ""
    label_mass: float | None = None
    agreement: float | None = None


class UnreadableError(ReplyError):
    """A reply without a verdict."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{UNREADABLE}: {why}")


def read_verdict(text: str, top: float, *, cut: bool = False) -> float:
    """The verdict in a reply, from 0 to 1.

    Args:
        text: the reply; reasoning in it ends with `</think>`.
        top: upper end of the template's scale, 1 or 100.
        cut: whether the reply ended at the limit of tokens.

    Raises:
        UnreadableError: there is none, or not exactly one, or it is out of range.
    """
    if top == 1 and (plain := PLAIN.fullmatch(text)):
        return float(plain[1])
    lines = _without_thinking(text, cut=cut).strip().split("\n")
    at, mark = _last_mark(lines)
    if mark is None:
        raise UnreadableError(CUT if cut else "it has no line `REWARD: <number>`")
    number = _number(mark.string[mark.end() :], top)
    if cut and (at < len(lines) - 1 or not COMPLETE.search(number)):
        raise UnreadableError(CUT)
    value = float(number)
    if not 0 <= value <= top:
        raise UnreadableError(f"{number[:24]} is not from 0 to {top:g}")
    return value / top + 0.0


def verdict_line(text: str) -> str:
    """What `read_verdict` reads of a reply: a line, or the whole of one that is a JSON object; empty for nothing."""
    lines = text.rpartition(END_OF_THINKING)[2].strip().split("\n")
    at, mark = _last_mark(lines)
    if mark is not None:
        return lines[at]
    whole = "\n".join(lines)
    return whole if JSON.fullmatch(whole) else ""


def _last_mark(lines: Sequence[str]) -> tuple[int, re.Match[str] | None]:
    """The last line that is a verdict, by its number, and its mark."""
    marks = ((at, MARK.match(lines[at].lstrip(DECORATION))) for at in reversed(range(len(lines))))
    return next(((at, mark) for at, mark in marks if mark), (0, None))


def read_json_verdict(text: str, top: float) -> float | None:
    """The verdict in a reply that is a JSON object, from 0 to 1; None where it is none.

    Args:
        text: the reply.
        top: upper end of the template's scale, 1 or 100.

    Raises:
        UnreadableError: the object has no `REWARD`, or several, or one out of range.
    """
    fenced = JSON.fullmatch(_without_thinking(text, cut=False).strip())
    try:
        members: Any = json.loads(fenced[1], object_pairs_hook=list) if fenced else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(members, list):
        return None
    numbers = [value for name, value in members if name == "REWARD"]
    if len(numbers) != 1 or isinstance(numbers[0], bool) or not isinstance(numbers[0], int | float):
        raise UnreadableError("its JSON object has no number REWARD, or several")
    if not 0 <= numbers[0] <= top:
        raise UnreadableError(f"{str(numbers[0])[:24]} is not from 0 to {top:g}")
    return numbers[0] / top + 0.0


def _without_thinking(text: str, *, cut: bool) -> str:
    _, mark, tail = text.rpartition(END_OF_THINKING)
    if mark:
        return tail
    if THINKING in tail:
        raise UnreadableError("its reasoning was cut at max_new_tokens" if cut else "its reasoning does not end")
    return tail


def _number(said: str, top: float) -> str:
    """The one number behind a verdict's mark; words may follow it, and the scale's own end, `/ 1` or `/ 100`."""
    said = said.lstrip(DECORATION + "<[(").rstrip(DECORATION + ">])")
    found = NUMBER.match(said)
    rest = said[found.end() :] if found else said
    if found and (ratio := RATIO.match(rest)):
        rest = rest[ratio.end() :] if float(ratio[1]) == top else rest
    if found is None:
        raise UnreadableError(f"its last `REWARD:` line has no number but {said[:24]!r}")
    if "REWARD" in rest or any(char.isdigit() for char in rest):
        raise UnreadableError("its last `REWARD:` line has more than one number")
    return found[0]
