"""Compare two expressions by value: `equal_values`, the last step of all comparisons.

Numbers and functions are compared by value, decimals by rounding, angles with or without degree signs, percentages with
or without percent signs, and infinite sums term by term.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TypeGuard

from rewardstack_verifier.comparison.constants import equal_families, have_constants
from rewardstack_verifier.comparison.decimals import Decimal, current_tolerance, max_distance
from rewardstack_verifier.numbers.equality import is_closer_than, is_within, same
from rewardstack_verifier.numbers.functions import TRIGONOMETRIC
from rewardstack_verifier.numbers.rational import to_fraction, to_integer
from rewardstack_verifier.numbers.tree import (
    OVER_INDEX,
    Apply,
    Constant,
    Expression,
    Number,
    Symbol,
    integer,
    is_call,
    negative,
    operations,
    parts,
    substitute,
    symbols,
    transform,
)
from rewardstack_verifier.tracing import UNDECIDED, trace

_WITHOUT_VALUE = frozenset(("percent", "plus or minus", "minus or plus", "subscript"))
_INFINITY = Constant("infinity")
_INFINITIES = (_INFINITY, negative(_INFINITY))
_RADIANS = Apply("quotient", (Constant("pi"), integer(180)))
"""A degree."""
_INDEX = Symbol("n")
"""Symbol for the number of a term, from 0. In terms such as `n!` or `(-1)^n`, it has only integer values."""


def equal_values(answer: Expression, reference: Expression) -> bool | None:
    """Return whether two expressions have the same value.

    An expression may also be infinity, an infinite series, a percentage, or an angle in degrees. If a comparison
    reaches its limits without a decision, the result is False, and `UNDECIDED` is traced.

    Returns:
        None if an expression has no value that can be compared.
    """
    if answer in _INFINITIES or reference in _INFINITIES:
        return answer == reference
    if _is_infinite_series(answer) and _is_infinite_series(reference):
        return _equal_series(answer, reference)
    if as_percentage(answer) or as_percentage(reference):
        return _equal_percentages(answer, reference)
    if has_degree_signs(answer) or has_degree_signs(reference):
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
    decided = same(answer, reference)
    if not decided and have_constants(answer, reference):
        decided = equal_families(answer, reference)
    if decided is None:
        trace(UNDECIDED)
    tolerance = current_tolerance()
    if tolerance is not None:
        return bool(decided) or is_within(answer, reference, tolerance)
    distance = max_distance(_decimal(answer), _decimal(reference))
    return True if not decided and distance and is_closer_than(answer, reference, distance) else bool(decided)


def has_value(expression: Expression) -> bool:
    """Return whether an expression has a value that can be computed.

    It has no such value if it contains infinity, a percent sign, `\\pm`, a number with a base, a function such as
    `f(x)`, or a degree sign outside of trigonometric functions.
    """
    if _INFINITY in parts(expression) or any(
        part.operation in _WITHOUT_VALUE or is_call(part) for part in operations(expression)
    ):
        return False
    return not has_degree_signs(expression)


def has_calls(expression: Expression) -> bool:
    """Return whether an expression contains a function named by a letter: `f(7) - 1`."""
    return any(map(is_call, operations(expression)))


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
        if not isinstance(number, Number) or number.places is None:
            return None
        if exponent is not None and abs(exponent) < 1000:
            return number.value * Fraction(10) ** exponent, number.places - exponent
    return None


def _exponent_of_ten(expression: Expression) -> int | None:
    if isinstance(expression, Apply) and expression.operation == "power" and expression.arguments[0] == integer(10):
        return to_integer(expression.arguments[1])
    return 1 if expression == integer(10) else None


def has_degree_signs(expression: Expression) -> bool:
    """Return whether an expression has degree signs outside of trigonometric functions."""
    if not isinstance(expression, Apply) or expression.operation in TRIGONOMETRIC:
        return False
    return expression.operation == "degree" or any(map(has_degree_signs, expression.arguments))


def _equal_angles(answer: Expression, reference: Expression) -> bool | None:
    """Return whether two angles, at least one of them in degrees, are equal."""
    if has_degree_signs(answer) and has_degree_signs(reference):
        return equal_values(_strip_degree_signs(answer), _strip_degree_signs(reference))
    bare = reference if has_degree_signs(answer) else answer
    if Constant("pi") in parts(bare):
        return equal_in_radians(answer, reference)
    return equal_values(_strip_degree_signs(answer), _strip_degree_signs(reference))


def equal_in_radians(answer: Expression, reference: Expression) -> bool | None:
    """Return whether two angles are equal, each in degrees if it has degree signs, else in radians."""
    return equal_values(_to_radians(answer), _to_radians(reference))


def _strip_degree_signs(expression: Expression) -> Expression:
    """Return the expression without degree signs."""
    return _replace_degrees(expression, lambda angle: angle)


def _to_radians(expression: Expression) -> Expression:
    """Return the expression with degrees converted to radians."""
    return _replace_degrees(expression, lambda angle: Apply("product", (angle, _RADIANS)))


def _replace_degrees(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Return the expression with each angle in degrees replaced, except in trigonometric functions."""

    def replace(part: Expression) -> Expression | None:
        if isinstance(part, Apply) and part.operation == "degree":
            return change(part.arguments[0])
        return part if isinstance(part, Apply) and part.operation in TRIGONOMETRIC else None

    return transform(expression, replace)


def as_percentage(node: object) -> Expression | None:
    """Return the expression before a percent sign; None if the node does not end with a percent sign."""
    if not isinstance(node, Apply):
        return None
    last = node.arguments[-1]
    if node.operation == "product" and isinstance(last, Apply) and last.operation == "percent":
        return Apply("product", (*node.arguments[:-1], *last.arguments))  # `2x\\%`
    return node.arguments[0] if node.operation == "percent" else None


def _equal_percentages(answer: Expression, reference: Expression) -> bool | None:
    """Return whether two expressions, at least one of them a percentage, are equal.

    A number without a percent sign is a fraction if its absolute value is at most 1, and a percentage otherwise. A
    reference above 100 % also accepts the fraction: 1.5 for 150 %. For letters and irrational numbers, `x\\%` is
    `x/100`.
    """
    answer_percent, reference_percent = as_percentage(answer), as_percentage(reference)
    if answer_percent is not None and reference_percent is not None:
        return equal_values(answer_percent, reference_percent)
    percent, bare = (answer_percent, reference) if answer_percent is not None else (reference_percent, answer)
    if percent is None:
        return False
    fraction, percent_value = to_fraction(bare), to_fraction(percent)
    if fraction is None or percent_value is None:
        percent = Apply("quotient", (percent, Number(Fraction(100))))
    elif abs(fraction) <= 1:
        percent = scale(percent, Fraction(1, 100))
    elif reference_percent is not None and percent_value > 100 and fraction * 100 == percent_value:
        return True
    return equal_values(percent, reference) if answer_percent is not None else equal_values(bare, percent)


def scale(value: Expression, as_ratio: Fraction) -> Expression:
    """Return a value times a ratio; if the ratio is a power of ten, a decimal keeps its significant digits."""
    if as_ratio == 1:
        return value
    if not isinstance(value, Number) or value.places is None:
        return simplify(Apply("product", (Number(as_ratio), value)))
    shift = next((shift for shift in range(-30, 31) if as_ratio == Fraction(10) ** shift), None)
    return Number(value.value * as_ratio, None if shift is None else value.places - shift)


def simplify(expression: Expression) -> Expression:
    """Return an expression as a number if it is rational; otherwise unchanged."""
    value = to_fraction(expression)
    return expression if value is None else Number(Fraction(int(value.p), int(value.q)))


def _is_infinite_series(expression: Expression) -> TypeGuard[Apply]:
    """Return whether an expression is an infinite sum or product."""
    return isinstance(expression, Apply) and expression.operation in OVER_INDEX and expression.arguments[3] == _INFINITY


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
    return substitute(body, name, Apply("sum", (_INDEX, first)))


def all_of(verdicts: Iterable[bool | None]) -> bool | None:
    """Combine verdicts with "and": False if one is False, else None if one is None, else True."""
    found = set(verdicts)
    return False if False in found else None if None in found else True


def any_of(verdicts: Iterable[bool | None]) -> bool | None:
    """Combine verdicts with "or": True if one is True, else None if one is None, else False."""
    found = set(verdicts)
    return True if True in found else None if None in found else False
