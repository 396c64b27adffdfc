"""List the functions that are evaluated with ball arithmetic. To add a function, add a row to `FUNCTIONS`."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from flint import acb, arb


class NoValueError(Exception):
    """An expression has no value for the given values of its symbols, or its value cannot be computed."""


def is_real(value: acb) -> bool:
    """Return whether a ball contains a real number."""
    return bool(value.imag.contains(0))


def unique_integer(value: acb) -> int:
    """Return the only integer in a ball.

    Raises:
        NoValueError: the ball contains no integer, or several.
    """
    integer = value.real.unique_fmpz() if is_real(value) else None
    if integer is None:
        raise NoValueError("no integer")
    return int(integer)


def logarithm(value: acb) -> acb:
    """Return the principal natural logarithm."""
    return require_nonzero(value).log()


def require_nonzero(value: acb) -> acb:
    """Return the ball unchanged.

    Raises:
        NoValueError: the ball contains zero.
    """
    if value.contains(0):
        raise NoValueError("a division by zero")
    return value


def _real(value: acb) -> arb:
    if not is_real(value):
        raise NoValueError("complex numbers have no order")
    return value.real


def _round_with(function: Callable[[arb], arb]) -> Callable[[acb], acb]:
    return lambda value: acb(unique_integer(acb(function(_real(value)))))


def _sign(value: acb) -> acb:
    if value.contains(0) and value != 0:
        raise NoValueError("a sign that is not known")
    return acb(_real(value).sgn())


def _binomial(n: acb, k: acb) -> acb:
    return (n + 1).gamma() * (k + 1).rgamma() * (n - k + 1).rgamma()


def _remainder(dividend: acb, divisor: acb) -> acb:
    return acb(unique_integer(dividend) % abs(unique_integer(require_nonzero(divisor))))


def _cube_root(value: acb) -> acb:
    return acb(-((-value.real).root(3))) if is_real(value) and value.real < 0 else value.root(3)


def _invert(function: Callable[[acb], acb]) -> Callable[[acb], acb]:
    return lambda value: 1 / require_nonzero(function(value))


def _apply_to_inverse(function: Callable[[acb], acb]) -> Callable[[acb], acb]:
    return lambda value: function(1 / require_nonzero(value))


def _arc_cotangent(value: acb) -> acb:
    """Return the value between 0 and pi, as in most textbooks."""
    return acb(arb.pi() / 2) - value.atan()


def _condition(holds: Callable[[arb], bool], fails: Callable[[arb], bool]) -> Callable[[acb], acb]:
    """Return a function that is 1 if a real number certainly has a property, and 0 if it certainly does not have it."""

    def value(of: acb) -> acb:
        real = _real(of)
        if not holds(real) and not fails(real):
            raise NoValueError("a condition that is not known to hold")
        return acb(int(holds(real)))

    return value


TRIGONOMETRIC = frozenset(("sin", "cos", "tan", "cot", "sec", "csc", "cis"))
"""Functions of an angle."""
FUNCTIONS: dict[str, Callable[..., acb]] = {
    "product": lambda *factors: reduce(acb.__mul__, factors),
    "quotient": lambda dividend, divisor: dividend / require_nonzero(divisor),
    "negative": acb.__neg__,
    "abs": lambda value: acb(abs(value)),
    "floor": _round_with(arb.floor),
    "ceiling": _round_with(arb.ceil),
    "sign": _sign,
    "maximum": lambda *values: acb(reduce(arb.max, map(_real, values))),
    "minimum": lambda *values: acb(reduce(arb.min, map(_real, values))),
    "real part": lambda value: acb(value.real),
    "imaginary part": lambda value: acb(value.imag),
    "argument": lambda value: acb(require_nonzero(value).arg()),
    "conjugate": acb.conjugate,
    "remainder": _remainder,
    "factorial": lambda value: (value + 1).gamma(),
    "gamma": acb.gamma,
    "binomial": _binomial,
    "cbrt": _cube_root,
    "ln": logarithm,
    "log": lambda value, base: logarithm(value) / require_nonzero(logarithm(base)),
    "sin": acb.sin,
    "tan": acb.tan,
    "cot": acb.cot,
    "cis": lambda value: (value * acb(0, 1)).exp(),
    "csc": acb.csc,
    "arcsin": acb.asin,
    "arccos": acb.acos,
    "arctan": acb.atan,
    "arccot": _arc_cotangent,
    "arcsec": _apply_to_inverse(acb.acos),
    "arccsc": _apply_to_inverse(acb.asin),
    "sinh": acb.sinh,
    "tanh": acb.tanh,
    "coth": acb.coth,
    "csch": acb.csch,
    "arcsinh": acb.asinh,
    "arccosh": acb.acosh,
    "arctanh": acb.atanh,
    "erf": acb.erf,
    "zeta": acb.zeta,
    "degree": lambda value: value * (arb.pi() / 180),
    "positive": _condition(lambda real: real > 0, lambda real: real <= 0),
    "nonnegative": _condition(lambda real: real >= 0, lambda real: real < 0),
    "zero": _condition(lambda real: real == 0, lambda real: real != 0),
    "nonzero": _condition(lambda real: real != 0, lambda real: real == 0),
    "all": lambda *values: reduce(acb.__mul__, values),
    "any": lambda *values: acb(reduce(arb.max, map(_real, values))),
    "log10": lambda value: logarithm(value) / arb(10).log(),
    "sec": _invert(acb.cos),
    "sech": _invert(acb.cosh),
}
"""Functions that only need the values of their arguments; `balls.SPECIAL` has all others."""
