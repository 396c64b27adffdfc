"""Expressions: numbers, constants, symbols, and operations applied to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Number:
    """A rational number as it was written.

    Args:
        value: exact.
        places: digits behind the decimal point; None where it was written without one, so that it is exact.
    """

    value: Fraction
    places: int | None = None


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant by its name: `pi`, `e`, `i` or `infinity`."""

    name: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable, parameter or unknown by its name, its subscript included: `x`, `alpha`, `a_1`."""

    name: str


@dataclass(frozen=True, slots=True)
class Apply:
    """An operation applied to its arguments.

    Args:
        operation: a key of `balls.OPERATIONS`, for example `sum`, `power` or `sin`.
        arguments: expressions, as many as the operation takes.
    """

    operation: str
    arguments: tuple[Expression, ...]


Expression: TypeAlias = Number | Constant | Symbol | Apply

OVER_INDEX = frozenset(("sum over", "product over"))
"""Operations on a body, the symbol that is its index, and the first and last value of that."""
ONE = Number(Fraction(1))


def integer(value: int) -> Number:
    """An integer that is exact."""
    return Number(Fraction(value))


def negative(of: Expression) -> Expression:
    """The additive inverse; of a number, a number."""
    return Number(-of.value, of.places) if isinstance(of, Number) else Apply("negative", (of,))


def difference(minuend: Expression, subtrahend: Expression) -> Expression:
    """One expression less another."""
    return Apply("sum", (minuend, negative(subtrahend)))


def parts(expression: Expression) -> Iterator[Expression]:
    """The expression and all that it holds, each before its arguments."""
    left = [expression]
    while left:
        part = left.pop()
        yield part
        if isinstance(part, Apply):
            left.extend(reversed(part.arguments))


def evaluated(arguments: Iterable[Expression], value: Callable[[Expression], T | None]) -> list[T] | None:
    """The value of each argument; None where one of them has none."""
    values = []
    for argument in arguments:
        found = value(argument)
        if found is None:
            return None
        values.append(found)
    return values


def symbols(*expressions: Expression) -> frozenset[str]:
    """The names of all symbols that stand in the expressions, other than the index of a sum or product over it."""
    found, indices = set[str](), set[str]()
    left = [*expressions]
    while left:  # without `parts`: it is called for most of what is compared
        part = left.pop()
        if isinstance(part, Apply):
            left += part.arguments
            if part.operation in OVER_INDEX and isinstance(part.arguments[1], Symbol):
                indices.add(part.arguments[1].name)
        elif isinstance(part, Symbol):
            found.add(part.name)
    return frozenset(found - indices if indices else found)


def renamed(expression: Expression, names: dict[str, str]) -> Expression:
    """The expression with symbols renamed; those that `names` does not hold stay."""
    if isinstance(expression, Symbol):
        return Symbol(names.get(expression.name, expression.name))
    if isinstance(expression, Apply):
        return Apply(expression.operation, tuple(renamed(one, names) for one in expression.arguments))
    return expression


def substituted(expression: Expression, name: str, by: Expression) -> Expression:
    """The expression with each occurrence of a symbol replaced."""
    if isinstance(expression, Symbol):
        return by if expression.name == name else expression
    if isinstance(expression, Apply):
        return Apply(expression.operation, tuple(substituted(one, name, by) for one in expression.arguments))
    return expression


def determinant(rows: Sequence[Sequence[Expression]]) -> Expression:
    """The determinant of a square matrix of few rows, by Laplace's expansion along the first column."""
    terms = [Apply("product", (row[0], minor(rows, at))) for at, row in enumerate(rows)]
    addends = [negative(term) if at % 2 else term for at, term in enumerate(terms)]
    return ONE if not addends else addends[0] if len(addends) == 1 else Apply("sum", tuple(addends))


def minor(rows: Sequence[Sequence[Expression]], at: int) -> Expression:
    """The determinant without the first column and one row."""
    return determinant([row[1:] for index, row in enumerate(rows) if index != at])
