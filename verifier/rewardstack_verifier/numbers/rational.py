"""Compute the exact value of an expression that is a rational number of bounded size."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from flint import fmpq, fmpz

from rewardstack_verifier.numbers.tree import Apply, Expression, Number, evaluate_all

MAX_BITS = 100_000
"""Maximum bits of a numerator or denominator."""
MAX_COUNT = 10_000
"""Largest number whose factorial or binomial coefficient is computed exactly."""


def to_fraction(expression: Expression) -> fmpq | None:
    """Return the exact value of an expression as a fraction.

    The result is None if the value is not known to be rational or is too large, or if the expression divides by zero.
    """
    if isinstance(expression, Number):
        return fmpq(expression.value.numerator, expression.value.denominator)
    if not isinstance(expression, Apply) or expression.operation not in _OPERATIONS:
        return None
    values = evaluate_all(expression.arguments, to_fraction)
    return None if values is None else _OPERATIONS[expression.operation](*values)


def to_integer(expression: Expression) -> int | None:
    """Return the exact value of an expression as an integer; None if it is not known to be an integer."""
    value = to_fraction(expression)
    return int(value.p) if value is not None and value.q == 1 else None


def bits(value: fmpq) -> int:
    """Return the larger bit length of numerator and denominator."""
    return int(max(abs(value.p).bit_length(), value.q.bit_length()))


def _sum(*addends: fmpq) -> fmpq | None:
    return _limit(sum(addends, fmpq(0)))


def _product(*factors: fmpq) -> fmpq | None:
    total = fmpq(1)
    for factor in factors:
        if bits(total) + bits(factor) > 2 * MAX_BITS:
            return None
        total *= factor
    return _limit(total)


def _quotient(dividend: fmpq, divisor: fmpq) -> fmpq | None:
    return None if divisor == 0 else _limit(dividend / divisor)


def _power(base: fmpq, exponent: fmpq) -> fmpq | None:
    if exponent.q != 1:
        root = _root(base, fmpq(exponent.q))
        return None if root is None else _power(root, fmpq(exponent.p))
    if base == 0:
        return fmpq(0) if exponent > 0 else None
    if abs(base) == 1:
        return base if exponent.p % 2 else fmpq(1)
    return None if abs(exponent.p) * (bits(base) - 1) > MAX_BITS else base ** int(exponent.p)


def _root(radicand: fmpq, index: fmpq) -> fmpq | None:
    """Return the real root if it is rational; None for other roots, and for even roots of negative numbers."""
    if index.q != 1 or index.p < 1 or index.p > MAX_BITS or (radicand < 0 and index.p % 2 == 0):
        return None
    degree, sign = int(index.p), -1 if radicand < 0 else 1
    numerator_root, denominator_root = abs(radicand.p).root(degree), radicand.q.root(degree)
    root = sign * fmpq(numerator_root, denominator_root)
    return root if root**degree == radicand else None


def _factorial(of: fmpq) -> fmpq | None:
    return fmpq(fmpz.fac_ui(of.p)) if of.q == 1 and 0 <= of.p <= MAX_COUNT else None


def _binomial(n: fmpq, k: fmpq) -> fmpq | None:
    if n.q != 1 or k.q != 1 or not 0 <= k.p <= n.p <= MAX_COUNT:
        return None
    return fmpq(fmpz.bin_uiui(int(n.p), int(k.p)))


def _round_with(function: Callable[[fmpq], fmpz]) -> Callable[[fmpq], fmpq]:
    return lambda of: fmpq(function(of))


def _remainder(dividend: fmpq, divisor: fmpq) -> fmpq | None:
    integers = dividend.q == 1 and divisor.q == 1 and divisor.p != 0
    return fmpq(dividend.p % abs(divisor.p)) if integers else None


def _of_integers(combine: Callable[[fmpz, fmpz], fmpz], start: int) -> Callable[..., fmpq | None]:
    """Return the operation that combines integers; its result is None if a number is not an integer."""

    def apply(*of: fmpq) -> fmpq | None:
        are_integers = all(one.q == 1 for one in of)
        return _limit(fmpq(reduce(combine, (one.p for one in of), fmpz(start)))) if are_integers else None

    return apply


def _limit(value: fmpq) -> fmpq | None:
    return value if bits(value) <= MAX_BITS else None


_OPERATIONS: dict[str, Callable[..., fmpq | None]] = {
    "sum": _sum,
    "product": _product,
    "quotient": _quotient,
    "negative": lambda of: -of,
    "power": _power,
    "root": _root,
    "abs": abs,
    "factorial": _factorial,
    "binomial": _binomial,
    "floor": _round_with(lambda of: of.floor()),
    "ceiling": _round_with(lambda of: of.ceil()),
    "sign": lambda of: fmpq((of > 0) - (of < 0)),
    "remainder": _remainder,
    "gcd": _of_integers(fmpz.gcd, 0),
    "lcm": _of_integers(fmpz.lcm, 1),
    "maximum": max,
    "minimum": min,
}
