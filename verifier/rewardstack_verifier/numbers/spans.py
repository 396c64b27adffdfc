"""Compare the spans of two lists of functions: the sets of their linear combinations."""

from __future__ import annotations

from collections.abc import Sequence

from rewardstack_verifier.numbers.equality import BASE_POINTS, ZERO, same, substitute_all
from rewardstack_verifier.numbers.tree import Apply, Expression, minor, symbols

MAX_FUNCTIONS = 3
"""Maximum number of functions in a list. `is_in_span` expands a determinant that has one more row than this."""


def is_in_span(function: Expression, basis: Sequence[Expression]) -> bool | None:
    """Return whether a function is a linear combination of the functions of a basis.

    For a basis of n functions, the test is a determinant of n + 1 rows: one for the function, and one for each function
    of the basis. A row contains the function itself and its values at n points. The result is True if the determinant
    is zero.

    Args:
        function: a function of the same symbols as the basis.
        basis: up to `MAX_FUNCTIONS` linearly independent functions.

    Returns:
        None if unknown.
    """
    points = _base_points(function, *basis)[: len(basis)]
    rows = [[one, *(substitute_all(one, point) for point in points)] for one in (function, *basis)]
    return _is_singular(rows)


def have_same_span(ones: Sequence[Expression], others: Sequence[Expression]) -> bool | None:
    """Return whether two lists of functions have the same linear combinations.

    Returns:
        None if unknown, or if a list is not linearly independent.
    """
    if not (len(ones) == len(others) and _are_independent(ones) and _are_independent(others)):
        return None
    verdicts = {is_in_span(one, others) for one in ones}
    return False if False in verdicts else None if None in verdicts else True


def _are_independent(basis: Sequence[Expression]) -> bool:
    """Return whether there are at most `MAX_FUNCTIONS` functions, and they are certainly linearly independent."""
    points = _base_points(*basis)[: len(basis)]
    rows = [[substitute_all(one, point) for point in points] for one in basis]
    return len(basis) <= MAX_FUNCTIONS and _is_singular(rows) is False


def _base_points(*functions: Expression) -> list[dict[str, Expression]]:
    names = sorted(symbols(*functions))
    return [dict(zip(names, point, strict=False)) for point in BASE_POINTS]


def _is_singular(rows: Sequence[Sequence[Expression]]) -> bool | None:
    """Return whether a determinant is zero, by comparing its positive terms with its negative terms.

    A comparison of the determinant with zero would need thousands of digits for large terms such as e^9000.
    """
    terms = [Apply("product", (row[0], minor(rows, at))) for at, row in enumerate(rows)]
    return same(Apply("sum", (ZERO, *terms[::2])), Apply("sum", (ZERO, *terms[1::2])))
