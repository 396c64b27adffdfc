"""Nodes of an answer other than expressions: relations, sequences, sets, matrices, words."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, TypeGuard, get_args

from rewardstack_verifier.numbers.tree import Expression


@dataclass(frozen=True, slots=True)
class Relation:
    """Expressions with relations between them: `x = 2`, `1 < x <= 3`.

    Args:
        operators: `=`, `!=`, `<`, `<=`, `>`, `>=`, `~` (approximately), `in`, `notin`, `equiv`, `->`; one fewer than
            sides, none for a number with only its modulus: `2 \\pmod 5`.
        sides: nodes between the operators.
        modulus: modulus of a congruence, else None.
    """

    operators: tuple[str, ...]
    sides: tuple[Node, ...]
    modulus: Expression | None = None


@dataclass(frozen=True, slots=True)
class Sequence:
    """Items in brackets, or without any.

    Args:
        opening: `(`, `[`, `{` (a set), `<`, or empty.
        items: items in order.
        closing: the closing bracket, which may be of another kind, or empty.
        joined: what joins each item to the next: `,`, `;`, `:`, `and`, `or`.
    """

    opening: str
    items: tuple[Node, ...]
    closing: str
    joined: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Combination:
    """Two sets and `cup`, `cap` or `setminus` between them."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class SetBuilder:
    """The members of a form for which conditions hold: `{x | x > 3}`."""

    member: Node
    conditions: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of entries; a column vector has rows of one entry."""

    rows: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True)
class Words:
    """Words in lower case, with single spaces between them."""

    text: str


@dataclass(frozen=True, slots=True)
class Remark:
    """A line with words whose value cannot be parsed."""

    text: str


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit, or a product of powers of units.

    Args:
        size: its size in the base units.
        dimensions: names of the base units and their nonzero exponents, sorted.
        zero: origin of its scale in base units: 273.15 for degrees Celsius.
    """

    size: Fraction
    dimensions: tuple[tuple[str, int], ...]
    zero: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value and its unit.

    Args:
        value: number of units.
        unit: unit as written, without fonts.
        meanings: the units that it may be; empty for a noun.
    """

    value: Expression
    unit: str
    meanings: tuple[Unit, ...] = ()


@dataclass(frozen=True, slots=True)
class Total:
    """Several quantities that add up: `2 hours 30 minutes`."""

    quantities: tuple[Quantity, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """A letter of multiple choice, and the text of its option if given."""

    letter: str
    value: Node | None = None


@dataclass(frozen=True, slots=True)
class Time:
    """A time of day; `half` is `a`, `p` or empty."""

    hour: int
    minute: int
    half: str


@dataclass(frozen=True, slots=True)
class Date:
    """A day of a year; year is empty, and weekday 0 (Monday is 1), if they are not given."""

    month: int
    day: int
    year: str
    weekday: int


@dataclass(frozen=True, slots=True)
class Family:
    """An expression for each member of a set: `k\\pi, k \\in Z`.

    Args:
        of: expression with the parameter.
        parameter: letter of the parameter.
        domain: letter of the set, as in `NamedSet`.
    """

    of: Node
    parameter: str
    domain: str


@dataclass(frozen=True, slots=True)
class NamedSet:
    """A set by its letter, `R`, `Z`, `N`, `Q`, `C`, or `empty`."""

    name: str


class Structure:
    """Base class of node types that have their own modules."""

    __slots__ = ()


Node: TypeAlias = (
    Expression
    | Quantity
    | Total
    | Relation
    | Sequence
    | Combination
    | SetBuilder
    | Matrix
    | NamedSet
    | Family
    | Words
    | Remark
    | Choice
    | Time
    | Date
    | Structure
)


_EXPRESSIONS = get_args(Expression)


def is_expression(node: Node) -> TypeGuard[Expression]:
    """Return whether a node is an expression."""
    return isinstance(node, _EXPRESSIONS)
