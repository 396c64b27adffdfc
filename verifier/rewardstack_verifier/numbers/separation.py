"""Compute a lower bound of the absolute value of a nonzero algebraic number (a separation bound).

An expression that consists of integers, the operations + - * / and roots is a quotient of two algebraic integers. Let u
and l be upper bounds of the absolute values of all conjugates of the dividend (u) and of the divisor (l). If D is the
product of the indices of all roots, the expression is zero, or its absolute value is at least 1 / (u^(D-1) l).
Conjugates include every branch of a root, so the bound also holds for complex values. The bound is that of C. Burnikel,
S. Funke, K. Mehlhorn, S. Schirra and S. Schmitt, "A separation bound for real algebraic expressions", Algorithmica 55
(2009).
"""

from __future__ import annotations

from collections.abc import Callable

from flint import fmpz

from rewardstack_verifier.numbers.rational import to_fraction, to_integer
from rewardstack_verifier.numbers.tree import Apply, Constant, Expression, evaluate_all, parts

MAX_POWER = 64
"""Largest exponent of a power, and largest index of a root, for which a bound is computed."""
_MARGIN = 1 + 2.0**-40
"""Factor that rounds logarithms up."""


def separation_bits(expression: Expression) -> float | None:
    """Return the exponent b such that the expression is zero or its absolute value is at least 2^-b.

    Returns:
        None if the expression is not known to be an algebraic number.
    """
    sizes = _sizes(expression)
    if sizes is None:
        return None
    degree = 1
    for root in {part for part in parts(expression) if _index(part) > 1}:
        degree *= _index(root)
    upper, lower = sizes
    return ((degree - 1) * upper + lower) * _MARGIN + 1


def _index(expression: Expression) -> int:
    """Return the index of a root or fractional power; 2 for the imaginary unit, 1 for other expressions."""
    if isinstance(expression, Constant):
        return 2 if expression.name == "i" else 1
    if not isinstance(expression, Apply):
        return 1
    if expression.operation == "root":
        return to_integer(expression.arguments[1]) or 1
    if expression.operation == "power":
        exponent = to_fraction(expression.arguments[1])
        return int(exponent.q) if exponent is not None else 1
    return 1


def _sizes(expression: Expression) -> tuple[float, float] | None:
    """Return the binary logarithms of u and l (see the module docstring); None if they are unknown."""
    value = to_fraction(expression)
    if value is not None:
        return _log(value.p), _log(value.q)
    if isinstance(expression, Constant):
        return (0.0, 0.0) if expression.name == "i" else None
    if not isinstance(expression, Apply):
        return None
    if expression.operation in ("power", "root"):
        return _power_sizes(expression)
    if expression.operation not in _OPERATIONS:
        return None
    sizes = evaluate_all(expression.arguments, _sizes)
    return None if sizes is None else _OPERATIONS[expression.operation](*sizes)


def _power_sizes(expression: Apply) -> tuple[float, float] | None:
    base, exponent = _sizes(expression.arguments[0]), to_fraction(expression.arguments[1])
    if base is None or exponent is None or exponent == 0:
        return None
    if expression.operation == "root":
        exponent = 1 / exponent
    power, index = int(exponent.p), int(exponent.q)
    if abs(power) > MAX_POWER or index > MAX_POWER:
        return None
    upper, lower = base if power > 0 else base[::-1]
    upper, lower = abs(power) * upper, abs(power) * lower
    if upper >= lower:
        return (upper + (index - 1) * lower) / index, lower
    return upper, ((index - 1) * upper + lower) / index


def _log(value: fmpz) -> float:
    """Return an upper bound of the binary logarithm of an integer."""
    return float(abs(value).bit_length())


def _sum(*sizes: tuple[float, float]) -> tuple[float, float]:
    upper, lower = sizes[0]
    for one in sizes[1:]:
        larger = max(upper + one[1], lower + one[0])
        upper, lower = larger + 1, lower + one[1]
    return upper, lower


def _product(*sizes: tuple[float, float]) -> tuple[float, float]:
    return sum(one[0] for one in sizes), sum(one[1] for one in sizes)


def _quotient(dividend: tuple[float, float], divisor: tuple[float, float]) -> tuple[float, float]:
    return dividend[0] + divisor[1], dividend[1] + divisor[0]


_OPERATIONS: dict[str, Callable[..., tuple[float, float]]] = {
    "sum": _sum,
    "product": _product,
    "quotient": _quotient,
    "negative": lambda of: of,
}
