"""Inequalities for one variable, and sets given by such, read as the intervals that they are."""

from __future__ import annotations

import re
from typing import NamedTuple

_RULE = re.compile(r"\\\{\s*[A-Za-z]\s*(?:\\in\s*\\(?:mathbb\s*\{?R\}?|R|text\{R\})\s*)?(?:\\mid|:|\|)(.*)\\\}")
_OR = re.compile(r"\s*(?:\bor\b|\\lor(?![A-Za-z])|\\cup(?![A-Za-z]))\s*")
_SIGN = re.compile(r"\\(?:le|ge)q?(?:slant)?(?![A-Za-z])|\\[lg]t(?![A-Za-z])|[<>]=?")
_OTHER = re.compile(r"[=;]|\\(?:ne|in|cup|cap|pm)(?![A-Za-z])")
_VARIABLE = re.compile(r"[A-Za-z]")
_INTERVAL = re.compile(r"[(\[][^,]+,[^,]+[)\]]")
_TURNED = {"<": ">", ">": "<"}


class Intervals(NamedTuple):
    """What an inequality says.

    Args:
        text: in the notation of intervals.
        variable: for which.
    """

    text: str
    variable: str


def as_intervals(text: str) -> Intervals | None:
    """`x < 1 or x \\ge 2` as `(-\\infty, 1) \\cup [2, \\infty)`; None for what is no inequality for one letter.

    Args:
        text: tidied.
    """
    found = [interval for part in _OR.split(text) if (interval := _interval(part))]
    variables = {interval.variable for interval in found}
    if len(found) < len(_OR.split(text)) or len(variables) > 1:
        return None
    return Intervals(" \\cup ".join(interval.text for interval in found), variables.pop())


def condition(text: str) -> str:
    """The condition of a set that is given by one: `x > 1` for `\\{x \\mid x > 1\\}`; any other text as it is."""
    rule = _RULE.fullmatch(text)
    return rule[1].strip() if rule else text


def is_intervals(text: str) -> bool:
    """Whether a tidied text is an interval, or made of intervals."""
    return "\\cup" in text or _INTERVAL.fullmatch(text) is not None


def _interval(text: str) -> Intervals | None:
    """The interval of one inequality, or of a chain of two."""
    sides = [side.strip() for side in _SIGN.split(text)]
    if not 1 < len(sides) < 4 or not all(sides) or _OTHER.search(text):
        return None
    found = _SIGN.findall(text)
    signs = ["<" if sign[0] == "<" or sign[:2] == "\\l" else ">" for sign in found]
    closed = ["=" in sign or sign[2:3] == "e" for sign in found]
    if len(sides) == 2 and _VARIABLE.fullmatch(sides[1]):
        sides, signs = sides[::-1], [_TURNED[signs[0]]]
    if not _VARIABLE.fullmatch(sides[len(sides) - 2]) or len(set(signs)) > 1:
        return None
    if len(sides) == 2:
        sides = ["-\\infty", *sides] if signs[0] == "<" else [sides[1], sides[0], "\\infty"]
        closed = [False, closed[0]] if signs[0] == "<" else [closed[0], False]
    elif signs[0] == ">":
        sides, closed = sides[::-1], closed[::-1]
    return Intervals(f"{'[' if closed[0] else '('}{sides[0]}, {sides[2]}{']' if closed[1] else ')'}", sides[1])
