"""What an answer is made of, beside expressions: relations, sequences, sets, matrices, words."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, TypeGuard, get_args

from rewardstack_verifier.numbers.tree import Expression


@dataclass(frozen=True, slots=True)
class Relation:
    """Expressions with relations between them: `x = 2`, `1 < x <= 3`.

    Args:
        operators: `=`, `!=`, `<`, `<=`, `>`, `>=`, `~` (about), `in`, `notin`, `equiv`, `->`; one fewer than sides,
            none where a number stands with its modulus alone: `2 \\pmod 5`.
        sides: what stands between them.
        modulus: of a congruence, else None.
    """

    operators: tuple[str, ...]
    sides: tuple[Node, ...]
    modulus: Expression | None = None


@dataclass(frozen=True, slots=True)
class Sequence:
    """Items in brackets, or without any.

    Args:
        opening: `(`, `[`, `{` (a set), `<`, or nothing.
        items: in order.
        closing: the bracket that closes, which may be of the other kind, or nothing.
        joined: what stood between two items, for each: `,`, `;`, `:`, `and`, `or`.
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
    """The members of a form, of which conditions hold: `{x | x > 3}`."""

    member: Node
    conditions: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of entries; a column vector has rows of one."""

    rows: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True)
class Words:
    """Words, in lower case, with single spaces between them."""

    text: str


@dataclass(frozen=True, slots=True)
class Remark:
    """A line of words, and of what else stands in it, of which the value is not read."""

    text: str


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit, or a product of powers of such.

    Args:
        size: how much of the bases one is.
        dimensions: the bases, by name, and their exponents, none of which is 0, in order.
        zero: where its scale begins, in its own base: 273.15 of degrees Celsius.
    """

    size: Fraction
    dimensions: tuple[tuple[str, int], ...]
    zero: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value and its unit.

    Args:
        value: how many.
        unit: as it was written, without fonts.
        meanings: the units that it may be; none where it is a noun.
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
    """A letter of multiple choice, and what it stands for, where that is said."""

    letter: str
    value: Node | None = None


@dataclass(frozen=True, slots=True)
class Time:
    """A time of day; `half` is `a`, `p` or nothing."""

    hour: int
    minute: int
    half: str


@dataclass(frozen=True, slots=True)
class Date:
    """A day of a year; the year is empty, and the day of the week 0 (Monday is 1), where they are not said."""

    month: int
    day: int
    year: str
    weekday: int


@dataclass(frozen=True, slots=True)
class Family:
    """What holds for each member of a set: `k\\pi, k \\in Z`.

    Args:
        of: said with the parameter.
        parameter: its letter.
        domain: the set by its letter, as in `NamedSet`.
    """

    of: Node
    parameter: str
    domain: str


@dataclass(frozen=True, slots=True)
class NamedSet:
    """A set by its letter, `R`, `Z`, `N`, `Q`, `C`, or `empty`."""

    name: str


class Structure:
    """What types derive from that have files of their own."""

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
    """Whether a node is an expression, and no structure."""
    return isinstance(node, _EXPRESSIONS)
