"""Define expressions: numbers, constants, symbols, and operations applied to expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, TypeGuard, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Number:
    """A rational number as it was written.

    Args:
        value: value of the digits as a fraction.
        places: number of decimal places; None if the number is exact, as an integer or a repeating decimal is.
    """

    value: Fraction
    places: int | None = None


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant, by its name: `pi`, `e`, `i` or `infinity`."""

    name: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable, parameter or unknown, by its name including the subscript: `x`, `alpha`, `a_1`."""

    name: str


@dataclass(frozen=True, slots=True)
class Apply:
    """An operation applied to its arguments.

    Args:
        operation: name of the operation, for example `sum` or `sin` (a key of a table in `functions`, `balls` or
            `rational`); `call f` for a function named by a letter; or a notation without a value, such as `percent`.
        arguments: the operands.
    """

    operation: str
    arguments: tuple[Expression, ...]


Expression: TypeAlias = Number | Constant | Symbol | Apply

OVER_INDEX = frozenset(("sum over", "product over"))
"""Operations with four arguments: a body, the symbol of the index, and the first and last value of the index."""
ONE = Number(Fraction(1))


def integer(value: int) -> Number:
    """Return an integer as a `Number`."""
    return Number(Fraction(value))


def negative(of: Expression) -> Expression:
    """Return the additive inverse; the inverse of a `Number` is a `Number`."""
    return Number(-of.value, of.places) if isinstance(of, Number) else Apply("negative", (of,))


def difference(minuend: Expression, subtrahend: Expression) -> Expression:
    """Return one expression minus another."""
    return Apply("sum", (minuend, negative(subtrahend)))


def parts(expression: Expression) -> Iterator[Expression]:
    """Yield the expression and all its subexpressions, each before its arguments."""
    left = [expression]
    while left:
        part = left.pop()
        yield part
        if isinstance(part, Apply):
            left.extend(reversed(part.arguments))


def operations(*expressions: Expression) -> Iterator[Apply]:
    """Yield all operations in the expressions, each before those in its arguments."""
    return (part for expression in expressions for part in parts(expression) if isinstance(part, Apply))


def is_call(node: object) -> TypeGuard[Apply]:
    """Return whether a node is a function named by a letter: `f(x)`, `f(3)`."""
    return isinstance(node, Apply) and node.operation.startswith("call ")


def evaluate_all(arguments: Iterable[Expression], value: Callable[[Expression], T | None]) -> list[T] | None:
    """Return the result of `value` for each argument; None if one of the results is None."""
    values = []
    for argument in arguments:
        found = value(argument)
        if found is None:
            return None
        values.append(found)
    return values


def symbols(*expressions: Expression) -> frozenset[str]:
    """Return the names of all symbols in the expressions, except the index of a sum or product."""
    found, indices = set[str](), set[str]()
    left = [*expressions]
    while left:  # faster than a loop over `parts`; this runs for most comparisons
        part = left.pop()
        if isinstance(part, Apply):
            left += part.arguments
            if part.operation in OVER_INDEX and isinstance(part.arguments[1], Symbol):
                indices.add(part.arguments[1].name)
        elif isinstance(part, Symbol):
            found.add(part.name)
    return frozenset(found - indices if indices else found)


def transform(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """Return the expression with each part replaced for which `change` returns another one.

    The parts of a replaced part are not changed.
    """
    changed = change(expression)
    if changed is not None or not isinstance(expression, Apply):
        return changed or expression
    return Apply(expression.operation, tuple(transform(one, change) for one in expression.arguments))


def substitute_all(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """Return the expression with its symbols replaced by values; symbols without a value are unchanged."""
    return transform(expression, lambda part: values.get(part.name) if isinstance(part, Symbol) else None)


def substitute(expression: Expression, name: str, by: Expression) -> Expression:
    """Return the expression with each occurrence of the symbol `name` replaced by `by`."""
    return substitute_all(expression, {name: by})


def rename_symbols(expression: Expression, names: dict[str, str]) -> Expression:
    """Return the expression with symbols renamed; symbols that are not in `names` are unchanged."""
    return substitute_all(expression, {name: Symbol(new) for name, new in names.items()})


def determinant(rows: Sequence[Sequence[Expression]]) -> Expression:
    """Return the determinant of a small square matrix by Laplace expansion along the first column."""
    terms = [Apply("product", (row[0], minor(rows, at))) for at, row in enumerate(rows)]
    addends = [negative(term) if at % 2 else term for at, term in enumerate(terms)]
    return ONE if not addends else addends[0] if len(addends) == 1 else Apply("sum", tuple(addends))


def minor(rows: Sequence[Sequence[Expression]], at: int) -> Expression:
    """Return the determinant of a matrix without its first column and row `at`."""
    return determinant([row[1:] for index, row in enumerate(rows) if index != at])
