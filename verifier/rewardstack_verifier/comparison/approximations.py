"""Values with the decimal that they are about: `x = \\frac{1}{3} \\approx 0.33`, `\\arctan 2 \\approx 63.4^\\circ`."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from rewardstack_verifier.comparison.equations import equation, is_name
from rewardstack_verifier.comparison.values import equal_values, in_degrees
from rewardstack_verifier.numbers.equality import distance_below
from rewardstack_verifier.numbers.tree import Apply, Expression, Number, integer, symbols
from rewardstack_verifier.reading.syntax import Node, Relation, is_expression

_DEGREE = Apply("degree", (integer(1),))
CUT_OFF, ROUNDED = Fraction(1), Fraction(51, 100)
"""How far a value may be from its decimal, in units of that one's last digit."""


class Approximation(NamedTuple):
    """A decimal, perhaps of degrees, and what it stands for, where that is said."""

    value: Expression | None
    decimal: Expression


def approximation(node: Node) -> Approximation | None:
    """The parts of `a ≈ 0.33`; None where an answer is anything else."""
    if not isinstance(node, Relation) or not node.operators or node.operators[-1] != "~":
        return None
    sides = [side for side in node.sides if is_expression(side)]
    if not {*node.operators} <= {"=", "~"} or len(sides) != len(node.sides) or _number(sides[-1]) is None:
        return None
    return Approximation(None if is_name(sides[-2]) else sides[-2], sides[-1])


def equal_approximations(answer: Node, reference: Node) -> bool | None:
    """Whether two answers are the same of which one at least is an `approximation`.

    A reference that is one takes its value, and what rounds to its decimal, however few digits that has. An answer that
    is one says its value and its decimal, of which the one has to be the other; one of the two is the reference.

    Returns:
        None where the other is neither a value nor an equation that says one.
    """
    found, expected = approximation(answer), approximation(reference)
    if found and found.value and not _is_near(found.value, found.decimal, CUT_OFF):
        return False
    said = list(_said(answer, found))
    if not said or not (expected or is_expression(reference)):
        return None
    if expected is None:
        return any(equal_values(one, reference) for one in said if is_expression(reference))
    exact = any(equal_values(one, other) for one in said for other in expected if other)
    return exact or any(_is_near(one, expected.decimal, ROUNDED) for one in said)


def _said(answer: Node, found: Approximation | None) -> Iterator[Expression]:
    """The values that an answer says; of two that are said to be about the same, the decimal only if it is rounded."""
    if found:
        if found.value:
            yield found.value
        if not found.value or _is_near(found.value, found.decimal, ROUNDED):
            yield found.decimal
    elif is_expression(answer):
        yield answer
    elif (sides := equation(answer)) and is_name(sides[0]):
        yield sides[-1]


def _is_near(value: Expression, decimal: Expression, units: Fraction) -> bool:
    """Whether a value is at most so many units of its last digit from a decimal; an angle's value is in radians."""
    number = _number(decimal)
    if number is None or symbols(value):
        return False
    limit = units / 10 ** (number.places or 0)
    if not in_degrees(decimal):
        return distance_below(value, decimal, limit)
    plain = isinstance(value, Number)
    return distance_below(value if plain else Apply("quotient", (value, _DEGREE)), number, limit)


def _number(expression: Expression) -> Number | None:
    """The number that a decimal is, without its sign of degrees; None where it is no number."""
    if isinstance(expression, Apply) and expression.operation == "degree":
        return _number(expression.arguments[0])
    return expression if isinstance(expression, Number) else None
