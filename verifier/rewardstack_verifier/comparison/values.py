"""Compare two expressions by value: `equal_values`, the last step of all comparisons.

Numbers and functions are compared by value, decimals by rounding, angles with or without degree signs, percentages with
or without percent signs, and infinite sums term by term.
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
from rewardstack_verifier.trail import UNDECIDED, trace

_NOT_HERE = frozenset(("percent", "plus or minus", "minus or plus", "subscript"))
_INFINITIES = (Constant("infinity"), negative(Constant("infinity")))
_HALF_TURN = integer(180)
_INDEX = Symbol("n")
"""Symbol that counts the terms of two series from 0 on; `n` is compared at integers only."""


def equal_values(answer: Expression, reference: Expression) -> bool | None:
    """Return whether two expressions have the same value.

    Either may be infinite, a series, a percentage, an angle in degrees, or a decimal. If a comparison reaches its
    limits without a decision, the result is False, and `UNDECIDED` is traced.

    Returns:
        None if an expression has no value that can be compared.
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
    """Return whether two expressions are equal; without a decision, return False and trace `UNDECIDED`.

    Args:
        answer: an expression that `has_value`.
        reference: an expression that `has_value`.
    """
    if answer == reference:
        return True
    sure = arbitrary_constants(answer) or arbitrary_constants(reference)
    if sure or have_other_constants(answer, reference):
        decided = equal_families(answer, reference)
    else:
        decided = same(answer, reference)
    if decided is None:
        trace(UNDECIDED)
    relative = tolerance()
    if relative is not None:
        return bool(decided) or is_within(answer, reference, relative)
    limit = reach(_decimal(answer), _decimal(reference))
    return True if not decided and limit and distance_below(answer, reference, limit) else bool(decided)


def has_value(expression: Expression) -> bool:
    """Return whether an expression can be computed: no infinity, percent or degree sign, `\\pm`, base or `f(x)`."""
    for part in parts(expression):
        if part == Constant("infinity"):
            return False
        if isinstance(part, Apply) and part.operation in _NOT_HERE:
            return False
    return not calls(expression) and not in_degrees(expression)


def calls(expression: Expression) -> bool:
    """Return whether an expression contains a function named by a letter: `f(7) - 1`."""
    return any(isinstance(part, Apply) and part.operation.startswith("call ") for part in parts(expression))


def _decimal(expression: Expression) -> Decimal | None:
    """Return an expression as a decimal, with its sign and power of ten; None if it is not a decimal."""
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
    """Return whether an expression has degree signs outside of trigonometric functions."""
    if not isinstance(expression, Apply) or expression.operation in TRIGONOMETRIC:
        return False
    return expression.operation == "degree" or any(map(in_degrees, expression.arguments))


def _equal_angles(answer: Expression, reference: Expression) -> bool | None:
    """Return whether two angles are equal, at least one of which is in degrees."""
    if in_degrees(answer) and in_degrees(reference):
        return equal_values(_without(answer), _without(reference))
    bare = reference if in_degrees(answer) else answer
    if Constant("pi") in parts(bare):
        return equal_in_radians(answer, reference)
    return equal_values(_without(answer), _without(reference))


def equal_in_radians(answer: Expression, reference: Expression) -> bool | None:
    """Return whether two angles are equal, each in degrees if it has degree signs, else in radians."""
    return equal_values(_radians(answer), _radians(reference))


def _without(expression: Expression) -> Expression:
    """Return the expression without degree signs."""
    if not isinstance(expression, Apply) or expression.operation in TRIGONOMETRIC:
        return expression
    if expression.operation == "degree":
        return expression.arguments[0]
    return Apply(expression.operation, tuple(map(_without, expression.arguments)))


def _radians(expression: Expression) -> Expression:
    """Return the expression with degrees converted to radians."""
    if not isinstance(expression, Apply) or expression.operation in TRIGONOMETRIC:
        return expression
    arguments = tuple(map(_radians, expression.arguments))
    if expression.operation == "degree":
        return Apply("product", (*arguments, Apply("quotient", (Constant("pi"), _HALF_TURN))))
    return Apply(expression.operation, arguments)


def percentage(node: object) -> Expression | None:
    """Return the expression before a percent sign; None if the node does not end with a percent sign."""
    if not isinstance(node, Apply):
        return None
    last = node.arguments[-1]
    if node.operation == "product" and isinstance(last, Apply) and last.operation == "percent":
        return Apply("product", (*node.arguments[:-1], *last.arguments))  # `2x\\%`
    return node.arguments[0] if node.operation == "percent" else None


def _equal_percentages(answer: Expression, reference: Expression) -> bool | None:
    """Return whether two expressions are equal, at least one of which is a percentage.

    A number without a percent sign is a fraction if its absolute value is at most 1, and a percentage otherwise. A
    reference above 100 % also accepts the fraction: 1.5 for 150 %. For letters and irrational numbers, `x\\%` is
    `x/100`.
    """
    of_answer, of_reference = percentage(answer), percentage(reference)
    if of_answer is not None and of_reference is not None:
        return equal_values(of_answer, of_reference)
    percent, bare = (of_answer, reference) if of_answer is not None else (of_reference, answer)
    size, hundred = rational(bare), rational(percent) if percent is not None else None
    if percent is None:
        return False
    if size is None or hundred is None:
        percent = Apply("quotient", (percent, Number(Fraction(100))))
        return equal_values(percent, reference) if of_answer is not None else equal_values(bare, percent)
    if abs(size) <= 1:
        percent = scaled(percent, Fraction(1, 100))
    elif of_reference is not None and hundred > 100 and size * 100 == hundred:
        return True
    return equal_values(percent, reference) if of_answer is not None else equal_values(bare, percent)


def scaled(value: Expression, ratio: Fraction) -> Expression:
    """Return a value times a ratio; if the ratio is a power of ten, a decimal keeps its significant digits."""
    if ratio == 1:
        return value
    if not isinstance(value, Number) or value.places is None:
        return simple(Apply("product", (Number(ratio), value)))
    shift = next((shift for shift in range(-30, 31) if ratio == Fraction(10) ** shift), None)
    return Number(value.value * ratio, None if shift is None else value.places - shift)


def simple(expression: Expression) -> Expression:
    """Return an expression as a number if it is rational; otherwise unchanged."""
    value = rational(expression)
    return expression if value is None else Number(Fraction(int(value.p), int(value.q)))


def _is_endless(expression: Expression) -> TypeGuard[Apply]:
    """Return whether an expression is an infinite sum or product."""
    return (
        isinstance(expression, Apply)
        and expression.operation in OVER_INDEX
        and expression.arguments[3] == Constant("infinity")
    )


def _equal_series(answer: Apply, reference: Apply) -> bool | None:
    """Return whether two series have the same terms in the same order; None if unknown.

    Series with different terms are not equal, although their sums may be.
    """
    if answer.operation != reference.operation:
        return False
    return same(_term(answer), _term(reference))


def _term(series: Apply) -> Expression:
    body, index, first, _ = series.arguments
    [name] = symbols(index)
    return substituted(body, name, Apply("sum", (_INDEX, first)))


def all_of(verdicts: Iterable[bool | None]) -> bool | None:
    """Combine verdicts with "and": False if one is False, else None if one is None, else True."""
    found = set(verdicts)
    return False if False in found else None if None in found else True


def any_of(verdicts: Iterable[bool | None]) -> bool | None:
    """Combine verdicts with "or": True if one is True, else None if one is None, else False."""
    found = set(verdicts)
    return True if True in found else None if None in found else False
