"""Two expressions: equal by their values, or as decimals are."""

from __future__ import annotations

from fractions import Fraction

from rewardstack_verifier.comparison.constants import arbitrary_constants, equal_families, have_other_constants
from rewardstack_verifier.comparison.decimals import Decimal, reach, tolerance
from rewardstack_verifier.comparison.endless import equal_series, is_endless
from rewardstack_verifier.numbers.equality import distance_below, is_within, same
from rewardstack_verifier.numbers.functions import TRIGONOMETRIC
from rewardstack_verifier.numbers.rational import integral
from rewardstack_verifier.numbers.tree import (
    Apply,
    Constant,
    Expression,
    Number,
    integer,
    negative,
    parts,
)
from rewardstack_verifier.trail import UNDECIDED, tell

_NOT_HERE = frozenset(("percent", "plus or minus", "minus or plus", "subscript"))
_INFINITIES = (Constant("infinity"), negative(Constant("infinity")))


def equal_expressions(answer: Expression, reference: Expression) -> bool:
    """Whether two expressions are equal; what cannot be decided is not, which is told.

    Args:
        answer: one that `has_value`.
        reference: likewise.
    """
    if answer == reference:
        return True
    sure = arbitrary_constants(answer) or arbitrary_constants(reference)
    if sure or have_other_constants(answer, reference):
        decided = equal_families(answer, reference)
    else:
        decided = same(answer, reference)
    if decided is None:
        tell(UNDECIDED)
    relative = tolerance()
    if relative is not None:
        return bool(decided) or is_within(answer, reference, relative)
    limit = reach(_decimal(answer), _decimal(reference))
    return True if not decided and limit and distance_below(answer, reference, limit) else bool(decided)


def equal_values(answer: Expression, reference: Expression) -> bool | None:
    """Whether two expressions are equal, one of which may be infinite; None where one is not for its value to say."""
    if answer in _INFINITIES or reference in _INFINITIES:
        return answer == reference
    if is_endless(answer) and is_endless(reference):
        return equal_series(answer, reference)
    return equal_expressions(answer, reference) if has_value(answer) and has_value(reference) else None


def has_value(expression: Expression) -> bool:
    """Whether nothing in an expression needs more than numbers to be understood: a unit, two signs, a function f."""
    for part in parts(expression):
        if part == Constant("infinity"):
            return False
        if isinstance(part, Apply) and part.operation in _NOT_HERE:
            return False
    return not calls(expression) and not _has_angle(expression)


def calls(expression: Expression) -> bool:
    """Whether a function that a letter stands for is in an expression: `f(7) - 1`."""
    return any(isinstance(part, Apply) and part.operation.startswith("call ") for part in parts(expression))


def _has_angle(expression: Expression) -> bool:
    """Whether degrees stand outside of a trigonometric function."""
    if not isinstance(expression, Apply):
        return False
    if expression.operation == "degree":
        return True
    return expression.operation not in TRIGONOMETRIC and any(map(_has_angle, expression.arguments))


def _decimal(expression: Expression) -> Decimal | None:
    """The decimal that an expression is, its sign and power of ten included; None where it is anything else."""
    if isinstance(expression, Number):
        return None if expression.places is None else (expression.value, expression.places)
    if not isinstance(expression, Apply):
        return None
    if expression.operation == "negative":
        inner = _decimal(expression.arguments[0])
        return inner and (-inner[0], inner[1])
    if expression.operation == "product" and len(expression.arguments) == 2:
        number, power = expression.arguments
        exponent = _exponent_of_ten(power)
        if isinstance(number, Number) and exponent is not None and abs(exponent) < 1000:
            return number.value * Fraction(10) ** exponent, (number.places or 0) - exponent
    return None


def _exponent_of_ten(expression: Expression) -> int | None:
    if isinstance(expression, Apply) and expression.operation == "power" and expression.arguments[0] == integer(10):
        return integral(expression.arguments[1])
    return 1 if expression == integer(10) else None
