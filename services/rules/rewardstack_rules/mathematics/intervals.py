"""Inequalities for one variable, and sets given by such, read as the intervals that they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rewardstack_rules.mathematics import exact, signs
from rewardstack_rules.mathematics.structure import group

_RULE = re.compile(r"\\\{\s*[A-Za-z]\s*(?:\\in\s*\\(?:mathbb\s*\{?R\}?|R|text\{R\})\s*)?(?:\\mid|:|\|)(.*)\\\}")
_OR = re.compile(r"\s*(?:\bor\b|\\(?:lor|vee|cup)(?![A-Za-z]))\s*")
_AND = re.compile(r"\s*(?:\band\b|\\(?:land|wedge|cap)(?![A-Za-z])|,)\s*")
_SIGN = re.compile(r"\\(?:le|ge)q?(?:slant)?(?![A-Za-z])|\\[lg]t(?![A-Za-z])|[<>]=?")
_OTHER = re.compile(r"[=;]|\\(?:ne|in|cup|cap|pm)(?![A-Za-z])")
_VARIABLE = re.compile(r"[A-Za-z]")
_INTERVAL = re.compile(r"[(\[][^,]+,[^,]+[)\]]")
_DISTANCE = re.compile(r"\|\s*([A-Za-z])\s*(?:([+-])\s*([^|]+?)\s*)?\|")
_EXCEPT = re.compile(r"([A-Za-z])\s*(?:\\neq?(?![A-Za-z])|!=)\s*([^<>=|]+)")
_AGAIN = re.compile(r"(?:\band\b|,)\s*[A-Za-z]\s*(?:\\neq?(?![A-Za-z])|!=)")
_TURNED = {"<": ">", ">": "<"}


class Intervals(NamedTuple):
    """What an inequality says.

    Args:
        text: in the notation of intervals.
        variable: for which.
    """

    text: str
    variable: str


class _Interval(NamedTuple):
    """One interval: its ends as they are written, whether they belong to it, and for which variable it is."""

    variable: str
    low: str
    high: str
    closed: tuple[bool, bool]

    def __str__(self) -> str:
        return f"{'(['[self.closed[0]]}{self.low}, {self.high}{')]'[self.closed[1]]}"


_LOWEST, _HIGHEST = "-\\infty", "\\infty"


def as_intervals(text: str) -> Intervals | None:
    """`x < 1 or x \\ge 2` as `(-\\infty, 1) \\cup [2, \\infty)`; None for what is no inequality for one letter.

    Args:
        text: tidied.
    """
    exception = _EXCEPT.fullmatch(text)
    if exception is not None:
        left_out = ", ".join(signs.written_out(_AGAIN.sub(",", exception[2]).strip()))
        return Intervals(f"\\mathbb{{R}} \\setminus \\{{{left_out}\\}}", exception[1])
    if not _SIGN.search(text):
        return None
    found: list[_Interval] = []
    for part in _OR.split(text):
        pieces = [_pieces(piece) for piece in _AND.split(part)]
        if not all(pieces):
            return None
        found += pieces[0] if len(pieces) == 1 else _met(pieces, worded="," not in part)
    if not found or len({interval.variable for interval in found}) > 1:
        return None
    return Intervals(" \\cup ".join(map(str, found)), found[0].variable)


def condition(text: str) -> str:
    """The condition of a set that is given by one: `x > 1` for `\\{x \\mid x > 1\\}`; any other text as it is."""
    rule = _RULE.fullmatch(text)
    return rule[1].strip() if rule else text


def is_intervals(text: str) -> bool:
    """Whether a tidied text is an interval, made of intervals, or all numbers but some."""
    return "\\cup" in text or "\\setminus" in text or "\\mathbb{R}" in text or _INTERVAL.fullmatch(text) is not None


def as_union(text: str) -> str:
    """Intervals in a row, of which one cannot be a point, as their union; any other text as it is."""
    several = group(text) if "\\infty" in text else None
    if several is None or several.brackets or not all(map(_INTERVAL.fullmatch, several.items)):
        return text
    return " \\cup ".join(several.items)


def _met(pieces: Sequence[Sequence[_Interval]], worded: bool) -> list[_Interval]:
    """What two half-lines in opposite directions share; both of them, where a comma joins two that share nothing."""
    if len(pieces) != 2 or max(map(len, pieces)) > 1:
        return []
    upper, lower = sorted((pieces[0][0], pieces[1][0]), key=lambda piece: piece.high == _HIGHEST)
    if upper.variable != lower.variable or (upper.low, lower.high) != (_LOWEST, _HIGHEST) or upper.high == _HIGHEST:
        return []
    low, high = exact.number(lower.low), exact.number(upper.high)
    if not worded and low is not None and high is not None and low.value >= high.value:
        return [upper, lower]
    return [_Interval(lower.variable, lower.low, upper.high, (lower.closed[0], upper.closed[1]))]


def _pieces(text: str) -> list[_Interval]:
    """The intervals of one inequality, or of a chain of two; none where this is neither."""
    sides = [side.strip() for side in _SIGN.split(text)]
    if not 1 < len(sides) < 4 or not all(sides) or _OTHER.search(text):
        return []
    directions = ["<" if sign[0] == "<" or sign[:2] == "\\l" else ">" for sign in _SIGN.findall(text)]
    closed = ["=" in sign or sign[2:3] == "e" for sign in _SIGN.findall(text)]
    if len(sides) == 2 and (_VARIABLE.fullmatch(sides[1]) or _DISTANCE.fullmatch(sides[1])):
        sides, directions = sides[::-1], [_TURNED[directions[0]]]
    distance = _DISTANCE.fullmatch(sides[0]) if len(sides) == 2 else None
    if distance is not None:
        return _around(distance, sides[1], directions[0], closed[0])
    if not _VARIABLE.fullmatch(sides[len(sides) - 2]) or len(set(directions)) > 1:
        return []
    if len(sides) == 2 and directions[0] == "<":
        return [_Interval(sides[0], _LOWEST, sides[1], (False, closed[0]))]
    if len(sides) == 2:
        return [_Interval(sides[0], sides[1], _HIGHEST, (closed[0], False))]
    if directions[0] == ">":
        sides, closed = sides[::-1], closed[::-1]
    ends = (closed[0] and sides[0] != _LOWEST, closed[1] and sides[2] != _HIGHEST)
    return [_Interval(sides[1], sides[0], sides[2], ends)]


def _around(distance: re.Match[str], radius: str, sign: str, closed: bool) -> list[_Interval]:
    """`|x - 3| < 2` as the interval from 1 to 5, and `|x - 3| > 2` as what lies outside of it."""
    variable, operator, shift = distance.groups()
    length = exact.number(radius)
    offset = exact.number(shift or "0")
    if length is None or offset is None or length.value < 0:
        return []
    center = -offset.value if operator == "+" else offset.value
    low, high = (exact.text(end) for end in (center - length.value, center + length.value))
    if sign == "<":
        return [_Interval(variable, low, high, (closed, closed))]
    return [
        _Interval(variable, _LOWEST, low, (False, closed)),
        _Interval(variable, high, _HIGHEST, (closed, False)),
    ]
