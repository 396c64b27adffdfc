"""Sets of real numbers by their cells: the bounds of both, in order, and what lies between them."""

from __future__ import annotations

from functools import cmp_to_key
from typing import NamedTuple

from rewardstack_verifier.comparison.values import equal_values
from rewardstack_verifier.numbers.equality import is_less
from rewardstack_verifier.numbers.tree import Constant, Expression, negative, symbols

INFINITY = Constant("infinity")
MINUS_INFINITY = negative(INFINITY)
MOST_BOUNDS = 40
"""Of two sets that are compared."""

Cells = tuple[bool, ...]
"""Whether what lies below the first bound is in the set, the bound itself, what lies above it, and so on."""


class Interval(NamedTuple):
    """The real numbers between two bounds, which may be infinite, and whether each bound is one of them."""

    low: Expression
    low_in: bool
    high: Expression
    high_in: bool


class Combined(NamedTuple):
    """Sets and what combines them: `cup`, `cap`, `setminus`, or `,`, which is `cap` unless that is empty."""

    operator: str
    parts: tuple[Region, ...]


Region = Interval | Combined


class _UnorderedError(Exception):
    """Two bounds cannot be told apart, or one is no real number."""


def equal_regions(answer: Region, reference: Region) -> bool | None:
    """Whether two sets of real numbers are the same; None where the order of their bounds is not known."""
    found, expected = _bounds(answer), _bounds(reference)
    if len(found) + len(expected) > MOST_BOUNDS or symbols(*found, *expected):
        return None
    try:
        own = _places(expected, [])
        every = _places(found, own)
        places = {bound: at for at, group in enumerate(every) for bound in group}
        return _cells(answer, places, len(every)) == _cells(reference, places, len(every))
    except _UnorderedError:
        return None


def _bounds(region: Region) -> list[Expression]:
    if isinstance(region, Combined):
        return [bound for part in region.parts for bound in _bounds(part)]
    return [bound for bound in (region.low, region.high) if bound not in (INFINITY, MINUS_INFINITY)]


def _places(bounds: list[Expression], groups: list[list[Expression]]) -> list[list[Expression]]:
    """Bounds that are the same in groups, which are in order; to those that are there already others are added."""
    groups = [list(group) for group in groups]
    for bound in bounds:
        group = next((group for group in groups if _are_same(bound, group[0])), None)
        if group is None:
            groups.append([bound])
        else:
            group.append(bound)
    return sorted(groups, key=cmp_to_key(_order))


def _are_same(one: Expression, other: Expression) -> bool:
    decided = equal_values(one, other)
    if decided is None:
        raise _UnorderedError
    return decided


def _order(one: list[Expression], other: list[Expression]) -> int:
    less = is_less(one[0], other[0])
    if less is None:
        raise _UnorderedError
    return -1 if less else 1


def _cells(region: Region, places: dict[Expression, int], count: int) -> Cells:
    """The cells of a set: a bound at place n is the cell 2n + 1."""
    if isinstance(region, Combined):
        first, *others = (_cells(part, places, count) for part in region.parts)
        for other in others:
            first = _combined(region.operator, first, other)
        return first
    start = -1 if region.low == MINUS_INFINITY else 2 * places[region.low] + 2 - region.low_in
    stop = 2 * count + 1 if region.high == INFINITY else 2 * places[region.high] + 1 + region.high_in
    return tuple(start <= cell < stop for cell in range(2 * count + 1))


def _combined(operator: str, one: Cells, other: Cells) -> Cells:
    pairs = list(zip(one, other, strict=True))
    both = tuple(left and right for left, right in pairs)
    if operator == "cap" or (operator == "," and any(both)):
        return both
    if operator == "setminus":
        return tuple(left and not right for left, right in pairs)
    return tuple(left or right for left, right in pairs)
