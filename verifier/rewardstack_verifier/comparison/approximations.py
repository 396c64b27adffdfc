"""Compare answers that have an approximate decimal: `\\frac{1}{3} \\approx 0.33`, `\\arctan 2 \\approx 63.4^\\circ`."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from rewardstack_verifier.comparison.equations import as_equation, is_name
from rewardstack_verifier.comparison.values import equal_values, has_degree_signs
from rewardstack_verifier.numbers.equality import is_closer_than
from rewardstack_verifier.numbers.tree import Apply, Expression, Number, integer, symbols
from rewardstack_verifier.reading.syntax import Node, Relation, is_expression

_DEGREE = Apply("degree", (integer(1),))
CUT_OFF, ROUNDED = Fraction(1), Fraction(51, 100)
"""Maximum distance of a value from a truncated or rounded decimal, in units of the decimal's last digit."""


class Approximation(NamedTuple):
    """A value, and the decimal that approximates it.

    The value is None if the decimal approximates only a name: `x \\approx 0.33`. The decimal may be in degrees.
    """

    value: Expression | None
    decimal: Expression


def as_approximation(node: Node) -> Approximation | None:
    """Return the parts of `a ≈ 0.33`; None for any other answer."""
    if not isinstance(node, Relation) or not node.operators or node.operators[-1] != "~":
        return None
    sides = [side for side in node.sides if is_expression(side)]
    if not {*node.operators} <= {"=", "~"} or len(sides) != len(node.sides) or _number(sides[-1]) is None:
        return None
    return Approximation(None if is_name(sides[-2]) else sides[-2], sides[-1])


def equal_approximations(answer: Node, reference: Node) -> bool | None:
    """Compare two answers, at least one of which is an approximation.

    An approximate reference states a value and a decimal. An answer is right if it has this value, or if it rounds to
    this decimal, even if the decimal has few digits.

    An approximate answer is wrong if its decimal is not its own value, rounded or truncated. Otherwise, it is right if
    its value matches the reference, or if its decimal is rounded, not truncated, and matches the reference.

    Returns:
        None if the answer states no value, or the reference is neither an approximation nor an expression.
    """
    found, expected = as_approximation(answer), as_approximation(reference)
    if found and found.value and not _is_near(found.value, found.decimal, CUT_OFF):
        return False
    stated = list(_stated_values(answer, found))
    if not stated or not (expected or is_expression(reference)):
        return None
    if expected is None:
        return any(equal_values(one, reference) for one in stated if is_expression(reference))
    exact = any(equal_values(one, other) for one in stated for other in expected if other)
    return exact or any(_is_near(one, expected.decimal, ROUNDED) for one in stated)


def _stated_values(answer: Node, found: Approximation | None) -> Iterator[Expression]:
    """Yield the values that an answer states, including the decimal of an approximation if it is rounded correctly."""
    if found:
        if found.value:
            yield found.value
        if not found.value or _is_near(found.value, found.decimal, ROUNDED):
            yield found.decimal
    elif is_expression(answer):
        yield answer
    elif (sides := as_equation(answer)) and is_name(sides[0]):
        yield sides[-1]


def _is_near(value: Expression, decimal: Expression, units: Fraction) -> bool:
    """Return whether a value differs from a decimal by less than `units` units of the decimal's last digit.

    If the decimal is in degrees, the value is converted from radians to degrees, except a plain number, which already
    counts as degrees.
    """
    number = _number(decimal)
    if number is None or symbols(value):
        return False
    limit = units / 10 ** (number.places or 0)
    if not has_degree_signs(decimal):
        return is_closer_than(value, decimal, limit)
    plain = isinstance(value, Number)
    return is_closer_than(value if plain else Apply("quotient", (value, _DEGREE)), number, limit)


def _number(expression: Expression) -> Number | None:
    """Return the number in `0.33` or `63.4^\\circ`, without the degree sign; None for other expressions."""
    if isinstance(expression, Apply) and expression.operation == "degree":
        return _number(expression.arguments[0])
    return expression if isinstance(expression, Number) else None
