"""Decide whether two expressions are equal as numbers or as functions of their symbols: `same`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import NamedTuple, TypeVar

from flint import acb, arb, fmpq

from rewardstack_verifier.numbers.balls import Balls, precision
from rewardstack_verifier.numbers.functions import NoValueError, is_real
from rewardstack_verifier.numbers.points import sample_points, seed_of
from rewardstack_verifier.numbers.rational import to_fraction
from rewardstack_verifier.numbers.residues import same_residues
from rewardstack_verifier.numbers.separation import separation_bits
from rewardstack_verifier.numbers.tree import Apply, Expression, Number, difference, substitute_all, symbols

T = TypeVar("T")
PRECISIONS = (384, 1536, 4096, 16384)
"""Precisions in bits, which are tried in this order until a comparison is decided."""
CLOSE_BITS = 300
"""Two numbers count as equal if they differ by less than 2^-CLOSE_BITS times the reference.

If the absolute value of the reference is below 1, they must differ by less than 2^-CLOSE_BITS.
"""
MIN_AGREEING = 8
"""Minimum number of points with equal values for two functions to be equal."""

ZERO = Number(Fraction(0))
BASE_POINTS = tuple(
    tuple(Number(Fraction(start + 7 * point, 11)) for point in range(16)) for start in (13, 29, 101, -17)
)
"""Points for `are_proportional` and `spans`; each has values for up to 16 symbols."""


class Comparison(NamedTuple):
    """The result of comparing two values.

    Args:
        same: whether the values are equal; None if neither equality nor difference was found.
        real: whether both values are real.
    """

    same: bool | None
    real: bool


def same(answer: Expression, reference: Expression) -> bool | None:
    """Return whether two expressions are equal.

    Numbers are compared by value. Functions are equal if their values are the same at all sample points where both are
    real, or, without such points, if their principal complex values are the same.

    Args:
        answer: any expression that the parser returns; it is untrusted.
        reference: the expression to compare with. The order matters only for numbers of extreme size.

    Returns:
        None if unknown: an expression has no known value, or even the highest of `PRECISIONS` shows neither that the
        two are equal nor that they differ.
    """
    if answer == reference:
        return True
    exact = _same_exactly(answer, reference)
    if exact is not None:
        return exact
    return _same_functions(answer, reference) if symbols(answer, reference) else _same_numbers(answer, reference)


def _same_exactly(answer: Expression, reference: Expression) -> bool | None:
    if not symbols(answer, reference):
        values = to_fraction(answer), to_fraction(reference)
        if None not in values:
            return bool(values[0] == values[1])
    return same_residues(answer, reference, seed_of(answer, reference))


def _same_numbers(answer: Expression, reference: Expression) -> bool | None:
    separation = separation_bits(difference(answer, reference))
    try:
        if separation is not None and separation <= PRECISIONS[-1]:
            return _same_algebraic(answer, reference, int(separation) + 1)
        return _compare(answer, reference)
    except NoValueError:
        return None


def _same_algebraic(answer: Expression, reference: Expression, separation: int) -> bool | None:
    """Return whether two numbers are equal.

    The caller has proven that the numbers differ by at least 2^-separation if they are not equal.
    """
    bits = 2 * separation + PRECISIONS[0]
    with precision(bits):
        balls = Balls(bits, {})
        apart = balls.value(answer) - balls.value(reference)
        if not apart.contains(0):
            return False
        return True if apart.abs_upper() < arb(2) ** -separation else None


def _same_functions(answer: Expression, reference: Expression) -> bool | None:
    """Compare two functions at points until two real values differ, or enough values agree.

    All points are tried at one precision before the next precision is used. At a point where a function is very large
    or small, a low precision may hide a small term of the function, but another point can decide.
    """
    points = sample_points(answer, reference)
    pending, required, breaking = points.values, points.required, points.breaking
    agreeing, has_difference = {True: 0, False: 0}, False
    for bits in PRECISIONS:
        undecided, undecided_breakpoints = list[Mapping[str, acb]](), 0
        for index, values in enumerate(pending):
            if index >= required and agreeing[True] >= MIN_AGREEING and not undecided_breakpoints:
                return True
            try:
                same_here, real = _compare_at(bits, answer, reference, values)
            except NoValueError:
                continue
            if same_here is None:
                undecided.append(values)
                undecided_breakpoints += index < breaking
            elif not same_here and real:
                return False
            else:
                has_difference |= not same_here
                agreeing[real] += same_here
        pending, required, breaking = undecided, undecided_breakpoints, undecided_breakpoints
    if agreeing[True]:
        is_enough = agreeing[True] >= MIN_AGREEING or (not has_difference and sum(agreeing.values()) >= MIN_AGREEING)
        return True if is_enough else None
    return False if has_difference else (True if agreeing[False] >= MIN_AGREEING else None)


def _compare(answer: Expression, reference: Expression) -> bool | None:
    """Compare two numbers at rising precision; return None if neither equality nor difference is found.

    Raises:
        NoValueError: a number has no value.
    """
    found = (_compare_at(bits, answer, reference, {}).same for bits in PRECISIONS)
    return next((same_ for same_ in found if same_ is not None), None)


def _compare_at(bits: int, answer: Expression, reference: Expression, values: Mapping[str, acb]) -> Comparison:
    """Compare two expressions at one precision, for given values of their symbols.

    Raises:
        NoValueError: an expression has no value.
    """
    with precision(bits):
        balls = Balls(bits, values)
        left, right = balls.value(answer), balls.value(reference)
        real, apart = is_real(left) and is_real(right), left - right
        if not apart.contains(0):
            return Comparison(False, real)
        close = not balls.absorbed and apart.abs_upper() < right.abs_upper().max(arb(1)) * arb(2) ** -CLOSE_BITS
        return Comparison(True if close else None, real)


def are_proportional(answer: Expression, reference: Expression, positively: bool = False) -> bool | None:
    """Return whether two expressions are equal up to a constant nonzero factor.

    The factor is computed at one point. Then the expressions must differ by this factor at all points.

    Args:
        answer: an expression with symbols.
        reference: an expression with symbols.
        positively: whether the factor must be positive.

    Returns:
        None if unknown, if neither expression has symbols, or if no point of `BASE_POINTS` gives nonzero values.
    """
    names = sorted(symbols(answer, reference))
    if not names or symbols(answer) != symbols(reference):
        return None if not names else False
    for point in BASE_POINTS:
        values = dict(zip(names, point, strict=False))
        one, other = (substitute_all(expression, values) for expression in (answer, reference))
        if same(one, ZERO) is False and same(other, ZERO) is False:
            if positively and is_less(one, ZERO) != is_less(other, ZERO):
                return False
            return same(Apply("product", (answer, other)), Apply("product", (reference, one)))
    return None


def _evaluate(bits: int, work: Callable[..., T], *numbers: Expression) -> T | None:
    """Return the result of `work` for the balls of numbers at one precision; None if a number has no value."""
    try:
        with precision(bits):
            return work(*map(Balls(bits, {}).value, numbers))
    except NoValueError:
        return None


def is_closer_than(one: Expression, other: Expression, limit: Fraction) -> bool:
    """Return whether two numbers are proven to differ by less than a limit; False if a number has no value."""
    exact = fmpq(limit.numerator, limit.denominator)
    return bool(_evaluate(PRECISIONS[0], lambda left, right: (left - right).abs_upper() < arb(exact), one, other))


def is_within(one: Expression, other: Expression, tolerance: Fraction) -> bool:
    """Return whether a number is proven to differ from `other` by at most `tolerance` times `other`.

    The result is False if a number has no value.
    """
    exact, limit = [to_fraction(each) for each in (one, other)], fmpq(tolerance.numerator, tolerance.denominator)
    if exact[0] is not None and exact[1] is not None:
        return bool(abs(exact[0] - exact[1]) <= limit * abs(exact[1]))

    def is_near(left: acb, right: acb) -> bool:
        return bool((left - right).abs_upper() <= arb(limit) * right.abs_lower())

    return bool(_evaluate(PRECISIONS[0], is_near, one, other))


def is_less(one: Expression, other: Expression) -> bool | None:
    """Return whether a real number is less than another; None if unknown, or if a number is not real."""

    def subtract(left: acb, right: acb) -> arb | None:
        return left.real - right.real if is_real(left) and is_real(right) else None

    for bits in () if symbols(one, other) else PRECISIONS:
        apart = _evaluate(bits, subtract, one, other)
        if apart is None or not apart.contains(0):
            return None if apart is None else bool(apart < 0)
    return None


def nearest_fraction(expression: Expression, max_denominator: int) -> Fraction | None:
    """Return the nearest fraction with a denominator up to `max_denominator`; None if there is no real value."""
    size = _evaluate(PRECISIONS[0], lambda value: float(value.real) if is_real(value) else math.inf, expression)
    return None if size is None or not math.isfinite(size) else Fraction(size).limit_denominator(max_denominator)
