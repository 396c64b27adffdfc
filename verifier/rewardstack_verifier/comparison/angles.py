"""Angles: degrees are a unit that may be left out, and a multiple of pi says them in radians."""

from __future__ import annotations

from rewardstack_verifier.comparison.expressions import equal_values
from rewardstack_verifier.numbers.functions import TRIGONOMETRIC
from rewardstack_verifier.numbers.tree import Apply, Constant, Expression, integer, parts

_HALF_TURN = integer(180)


def in_degrees(expression: Expression) -> bool:
    """Whether degrees stand in an expression outside of trigonometric functions."""
    if not isinstance(expression, Apply) or expression.operation in TRIGONOMETRIC:
        return False
    return expression.operation == "degree" or any(map(in_degrees, expression.arguments))


def equal_angles(answer: Expression, reference: Expression) -> bool | None:
    """Whether two angles are equal of which one or both are said in degrees."""
    if in_degrees(answer) and in_degrees(reference):
        return equal_values(_without(answer), _without(reference))
    bare = reference if in_degrees(answer) else answer
    if Constant("pi") in parts(bare):
        return equal_in_radians(answer, reference)
    return equal_values(_without(answer), _without(reference))


def equal_in_radians(answer: Expression, reference: Expression) -> bool | None:
    """Whether two angles are equal of which one is said in degrees, the other in radians."""
    return equal_values(_radians(answer), _radians(reference))


def _without(expression: Expression) -> Expression:
    """The number of degrees."""
    if not isinstance(expression, Apply) or expression.operation in TRIGONOMETRIC:
        return expression
    if expression.operation == "degree":
        return expression.arguments[0]
    return Apply(expression.operation, tuple(map(_without, expression.arguments)))


def _radians(expression: Expression) -> Expression:
    """The angle in radians."""
    if not isinstance(expression, Apply) or expression.operation in TRIGONOMETRIC:
        return expression
    arguments = tuple(map(_radians, expression.arguments))
    if expression.operation == "degree":
        return Apply("product", (*arguments, Apply("quotient", (Constant("pi"), _HALF_TURN))))
    return Apply(expression.operation, arguments)
