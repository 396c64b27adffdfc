"""Whether two expressions have the same value: `equal_values`, at the end of all comparisons.

Numbers and functions are equal by their values, decimals as they round, angles whether or not degrees are said,
percentages as fractions or as percent, endless sums term by term.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TypeGuard

from rewardstack_verifier.comparison.constants import arbitrary_constants, equal_families, have_other_constants
from rewardstack_verifier.comparison.decimals import Decimal, reach, tolerance
from rewardstack_verifier.numbers.equality import distance_below, is_within, same
from rewardstack_verifier.numbers.functions import TRIGONOMETRIC
from rewardstack_verifier.numbers.rational import integral, rational
from rewardstack_verifier.numbers.tree import (
    OVER_INDEX,
    Apply,
    Constant,
    Expression,
    Number,
    Symbol,
    integer,
    negative,
    parts,
    substituted,
    symbols,
)
from rewardstack_verifier.trail import UNDECIDED, tell

_NOT_HERE = frozenset(("percent", "plus or minus", "minus or plus", "subscript"))
_INFINITIES = (Constant("infinity"), negative(Constant("infinity")))
_HALF_TURN = integer(180)
_INDEX = Symbol("n")
"""Which counts the terms of two series, from 0 on: a letter of integers."""


def equal_values(answer: Expression, reference: Expression) -> bool | None:
    """Whether two expressions have the same value.

    Either may be infinite, a series, a percentage, an angle in degrees, or a decimal. What cannot be decided is not
    equal, which is told.

    Returns:
        None where one is not for its value to say.
    """
    if answer in _INFINITIES or reference in _INFINITIES:
        return answer == reference
    if _is_endless(answer) and _is_endless(reference):
        return _equal_series(answer, reference)
    if percentage(answer) or percentage(reference):
        return _equal_percentages(answer, reference)
    if in_degrees(answer) or in_degrees(reference):
        return _equal_angles(answer, reference)
    return _equal_expressions(answer, reference) if has_value(answer) and has_value(reference) else None


def _equal_expressions(answer: Expression, reference: Expression) -> bool:
    """Whether two expressions are equal; what cannot be decided is not, which is told.

    Args:
        answer: one that `has_value`.
        reference: the same.
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


def has_value(expression: Expression) -> bool:
    """Whether nothing in an expression needs more than numbers to be understood: a unit, two signs, a function f."""
    for part in parts(expression):
        if part == Constant("infinity"):
            return False
        if isinstance(part, Apply) and part.operation in _NOT_HERE:
            return False
    return not calls(expression) and not in_degrees(expression)


def calls(expression: Expression) -> bool:
    """Whether a function that a letter stands for is in an expression: `f(7) - 1`."""
    return any(isinstance(part, Apply) and part.operation.startswith("call ") for part in parts(expression))


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


def in_degrees(expression: Expression) -> bool:
    """Whether degrees stand in an expression outside of trigonometric functions."""
    if not isinstance(expression, Apply) or expression.operation in TRIGONOMETRIC:
        return False
    return expression.operation == "degree" or any(map(in_degrees, expression.arguments))


def _equal_angles(answer: Expression, reference: Expression) -> bool | None:
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


def percentage(node: object) -> Expression | None:
    """What stands before a percent sign; None where there is none."""
    if not isinstance(node, Apply):
        return None
    last = node.arguments[-1]
    if node.operation == "product" and isinstance(last, Apply) and last.operation == "percent":
        return Apply("product", (*node.arguments[:-1], *last.arguments))  # `2x\\%`
    return node.arguments[0] if node.operation == "percent" else None


def _equal_percentages(answer: Expression, reference: Expression) -> bool | None:
    """Whether two expressions are equal of which one or both are percentages.

    A bare number is read one way only: up to 1 it is a fraction, above it is a percentage whose sign was left out. 1.5
    for 150 % leaves nothing open: what was asked for is a percentage. Letters and irrational numbers are
    fractions: `x\\%` is `x/100`.
    """
    of_answer, of_reference = percentage(answer), percentage(reference)
    if of_answer is not None and of_reference is not None:
        return equal_values(of_answer, of_reference)
    said, bare = (of_answer, reference) if of_answer is not None else (of_reference, answer)
    size, hundred = rational(bare), rational(said) if said is not None else None
    if said is None:
        return False
    if size is None or hundred is None:
        said = Apply("quotient", (said, Number(Fraction(100))))
        return equal_values(said, reference) if of_answer is not None else equal_values(bare, said)
    if abs(size) <= 1:
        said = scaled(said, Fraction(1, 100))
    elif of_reference is not None and hundred > 100 and size * 100 == hundred:
        return True
    return equal_values(said, reference) if of_answer is not None else equal_values(bare, said)


def scaled(value: Expression, ratio: Fraction) -> Expression:
    """A value times a ratio; a decimal shows as many digits as before where that is a power of ten."""
    if ratio == 1:
        return value
    if not isinstance(value, Number) or value.places is None:
        return simple(Apply("product", (Number(ratio), value)))
    shift = next((shift for shift in range(-30, 31) if ratio == Fraction(10) ** shift), None)
    return Number(value.value * ratio, None if shift is None else value.places - shift)


def simple(expression: Expression) -> Expression:
    """The number that an expression is, where it is a rational one."""
    value = rational(expression)
    return expression if value is None else Number(Fraction(int(value.p), int(value.q)))


def _is_endless(expression: Expression) -> TypeGuard[Apply]:
    """Whether it is a sum or product over an index that has no last value."""
    return (
        isinstance(expression, Apply)
        and expression.operation in OVER_INDEX
        and expression.arguments[3] == Constant("infinity")
    )


def _equal_series(answer: Apply, reference: Apply) -> bool | None:
    """Whether two series have the same terms in the same order; None where it cannot be told.

    Two whose terms differ are not the same, although what they add up to may be.
    """
    if answer.operation != reference.operation:
        return False
    return same(_term(answer), _term(reference))


def _term(series: Apply) -> Expression:
    body, index, first, _ = series.arguments
    [name] = symbols(index)
    return substituted(body, name, Apply("sum", (_INDEX, first)))


def all_of(verdicts: Iterable[bool | None]) -> bool | None:
    """Whether all are true: one that is false decides, one that is open leaves it open."""
    found = set(verdicts)
    return False if False in found else None if None in found else True


def any_of(verdicts: Iterable[bool | None]) -> bool | None:
    """Whether one is true; else one that is open leaves it open."""
    found = set(verdicts)
    return True if True in found else None if None in found else False
