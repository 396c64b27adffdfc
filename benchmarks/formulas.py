"""Define formulas that mpmath can evaluate. `perturb` changes one number in a formula; module `latex` writes LaTeX."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

import mpmath  # type: ignore[import-untyped]

TERMS = 120
"""Number of terms of an infinite series that are added up."""
FUNCTIONS = {
    **{name: getattr(mpmath, name) for name in ("sin", "cos", "tan", "sec", "sinh", "cosh", "ln", "sqrt", "factorial")},
    "arctan": mpmath.atan,
    "abs": abs,
}


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula.

    Args:
        head: kind of formula: a key of `_VALUES` or `FUNCTIONS`.
        of: parts of the formula: other formulas, the value of a number, or the text of a name.
    """

    head: str
    of: tuple[Any, ...]

    def __add__(self, other: Formula | int) -> Formula:
        terms = [one for side in (self, formula(other)) for one in (side.of if side.head == "sum" else (side,))]
        terms = [one for one in terms if one != ZERO]
        return terms[0] if len(terms) == 1 else Formula("sum", tuple(terms)) if terms else ZERO

    def __radd__(self, other: int) -> Formula:
        return formula(other) + self

    def __sub__(self, other: Formula | int) -> Formula:
        return self + -formula(other)

    def __rsub__(self, other: int) -> Formula:
        return formula(other) + -self

    def __neg__(self) -> Formula:
        return -1 * self

    def __mul__(self, other: Formula | int) -> Formula:
        sides = (self, formula(other))
        if ZERO in sides:
            return ZERO
        factors = [one for side in sides for one in (side.of if side.head == "product" else (side,)) if one != ONE]
        if len(factors) > 1 and factors[0] == MINUS and factors[1].head == "number":
            factors[:2] = [formula(-factors[1].of[0])]
            factors = [one for one in factors if one != ONE] or [ONE]
        return factors[0] if len(factors) == 1 else Formula("product", tuple(factors)) if factors else ONE

    def __rmul__(self, other: int) -> Formula:
        return formula(other) * self

    def __truediv__(self, other: Formula | int) -> Formula:
        return self if other in (1, ONE) else Formula("quotient", (self, formula(other)))

    def __rtruediv__(self, other: int) -> Formula:
        return formula(other) / self

    def __pow__(self, other: Formula | int) -> Formula:
        exponent = formula(other)
        return ONE if exponent == ZERO else self if exponent == ONE else Formula("power", (self, exponent))

    def __rpow__(self, other: int) -> Formula:
        return formula(other) ** self


def formula(of: Formula | int) -> Formula:
    """Convert an integer to a formula; return a formula unchanged."""
    return Formula("number", (of,)) if isinstance(of, int) else of


ZERO, ONE, MINUS = map(formula, (0, 1, -1))


def name(of: str) -> Formula:
    """Return a variable or a named constant."""
    return Formula("name", (of,))


def call(function: str, of: Formula | int) -> Formula:
    """Return a call of one of `FUNCTIONS`."""
    return Formula(function, (formula(of),))


def ratio(top: int, bottom: int) -> Formula:
    """Return a fraction in lowest terms."""
    shared = gcd(top, bottom) * (1 if bottom > 0 else -1)
    fraction = formula(abs(top // shared)) / (bottom // shared)
    return -fraction if top * bottom < 0 else fraction


def decimal(units: int, places: int) -> Formula:
    """Return the decimal `units` / 10**`places`."""
    return Formula("decimal", (formula(units), places))


def series(term: Formula, index: Formula, first: int, last: Formula) -> Formula:
    """Return the sum of a term, whose index runs from `first` to `last`."""
    return Formula("series", (term, index, formula(first), last))


def determinant(*entries: Formula | int) -> Formula:
    """Return the determinant of a 2x2 matrix, whose entries are given row by row."""
    return Formula("determinant", tuple(map(formula, entries)))


def value(of: Formula, names: Mapping[str, Any]) -> Any:
    """Return the value of a formula for the given values of its names."""
    if of.head in FUNCTIONS:
        return FUNCTIONS[of.head](value(of.of[0], names))
    return _VALUES[of.head](of.of, names)


def perturb(of: Formula, rng: random.Random) -> Formula | None:
    """Return a formula with a random number replaced by another of the same sign; None if the formula has no number."""
    places = list(_places(of))
    if not places:
        return None
    place = rng.choice(places)
    number = _at(of, place).of[0]
    others = [other for by in (-3, -2, -1, 1, 2, 3) if (other := number + by) * number > 0 or number == 0 < other]
    return _with(of, place, formula(rng.choice(others)))


def _places(of: Formula) -> Iterator[tuple[int, ...]]:
    if of.head == "number":
        yield ()
    for at, part in enumerate(of.of):
        if isinstance(part, Formula):
            yield from ((at, *rest) for rest in _places(part))


def _at(of: Formula, place: tuple[int, ...]) -> Formula:
    return _at(of.of[place[0]], place[1:]) if place else of


def _with(of: Formula, place: tuple[int, ...], part: Formula) -> Formula:
    if not place:
        return part
    at, *rest = place
    return replace(of, of=(*of.of[:at], _with(of.of[at], tuple(rest), part), *of.of[at + 1 :]))


def _sum_of(parts: tuple[Any, ...], names: Mapping[str, Any]) -> Any:
    term, index, first, last = parts
    end = TERMS if last.of[0] == "infinity" else int(value(last, names))
    return mpmath.fsum(value(term, {**names, index.of[0]: mpmath.mpf(at)}) for at in range(first.of[0], end + 1))


def _determinant(parts: tuple[Any, ...], names: Mapping[str, Any]) -> Any:
    a, b, c, d = (value(one, names) for one in parts)
    return a * d - b * c


_VALUES: dict[str, Callable[[tuple[Any, ...], Mapping[str, Any]], Any]] = {
    "number": lambda of, names: mpmath.mpf(of[0]),
    "name": lambda of, names: names[of[0]],
    "decimal": lambda of, names: value(of[0], names) / mpmath.mpf(10) ** of[1],
    "sum": lambda of, names: mpmath.fsum(value(one, names) for one in of),
    "product": lambda of, names: mpmath.fprod(value(one, names) for one in of),
    "quotient": lambda of, names: value(of[0], names) / value(of[1], names),
    "power": lambda of, names: value(of[0], names) ** value(of[1], names),
    "series": _sum_of,
    "determinant": _determinant,
}
