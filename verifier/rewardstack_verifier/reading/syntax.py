"""Define the nodes of a parsed answer that are not expressions: relations, sequences, sets, matrices, words."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, TypeGuard, get_args

from rewardstack_verifier.numbers.tree import Expression


@dataclass(frozen=True, slots=True)
class Relation:
    """Nodes with relations between them: `x = 2`, `1 < x <= 3`.

    Args:
        operators: `=`, `!=`, `<`, `<=`, `>`, `>=`, `~` (approximately), `in`, `notin`, `equiv`, `->`, or `of` (a letter
            before a pair, `A(3, 4)`), each between two sides; empty for a number with a modulus, `2 \\pmod 5`.
        sides: nodes between the operators.
        modulus: modulus of a congruence; None for other relations.
    """

    operators: tuple[str, ...]
    sides: tuple[Node, ...]
    modulus: Expression | None = None


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list of items with or without brackets.

    Args:
        opening: opening bracket: `(`, `[`, `{` (a set), `<`, or empty.
        items: items in order.
        closing: closing bracket, which may differ in kind from `opening`; empty without brackets.
        joined: what joins each item to the next: `,`, `;`, `:`, `and`, `or`, or `remainder`.
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
    """A set in set-builder notation, `{x | x > 3}`: the form of its members, and the conditions on them."""

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
        size: size of the unit in base units.
        dimensions: names of the base units and their nonzero exponents, sorted.
        zero: zero point of the scale in base units: 273.15 for degrees Celsius.
    """

    size: Fraction
    dimensions: tuple[tuple[str, int], ...]
    zero: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value with a unit, a noun or both.

    Args:
        value: number of units.
        meanings: units that the text may mean; empty if there is only a noun.
        noun: words that are not a unit, such as `south` in `5 m south`, in lower case.
        factors: number of letters of the unit if they may be factors, 2 in `5 N m`; 0 if they are upright, a word, or
            in `lexicon.units.MARKED`.
    """

    value: Expression
    meanings: tuple[Unit, ...] = ()
    noun: str = ""
    factors: int = 0


@dataclass(frozen=True, slots=True)
class Total:
    """Several quantities that add up: `2 hours 30 minutes`."""

    quantities: tuple[Quantity, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The letter of a multiple-choice option, and the parsed text of the option if it is given."""

    letter: str
    value: Node | None = None


@dataclass(frozen=True, slots=True)
class Time:
    """A time of day; `half` is `a` for a.m., `p` for p.m., or empty."""

    hour: int
    minute: int
    half: str
    second: int = 0


@dataclass(frozen=True, slots=True)
class Date:
    """A date. Monday is weekday 1. Without a year, `year` is empty; without a weekday, `weekday` is 0."""

    month: int
    day: int
    year: str
    weekday: int


@dataclass(frozen=True, slots=True)
class Family:
    """A family of values, one for each member of a set: `k\\pi, k \\in Z`.

    Args:
        of: node with the parameter.
        parameter: letter of the parameter.
        domain: letter of the set, as in `NamedSet`.
    """

    of: Node
    parameter: str
    domain: str


@dataclass(frozen=True, slots=True)
class NamedSet:
    """A set with a name: `empty`, or `R`, `Z`, `N`, `Q` or `C`, perhaps with a sign (`R+`, `R-`, `R*`)."""

    name: str


class Structure:
    """Base class of node types that are defined in other modules."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class SetFormula(Structure):
    """A formula of sets: its letters in alphabetical order, and a bit for each combination in which it holds."""

    letters: tuple[str, ...]
    table: int


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


def is_point(node: Node) -> TypeGuard[Sequence]:
    """Return whether a node is a list with an opening parenthesis, such as a point: `(1, 2)`."""
    return isinstance(node, Sequence) and node.opening == "("


def is_expression(node: Node) -> TypeGuard[Expression]:
    """Return whether a node is an expression."""
    return isinstance(node, _EXPRESSIONS)
