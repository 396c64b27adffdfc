"""Compare the spans of two lists of functions, whose coefficients are arbitrary constants."""

from __future__ import annotations

from collections.abc import Sequence

from rewardstack_verifier.numbers.equality import BASE_POINTS, ZERO, at_point, same
from rewardstack_verifier.numbers.tree import Apply, Expression, minor, symbols

MOST_FUNCTIONS = 3
"""Maximum functions in one list; a determinant of one more row is expanded."""


def in_span(function: Expression, basis: Sequence[Expression]) -> bool | None:
    """Return whether a function is a linear combination of others.

    It is if the determinant of all of them, at as many points as there are others and at every other point, is zero.

    Args:
        function: has the symbols of the others.
        basis: up to `MOST_FUNCTIONS` functions that are linearly independent.

    Returns:
        None if unknown.
    """
    points = _points(function, *basis)[: len(basis)]
    rows = [[one, *(at_point(one, point) for point in points)] for one in (function, *basis)]
    return _is_singular(rows)


def same_span(ones: Sequence[Expression], others: Sequence[Expression]) -> bool | None:
    """Return whether two lists of functions have the same linear combinations.

    Returns:
        None if unknown, or if a list is not linearly independent.
    """
    if not (len(ones) == len(others) and _independent(ones) and _independent(others)):
        return None
    verdicts = {in_span(one, others) for one in ones}
    return False if False in verdicts else None if None in verdicts else True


def _independent(basis: Sequence[Expression]) -> bool:
    """Return whether functions are proved linearly independent, and are at most `MOST_FUNCTIONS`."""
    points = _points(*basis)[: len(basis)]
    rows = [[at_point(one, point) for point in points] for one in basis]
    return len(basis) <= MOST_FUNCTIONS and _is_singular(rows) is False


def _points(*functions: Expression) -> list[dict[str, Expression]]:
    names = sorted(symbols(*functions))
    return [dict(zip(names, point, strict=False)) for point in BASE_POINTS]


def _is_singular(rows: Sequence[Sequence[Expression]]) -> bool | None:
    """Return whether a determinant is zero, by comparing its positive and its negative terms.

    Compared with zero, values such as e^9000 would have to be known to thousands of digits.
    """
    terms = [Apply("product", (row[0], minor(rows, at))) for at, row in enumerate(rows)]
    return same(Apply("sum", (ZERO, *terms[::2])), Apply("sum", (ZERO, *terms[1::2])))
