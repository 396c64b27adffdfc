"""Whether two expressions are equal as numbers or as functions of their symbols: `same`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from flint import acb, arb, fmpq

from rewardstack_verifier.numbers.balls import Balls, precision
from rewardstack_verifier.numbers.functions import NoValueError, is_real
from rewardstack_verifier.numbers.points import points, seed_of
from rewardstack_verifier.numbers.rational import rational
from rewardstack_verifier.numbers.residues import same_residues
from rewardstack_verifier.numbers.separation import separation_bits
from rewardstack_verifier.numbers.tree import Apply, Expression, Number, difference, substituted, symbols

PRECISIONS = (384, 1536, 4096, 16384)
"""Bits, tried in turn until a comparison is decided."""
CLOSE = 300
"""Two numbers whose difference is surely below 2^-CLOSE, relative to the reference or to one, are taken for equal."""
ENOUGH = 8
"""Points at which two functions have to agree."""

ZERO = Number(Fraction(0))
BASE_POINTS = tuple(tuple(Number(Fraction(start + 7 * at, 11)) for at in range(16)) for start in (13, 29, 101, -17))
"""Values of symbols at which the factor of two expressions is looked for; of more symbols it is not."""


class Comparison(NamedTuple):
    """What a comparison of two values gave.

    Args:
        same: None where they were neither shown to be the same nor different.
        real: whether both are real.
    """

    same: bool | None
    real: bool


def same(answer: Expression, reference: Expression) -> bool | None:
    """Whether two expressions are equal.

    Numbers are equal as numbers. Functions are where they have the same values at all points where both are real; where
    they are nowhere both real, where their principal complex values are the same.

    Args:
        answer: may be as hostile as the bounds of the parser allow.
        reference: what it is compared with; the two can be swapped but where numbers beyond all precision are compared.

    Returns:
        None where it cannot be decided: neither has a value that is known, or they cannot be told apart at the highest
        of `PRECISIONS` and are not known to be equal.
    """
    if answer == reference:
        return True
    exact = _same_exactly(answer, reference)
    if exact is not None:
        return exact
    return _same_functions(answer, reference) if symbols(answer, reference) else _same_numbers(answer, reference)


def _same_exactly(answer: Expression, reference: Expression) -> bool | None:
    if not symbols(answer, reference):
        values = rational(answer), rational(reference)
        if None not in values:
            return bool(values[0] == values[1])
    return same_residues(answer, reference, seed_of(answer, reference))


def _same_numbers(answer: Expression, reference: Expression) -> bool | None:
    least = separation_bits(difference(answer, reference))
    try:
        if least is not None and least <= PRECISIONS[-1]:
            return _same_algebraic(answer, reference, int(least) + 1)
        return _compared(answer, reference)
    except NoValueError:
        return None


def _same_algebraic(answer: Expression, reference: Expression, least: int) -> bool | None:
    """Whether two numbers are equal that differ by 2^-least or more, if they do."""
    bits = 2 * least + PRECISIONS[0]
    with precision(bits):
        balls = Balls(bits, {})
        apart = balls.value(answer) - balls.value(reference)
        if not apart.contains(0):
            return False
        return True if apart.abs_upper() < arb(2) ** -least else None


def _same_functions(answer: Expression, reference: Expression) -> bool | None:
    """Compares at points until two real values part, or enough of them agree.

    All points are tried at one precision before any is at the next: where two functions are large, or small, nothing
    may be seen of a part of them, but there are others.
    """
    sampled = points(answer, reference)
    pending, required = sampled.values, sampled.required
    agreed, parted = {True: 0, False: 0}, False
    for bits in PRECISIONS:
        open_, breaking = list[Mapping[str, acb]](), False
        for done, values in enumerate(pending):
            if done >= required and agreed[True] >= ENOUGH and not breaking:
                return True
            try:
                same_here, real = _compared_at(bits, answer, reference, values)
            except NoValueError:
                continue
            if same_here is None:
                open_.append(values)
                breaking |= done < sampled.breaking and bits == PRECISIONS[0]
            elif not same_here and real:
                return False
            else:
                parted |= not same_here
                agreed[real] += same_here
        pending, required = open_, 0
    if agreed[True]:
        return True if agreed[True] >= ENOUGH or (not parted and sum(agreed.values()) >= ENOUGH) else None
    return False if parted else (True if agreed[False] >= ENOUGH else None)


def _compared(answer: Expression, reference: Expression) -> bool | None:
    """Compares two numbers at rising precision; None where they are neither shown to be the same nor different.

    Raises:
        NoValueError: one of them has no value.
    """
    found = (_compared_at(bits, answer, reference, {}).same for bits in PRECISIONS)
    return next((same_ for same_ in found if same_ is not None), None)


def _compared_at(bits: int, answer: Expression, reference: Expression, values: Mapping[str, acb]) -> Comparison:
    """Compares two values at one precision.

    Raises:
        NoValueError: one of them has none.
    """
    with precision(bits):
        balls = Balls(bits, values)
        left, right = balls.value(answer), balls.value(reference)
        real, apart = is_real(left) and is_real(right), left - right
        if not apart.contains(0):
            return Comparison(False, real)
        close = not balls.absorbed and apart.abs_upper() < right.abs_upper().max(arb(1)) * arb(2) ** -CLOSE
        return Comparison(True if close else None, real)


def proportional(answer: Expression, reference: Expression, positively: bool = False) -> bool | None:
    """Whether two expressions are the same up to a factor that is a number and not zero.

    Their values at one point give the factor, which then has to hold everywhere.

    Args:
        answer: of symbols.
        reference: likewise.
        positively: the factor has to be positive.

    Returns:
        None as `same` does, or where no point is found at which both have a value other than zero.
    """
    names = sorted(symbols(answer, reference))
    if not names or symbols(answer) != symbols(reference):
        return None if not names else False
    for at in BASE_POINTS:
        values = dict(zip(names, at, strict=False))
        one, other = (at_point(expression, values) for expression in (answer, reference))
        if same(one, ZERO) is False and same(other, ZERO) is False:
            if positively and is_less(one, ZERO) != is_less(other, ZERO):
                return False
            return same(Apply("product", (answer, other)), Apply("product", (reference, one)))
    return None


def at_point(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """The expression with values in the place of symbols."""
    for name, value in values.items():
        expression = substituted(expression, name, value)
    return expression


def distance_below(one: Expression, other: Expression, limit: Fraction) -> bool:
    """Whether two numbers are surely less than a limit apart; False as well where one has no value."""
    bits = PRECISIONS[0]
    try:
        with precision(bits):
            balls = Balls(bits, {})
            apart = balls.value(one) - balls.value(other)
            return bool(apart.abs_upper() < arb(fmpq(limit.numerator, limit.denominator)))
    except NoValueError:
        return False


def is_within(one: Expression, other: Expression, tolerance: Fraction) -> bool:
    """Whether two numbers are surely no further apart than a part of the second; False where one has no value."""
    exact, limit = [rational(each) for each in (one, other)], fmpq(tolerance.numerator, tolerance.denominator)
    if exact[0] is not None and exact[1] is not None:
        return bool(abs(exact[0] - exact[1]) <= limit * abs(exact[1]))
    bits = PRECISIONS[0]
    try:
        with precision(bits):
            balls = Balls(bits, {})
            left, right = balls.value(one), balls.value(other)
            return bool((left - right).abs_upper() <= arb(limit) * right.abs_lower())
    except NoValueError:
        return False


def is_less(one: Expression, other: Expression) -> bool | None:
    """Whether a real number is less than another; None where they cannot be told apart, or are not both real."""
    if symbols(one, other):
        return None
    for bits in PRECISIONS:
        try:
            with precision(bits):
                balls = Balls(bits, {})
                left, right = balls.value(one), balls.value(other)
                if not (is_real(left) and is_real(right)):
                    return None
                apart = left.real - right.real
                if not apart.contains(0):
                    return bool(apart < 0)
        except NoValueError:
            return None
    return None


def nearest_fraction(expression: Expression, most: int) -> Fraction | None:
    """The fraction nearest to a real number among those with a denominator up to `most`; None where there is none."""
    bits = PRECISIONS[0]
    try:
        with precision(bits):
            value = Balls(bits, {}).value(expression)
            size = float(value.real) if is_real(value) else math.inf
    except NoValueError:
        return None
    return Fraction(size).limit_denominator(most) if math.isfinite(size) else None
