"""Where functions are compared: seeded points that the author of an answer cannot foresee without its reference."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import pairwise, product
from random import Random
from typing import NamedTuple

from flint import acb, arb

from rewardstack_rules.mathematics.numbers.balls import Balls, precision
from rewardstack_rules.mathematics.numbers.functions import NoValueError
from rewardstack_rules.mathematics.numbers.tree import OVER_INDEX, Apply, Constant, Expression, Number, parts, symbols

LEAST, LARGEST = 1e-2, 1e3
"""Absolute values of what a real symbol stands for."""
MANTISSA = 64
"""Bits of such a value: what has a small denominator is a zero of too many functions."""
LARGEST_INTEGER = 60
"""What a symbol of an integer stands for at most."""
MOST_PATTERNS = 16
"""Patterns of signs that are all tried; of more symbols, random ones."""
MOST_POINTS = 48
BREAKING = frozenset({"abs", "floor", "ceiling", "sign", "maximum", "minimum"})
"""Functions that are of one form on either side of where an argument is zero."""
OF_COMPLEX = frozenset({"real part", "imaginary part", "conjugate", "argument"})
"""Functions that are of use for complex numbers alone."""
PROBED = tuple(sign * 10 ** (step / 4) for sign in (-1, 1) for step in range(-8, 13))
"""Where an argument's sign is looked at to find a breakpoint."""
INTEGERS = frozenset("nkmjlNKM")
"""Letters of integers, where they stand as those do."""


def seed_of(one: Expression, other: Expression) -> int:
    """The same for a pair in either order, and on every machine."""
    text = "\0".join(sorted(map(repr, (one, other))))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


class Points(NamedTuple):
    """Values for the symbols of two expressions.

    Args:
        values: of each symbol, for each point.
        required: how many of the first must be looked at: both sides of each breakpoint, every pattern of signs.
    """

    values: Iterable[Mapping[str, acb]]
    required: int


def points(one: Expression, other: Expression) -> Points:
    """Where two expressions are to be compared: the same for the pair in either order.

    On both sides of each breakpoint that is found; then `MOST_POINTS` times real symbols run over `LEAST` to `LARGEST`
    with every pattern of signs, and so do both parts of complex ones, of which `OF_COMPLEX` are taken. Integers
    (`integers`) stand for positive ones.
    """
    random = Random(seed_of(one, other))
    whole = sorted(integers(one, other))
    reals = sorted(symbols(one, other) - set(whole))
    complexes = _complexes(one, other)
    beside = list(_beside_breakpoints((one, other), reals, random))
    patterns = list(product((1, -1), repeat=len(reals))) if 2 ** len(reals) <= MOST_PATTERNS else []

    def spread() -> Iterator[Mapping[str, acb]]:
        yield from beside
        for at in range(MOST_POINTS):
            signs = patterns[at % len(patterns)] if patterns else [random.choice((1, -1)) for _ in reals]
            drawn = {name: _real(sign, random) for name, sign in zip(reals, signs, strict=True)}
            yield {**drawn, **{name: acb(drawn[name].real, _real(1, random).real) for name in complexes}}

    def complete() -> Iterator[Mapping[str, acb]]:
        for values in spread():
            yield {**values, **{name: acb(random.randint(1, LARGEST_INTEGER)) for name in whole}}

    return Points(complete(), len(beside) + len(patterns or reals))


def integers(*expressions: Expression) -> frozenset[str]:
    """Symbols that must stand for integers: those that are named so and stand where integers do."""
    found: set[str] = set()
    for expression in expressions:
        for part in parts(expression):
            if isinstance(part, Apply):
                found |= symbols(*_counted(part)) & INTEGERS
    return frozenset(found)


def _complexes(*expressions: Expression) -> frozenset[str]:
    """Symbols of which real or imaginary parts are taken."""
    found = (part for one in expressions for part in parts(one) if isinstance(part, Apply))
    return symbols(*(part for part in found if part.operation in OF_COMPLEX))


def _counted(part: Apply) -> tuple[Expression, ...]:
    """The arguments of an operation that can only hold integers, as textbooks write it."""
    if part.operation in ("factorial", "binomial"):
        return part.arguments
    if part.operation in OVER_INDEX:
        return part.arguments[2:]
    if part.operation == "power" and _is_negative(part.arguments[0]):
        return part.arguments[1:]
    if part.operation == "product" and Constant("pi") in part.arguments:
        return part.arguments
    return ()


def _is_negative(expression: Expression) -> bool:
    if isinstance(expression, Apply) and expression.operation == "negative":
        return not symbols(expression)
    return isinstance(expression, Number) and expression.value < 0


def _real(sign: int, random: Random) -> acb:
    size = math.exp(random.uniform(math.log(LEAST), math.log(LARGEST)))
    mantissa, exponent = math.frexp(size)
    low = random.getrandbits(MANTISSA - 53) + 1
    scaled = (int(mantissa * 2**53) << (MANTISSA - 53)) + low
    return acb(arb((sign * scaled, exponent - MANTISSA)))


def _beside_breakpoints(
    expressions: tuple[Expression, ...], reals: list[str], random: Random
) -> Iterator[Mapping[str, acb]]:
    """Points left and right of where an argument of `BREAKING` changes its sign along one symbol."""
    arguments = {
        argument
        for expression in expressions
        for part in parts(expression)
        if isinstance(part, Apply) and part.operation in BREAKING
        for argument in part.arguments
        if symbols(argument)
    }
    for argument in sorted(arguments, key=repr):
        others = {name: _real(1, random) for name in reals}
        for name in sorted(symbols(argument) & set(reals)):
            signs = [(at, _sign(argument, {**others, name: acb(at)})) for at in PROBED]
            for (left, before), (right, after) in pairwise(signs):
                if before * after < 0:
                    yield {**others, name: acb(left)}
                    yield {**others, name: acb(right)}


def _sign(expression: Expression, values: Mapping[str, acb]) -> int:
    """Of a real value, 0 where there is none or it cannot be told."""
    try:
        with precision(MANTISSA):
            value = Balls(MANTISSA, values).value(expression).real
    except NoValueError:
        return 0
    return (value > 0) - (value < 0)
