"""Whether two lists of functions span the same space: what arbitrary constants stand before."""

from __future__ import annotations

from collections.abc import Sequence

from rewardstack_verifier.numbers.equality import BASE_POINTS, ZERO, at_point, same
from rewardstack_verifier.numbers.tree import Apply, Expression, minor, symbols

MOST_FUNCTIONS = 3
"""In one list; a determinant of one more is written out."""


def in_span(function: Expression, basis: Sequence[Expression]) -> bool | None:
    """Whether a function is a sum of multiples of others.

    It is where the determinant of all of them, at as many points as there are others and everywhere else, is zero.

    Args:
        function: in the symbols of the others.
        basis: up to `MOST_FUNCTIONS` functions, `independent`.

    Returns:
        None where it cannot be told.
    """
    points = _points(function, *basis)[: len(basis)]
    rows = [[one, *(at_point(one, point) for point in points)] for one in (function, *basis)]
    return _is_singular(rows)


def same_span(ones: Sequence[Expression], others: Sequence[Expression]) -> bool | None:
    """Whether each of some functions is a sum of multiples of as many others, and the other way round.

    Returns:
        None where it cannot be told, or some are sums of multiples of the rest.
    """
    if not (len(ones) == len(others) and _independent(ones) and _independent(others)):
        return None
    verdicts = {in_span(one, others) for one in ones}
    return False if False in verdicts else None if None in verdicts else True


def _independent(basis: Sequence[Expression]) -> bool:
    """Whether functions, few enough, are shown to be no sums of multiples of one another."""
    points = _points(*basis)[: len(basis)]
    rows = [[at_point(one, point) for point in points] for one in basis]
    return len(basis) <= MOST_FUNCTIONS and _is_singular(rows) is False


def _points(*functions: Expression) -> list[dict[str, Expression]]:
    names = sorted(symbols(*functions))
    return [dict(zip(names, point, strict=False)) for point in BASE_POINTS]


def _is_singular(rows: Sequence[Sequence[Expression]]) -> bool | None:
    """Whether a determinant is zero: whether what is added in it is equal to what is subtracted.

    Beside zero itself, values such as e^9000 would have to be known to thousands of digits.
    """
    terms = [Apply("product", (row[0], minor(rows, at))) for at, row in enumerate(rows)]
    return same(Apply("sum", (ZERO, *terms[::2])), Apply("sum", (ZERO, *terms[1::2])))
