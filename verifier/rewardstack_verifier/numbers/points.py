"""Choose the points at which two functions are compared: random points, and points at or next to breakpoints.

A breakpoint is a point at which a subexpression such as `abs`, `floor` or a condition may change its form. The seed of
the random points depends on both functions, so a policy cannot predict the points without the reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from hashlib import blake2b
from itertools import chain, pairwise, product
from random import Random
from typing import NamedTuple

from flint import acb, arb

from rewardstack_verifier.numbers.balls import Balls, precision
from rewardstack_verifier.numbers.functions import NoValueError
from rewardstack_verifier.numbers.rational import to_fraction
from rewardstack_verifier.numbers.tree import (
    OVER_INDEX,
    Apply,
    Constant,
    Expression,
    Number,
    integer,
    operations,
    substitute,
    symbols,
)

MIN_VALUE, MAX_VALUE = 1e-2, 1e3
"""Smallest and largest absolute value of real symbols."""
MANTISSA = 64
"""Bits of a symbol's random value.

With fewer bits, the values would have small denominators, and many functions are zero at such values.
"""
MAX_INTEGER = 60
"""Largest value of an integer symbol."""
MAX_PATTERNS = 16
"""Maximum number of sign patterns; if the symbols have more, random signs are used."""
RANDOM_POINTS = 48
"""Number of random points, in addition to those at breakpoints."""
CONDITIONS = frozenset({"positive", "nonnegative", "zero", "nonzero"})
"""Functions that depend only on the sign of their argument."""
BREAKING = CONDITIONS | {"abs", "floor", "ceiling", "sign", "maximum", "minimum"}
"""Functions that may change their form at a sign change of their argument."""
BRANCHED = frozenset({"root", "arcsin", "arccos", "arctan", "arccot", "arcsec", "arccsc"})
"""Functions with several branches.

If an expression has one of them, all points are compared, because two such expressions may differ at only a few points.
"""
COMPLEX_FUNCTIONS = frozenset({"real part", "imaginary part", "conjugate", "argument"})
"""Functions that are used only with complex numbers."""
PROBE_VALUES = tuple(sign * 10 ** (step / 4) for sign in (-1, 1) for step in range(-8, 13))
"""Values of a symbol at which the sign of an argument is computed to find a breakpoint."""
BISECTIONS = 24
"""Number of bisections between two values of `PROBE_VALUES` to approach a breakpoint."""
INTEGER_LETTERS = frozenset("nkmjlNKM")
"""Letters that are integers in operations on integers, such as `n!`."""


def seed_of(one: Expression, other: Expression) -> int:
    """Return a seed for a pair of expressions; the seed is the same in either order and on each machine."""
    text = "\0".join(sorted(map(repr, (one, other))))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


class Points(NamedTuple):
    """Values for the symbols of two expressions.

    Args:
        values: values of the symbols at each point.
        required: number of points at the beginning of `values` that must be compared: the points at or next to
            breakpoints, and one point for each sign pattern. If a function has several branches, all points must be
            compared.
        breaking: number of points at the beginning of `values` that are at or next to breakpoints. If a precision does
            not decide the comparison at one of them, the point is compared at the next precision, too.
    """

    values: Iterable[Mapping[str, acb]]
    required: int
    breaking: int


def sample_points(one: Expression, other: Expression) -> Points:
    """Return the points at which two expressions are compared; the order of the pair does not matter.

    The first points are at, or on both sides of, each known breakpoint. Then `RANDOM_POINTS` random points follow: real
    symbols have values from `MIN_VALUE` to `MAX_VALUE` with all sign patterns, symbols in a function of
    `COMPLEX_FUNCTIONS` are complex, and the symbols from `integers` are positive integers.
    """
    random = Random(seed_of(one, other))
    integer_symbols = sorted(integers(one, other))
    reals = sorted(symbols(one, other) - set(integer_symbols))
    complexes = _complexes(one, other)
    found = (find((one, other), reals, random) for find in (_points_at_breakpoints, _points_beside_breakpoints))
    breakpoints = [*chain.from_iterable(found)]
    patterns = list(product((1, -1), repeat=len(reals))) if 2 ** len(reals) <= MAX_PATTERNS else []

    def draw_points() -> Iterator[Mapping[str, acb]]:
        yield from breakpoints
        for at in range(RANDOM_POINTS):
            signs = patterns[at % len(patterns)] if patterns else [random.choice((1, -1)) for _ in reals]
            drawn_values = {name: _real(sign, random) for name, sign in zip(reals, signs, strict=True)}
            yield {**drawn_values, **{name: acb(drawn_values[name].real, _real(1, random).real) for name in complexes}}

    def draw_complete_points() -> Iterator[Mapping[str, acb]]:
        for values in draw_points():
            yield {**values, **{name: acb(random.randint(1, MAX_INTEGER)) for name in integer_symbols}}

    required = RANDOM_POINTS if _is_branched(one, other) else len(patterns or reals)
    return Points(draw_complete_points(), len(breakpoints) + required, len(breakpoints))


def integers(*expressions: Expression) -> frozenset[str]:
    """Return the symbols that must be integers: letters of `INTEGER_LETTERS` in positions that need an integer."""
    found: set[str] = set()
    for part in operations(*expressions):
        found |= symbols(*_integer_arguments(part)) & INTEGER_LETTERS
    return frozenset(found)


def _is_branched(*expressions: Expression) -> bool:
    """Return whether an expression has a function of symbols with several branches, such as a root."""
    return any(
        part.operation in BRANCHED or (part.operation == "power" and _is_fraction(part.arguments[1]))
        for part in operations(*expressions)
        if symbols(part)
    )


def _is_fraction(exponent: Expression) -> bool:
    value = to_fraction(exponent) if not symbols(exponent) else None
    return value is not None and value.q != 1


def _complexes(*expressions: Expression) -> frozenset[str]:
    """Return the symbols whose real or imaginary parts are used."""
    return symbols(*(part for part in operations(*expressions) if part.operation in COMPLEX_FUNCTIONS))


def _integer_arguments(part: Apply) -> tuple[Expression, ...]:
    """Return the arguments that are integers in textbooks, such as the exponent of a negative number."""
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
    size = math.exp(random.uniform(math.log(MIN_VALUE), math.log(MAX_VALUE)))
    mantissa, exponent = math.frexp(size)
    low = random.getrandbits(MANTISSA - 53) + 1
    scaled = (int(mantissa * 2**53) << (MANTISSA - 53)) + low
    return acb(arb((sign * scaled, exponent - MANTISSA)))


def _points_beside_breakpoints(
    expressions: tuple[Expression, ...], reals: list[str], random: Random
) -> Iterator[Mapping[str, acb]]:
    """Yield two points around each sign change of an argument of a `BREAKING` function.

    To find the sign changes, the value of one symbol is varied; the other symbols have random values.
    """
    arguments = {
        argument
        for part in operations(*expressions)
        if part.operation in BREAKING
        for argument in part.arguments
        if symbols(argument)
    }
    for argument in sorted(arguments, key=repr):
        others = {name: _real(1, random) for name in reals}
        for name in sorted(symbols(argument) & set(reals)):
            sign = partial(_sign_at, argument, others, name)
            for (left, sign_before), (right, sign_after) in pairwise((at, sign(at)) for at in PROBE_VALUES):
                if sign_before * sign_after < 0:
                    for at in _narrow(sign, left, right):
                        yield {**others, name: acb(at)}


def _narrow(sign: Callable[[float], int], left: float, right: float) -> tuple[float, float]:
    """Return two close points on both sides of a sign change between `left` and `right`."""
    sign_before = sign(left)
    for _ in range(BISECTIONS):
        middle = (left + right) / 2
        left, right = (middle, right) if sign(middle) == sign_before else (left, middle)
    return left, right


def _points_at_breakpoints(
    expressions: tuple[Expression, ...], reals: list[str], random: Random
) -> Iterator[Mapping[str, acb]]:
    """Yield a point at the zero of each `CONDITIONS` argument that is linear in one symbol and has an integer zero."""
    conditions = (part.arguments[0] for part in operations(*expressions) if part.operation in CONDITIONS)
    for argument in dict.fromkeys(conditions):
        names = sorted(symbols(argument))
        root = _root(argument, names[0]) if len(names) == 1 and names[0] in reals else None
        if root is not None:
            yield {**{other: _real(1, random) for other in reals}, names[0]: acb(root)}


def _root(line: Expression, name: str) -> int | None:
    """Return the zero of an expression with one symbol; None if it is not linear, or its zero is not an integer."""
    zeroth, first, second = (to_fraction(substitute(line, name, integer(at))) for at in range(3))
    if zeroth is None or first is None or second is None or zeroth == first or second - first != first - zeroth:
        return None
    root = zeroth / (zeroth - first)
    return int(root.p) if root.q == 1 else None


def _sign_at(expression: Expression, values: Mapping[str, acb], name: str, at: float) -> int:
    return _sign(expression, {**values, name: acb(at)})


def _sign(expression: Expression, values: Mapping[str, acb]) -> int:
    """Return the sign of the real part of an expression's value; 0 if there is no value, or the sign is unknown."""
    try:
        with precision(MANTISSA):
            value = Balls(MANTISSA, values).value(expression).real
    except NoValueError:
        return 0
    return (value > 0) - (value < 0)
