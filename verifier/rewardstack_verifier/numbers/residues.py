"""Compare rational functions, and rational numbers too large to write out, modulo two primes of 61 bits.

If two functions differ, the numerator of their difference is a nonzero polynomial of some degree d. At a random point
modulo a prime p, it is zero with a probability of at most d / p (Schwartz and Zippel). So the probability that both
primes miss the difference is at most about d² / 2^122.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from random import Random

from flint import nmod

from rewardstack_verifier.numbers.rational import to_integer
from rewardstack_verifier.numbers.tree import Apply, Expression, Number, Symbol, evaluate_all, symbols

PRIMES = (2305843009213693951, 2305843009213693921)
"""2^61 - 1 and the prime before it."""
ATTEMPTS = 4
"""Maximum number of points to try for each prime. If a divisor is zero at a point, the next point is tried."""


def same_residues(one: Expression, other: Expression, seed: int) -> bool | None:
    """Return whether two rational functions are equal.

    Args:
        one: an expression.
        other: another expression.
        seed: seed of the random points.

    Returns:
        None if an expression is not a rational function, or has a zero divisor at all points.
    """
    names, random = sorted(symbols(one, other)), Random(seed)
    for prime in PRIMES:
        same = None
        for _ in range(ATTEMPTS):
            values = {name: nmod(random.randrange(2, prime), prime) for name in names}
            left, right = residue(one, values, prime), residue(other, values, prime)
            if left is not None and right is not None:
                same = left == right
                break
            if not names:
                break
        if not same:
            return same
    return True


def residue(expression: Expression, values: Mapping[str, nmod], prime: int) -> nmod | None:
    """Return the value modulo a prime; None if the expression is not rational, or a divisor is zero at this point.

    Args:
        expression: an expression whose symbols are all in `values`.
        values: values of the symbols, modulo the prime.
        prime: one of `PRIMES`.
    """
    if isinstance(expression, Number):
        return _quotient(nmod(expression.value.numerator, prime), nmod(expression.value.denominator, prime))
    if isinstance(expression, Symbol):
        return values[expression.name]
    if not isinstance(expression, Apply):
        return None
    if expression.operation == "power":
        return _power(expression, values, prime)
    operation = _OPERATIONS.get(expression.operation)
    if operation is None:
        return None
    residues = evaluate_all(expression.arguments, lambda argument: residue(argument, values, prime))
    return None if residues is None else operation(*residues)


def _power(expression: Apply, values: Mapping[str, nmod], prime: int) -> nmod | None:
    exponent = to_integer(expression.arguments[1])
    base = residue(expression.arguments[0], values, prime)
    if exponent is None or base is None or (base == 0 and exponent <= 0):
        return None
    return base ** (exponent % (prime - 1)) if base != 0 else base


def _quotient(dividend: nmod, divisor: nmod) -> nmod | None:
    return None if divisor == 0 else dividend / divisor


_OPERATIONS: dict[str, Callable[..., nmod | None]] = {
    "sum": lambda *addends: reduce(nmod.__add__, addends),
    "product": lambda *factors: reduce(nmod.__mul__, factors),
    "quotient": _quotient,
    "negative": lambda of: -of,
}
