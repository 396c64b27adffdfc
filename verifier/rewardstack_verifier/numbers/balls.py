"""Evaluate expressions with ball arithmetic: a ball is a region of the complex plane that contains the exact value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from os import register_at_fork
from threading import RLock

from flint import acb, arb, ctx, fmpq

from rewardstack_verifier.numbers.functions import FUNCTIONS, NoValueError, require_nonzero, unique_integer
from rewardstack_verifier.numbers.rational import to_fraction, to_integer
from rewardstack_verifier.numbers.tree import ONE, Apply, Constant, Expression, Number, Symbol

MAX_POWER_BITS = 64
"""Maximum bits of an integer exponent of a power that is computed by multiplication; larger powers use logarithms."""
GUARD = 64
"""If a sum keeps fewer than this number of bits of a small addend, `Balls.absorbed` is set."""
MAX_TERMS = 10_000
"""Maximum number of terms of a sum or product over an index.

The terms of an inner sum or product count once for each term of the outer one.
"""
_DEFAULT_PRECISION = ctx.prec
_lock = RLock()


class Balls:
    """Evaluates expressions at one precision, for given values of their symbols.

    Args:
        bits: precision in bits; call `value` within `precision(bits)`.
        values: values of the symbols.

    Attributes:
        absorbed: whether an addend, or a function's argument near zero, was too small to affect a result at this
            precision.
        repetitions: number of times that the current expression is evaluated because of sums and products over an
            index.
    """

    def __init__(self, bits: int, values: Mapping[str, acb]) -> None:
        self.values = values
        self.absorbed = False
        self.repetitions = 1
        self._tiny = arb(2) ** (GUARD - bits)

    def value(self, expression: Expression) -> acb:
        """Return a ball that contains the value of an expression.

        Raises:
            NoValueError: the expression has no value, for example after a division by zero.
        """
        if isinstance(expression, Apply):
            return self._apply(expression)
        if isinstance(expression, Number):
            return acb(fmpq(expression.value.numerator, expression.value.denominator))
        if isinstance(expression, Symbol):
            return self._symbol(expression.name)
        return _constant(expression.name)

    def _symbol(self, name: str) -> acb:
        try:
            return self.values[name]
        except KeyError:
            raise NoValueError(f"{name} has no value") from None

    def _apply(self, expression: Apply) -> acb:
        name, arguments = expression.operation, expression.arguments
        if name in FUNCTIONS:
            value = FUNCTIONS[name](*[self.value(argument) for argument in arguments])
        elif name in SPECIAL:
            value = SPECIAL[name](self, *arguments)
        else:
            raise NoValueError(f"{name} is not computed")
        if not value.is_finite():
            raise NoValueError(f"{name} has no value here")
        return value

    def note_absorption(self, value: acb, beside: arb) -> None:
        """Set `absorbed` if a nonzero value is too small to affect a result of the size `beside`."""
        if value.abs_upper() < beside * self._tiny and not value.contains(0):
            self.absorbed = True


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Set Flint's global precision within a `with` block.

    Other threads that call this function wait until the block ends.
    """
    with _lock:
        before, ctx.prec = ctx.prec, bits
        try:
            yield
        finally:
            ctx.prec = before


def _reset_after_fork() -> None:
    """Reset the lock and the precision in a child process, in case another thread held them during the fork."""
    global _lock
    _lock, ctx.prec = RLock(), _DEFAULT_PRECISION


register_at_fork(after_in_child=_reset_after_fork)


def _constant(name: str) -> acb:
    if name == "pi":
        return acb(arb.pi())
    if name == "e":
        return acb(arb.const_e())
    if name == "i":
        return acb(0, 1)
    raise NoValueError(f"{name} is no number")


def _sum(balls: Balls, *addends: Expression) -> acb:
    values = [balls.value(addend) for addend in addends]
    largest = max(value.abs_upper() for value in values)
    for value in values:
        balls.note_absorption(value, largest)
    return reduce(acb.__add__, values)


def _power(balls: Balls, base: Expression, exponent: Expression) -> acb:
    if base == Constant("e"):
        return _exponential(balls, exponent)
    below, ratio = balls.value(base), to_fraction(exponent)
    if ratio is not None and ratio.q == 1 and abs(ratio.p).bit_length() <= MAX_POWER_BITS:
        return below**ratio.p if ratio >= 0 else require_nonzero(below) ** ratio.p
    if ratio is not None and ratio.q % 2 == 1 and below.imag == 0 and below.real < 0:
        size = (-below.real) ** arb(ratio)
        return acb(size if ratio.p % 2 == 0 else -size)
    above = balls.value(exponent)
    if below == 0:
        if above.real > 0:
            return acb(0)
        raise NoValueError("a power of zero")
    return below.sqrt() if ratio == fmpq(1, 2) else below**above


def _root(balls: Balls, radicand: Expression, index: Expression) -> acb:
    degree = to_integer(index)
    if degree == 2:
        return balls.value(radicand).sqrt()
    return _power(balls, radicand, Apply("quotient", (ONE, index)))


def _exponential(balls: Balls, exponent: Expression) -> acb:
    value = balls.value(exponent)
    balls.note_absorption(value, arb(1))
    return value.exp()


def _even(function: Callable[[acb], acb]) -> Callable[[Balls, Expression], acb]:
    """Wrap cos or cosh, which are about 1 ± x² / 2 near zero: the argument is absorbed if its square is too small."""

    def apply(balls: Balls, argument: Expression) -> acb:
        value = balls.value(argument)
        balls.note_absorption(value * value, arb(1))
        return function(value)

    return apply


def _over_index(combine: Callable[[acb, acb], acb], start: int) -> Callable[..., acb]:
    """Return the operation that combines all terms over an index. Without terms, its result is `start`."""

    def apply(balls: Balls, body: Expression, index: Symbol, first: Expression, last: Expression) -> acb:
        low, high = unique_integer(balls.value(first)), unique_integer(balls.value(last))
        count = max(high - low + 1, 1)
        if count * balls.repetitions > MAX_TERMS:
            raise NoValueError("too many terms")
        outer, terms = balls.values, []
        balls.repetitions *= count
        try:
            for at in range(low, high + 1):
                balls.values = {**outer, index.name: acb(at)}
                terms.append(balls.value(body))
        finally:
            balls.values = outer
            balls.repetitions //= count
        return reduce(combine, terms, acb(start))

    return apply


def _piecewise(balls: Balls, *cases: Expression) -> acb:
    """Return the value of the first case whose condition holds; `cases` alternates values and conditions."""
    for value, condition in zip(cases[::2], cases[1::2], strict=True):
        if balls.value(condition) != 0:
            return balls.value(value)
    raise NoValueError("none of the cases")


SPECIAL: dict[str, Callable[..., acb]] = {
    "sum": _sum,
    "power": _power,
    "root": _root,
    "exp": _exponential,
    "piecewise": _piecewise,
    "cos": _even(acb.cos),
    "cosh": _even(acb.cosh),
    "sum over": _over_index(acb.__add__, 0),
    "product over": _over_index(acb.__mul__, 1),
}
"""Operations that need their arguments as expressions, or record absorption; `FUNCTIONS` has all others."""
