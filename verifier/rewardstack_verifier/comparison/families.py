"""Compare families of values with an integer parameter, such as `\\frac{\\pi}{4} + k\\pi`.

The same values can be written as one family or as several.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, lcm
from typing import NamedTuple

from rewardstack_verifier.comparison.constants import VARIABLES
from rewardstack_verifier.comparison.integers import as_congruence
from rewardstack_verifier.comparison.lists import as_list, expand_signs
from rewardstack_verifier.comparison.values import has_value
from rewardstack_verifier.numbers.equality import ZERO, nearest_fraction, same
from rewardstack_verifier.numbers.points import INTEGER_LETTERS
from rewardstack_verifier.numbers.tree import (
    ONE,
    Apply,
    Constant,
    Expression,
    Number,
    Symbol,
    difference,
    integer,
    parts,
    substitute,
    symbols,
)
from rewardstack_verifier.reading.syntax import Family, NamedSet, Node, Relation, Sequence, SetBuilder, is_expression

MAX_MEMBERS = 60
"""Maximum number of values of a family within the common period of two families."""
MAX_DENOMINATOR = 60
"""Maximum denominator of the ratio of two steps in the search for a common period."""
_UNKNOWNS = VARIABLES | {"alpha", "beta"}
"""Names of the unknowns of equations, whose solutions are families: `x = n\\pi`."""


class Progression(NamedTuple):
    """The values `start + k * step` for all integers k."""

    start: Expression
    step: Expression


def as_progressions(node: Node) -> tuple[Progression, ...] | None:
    """Return the progressions of a family of values; None if a node is not such a family.

    Without a declaration such as `k \\in \\mathbb{Z}`, a letter is an integer parameter if it is the only letter and is
    one of `INTEGER_LETTERS`, and if a value contains pi.
    """
    node = _as_family(node)
    if isinstance(node, Family):
        found = _progressions(node.of, node.parameter)
        return found if node.domain == "Z" else None
    congruence = as_congruence(node)
    if congruence is not None:
        is_named = isinstance(congruence.name, Symbol) and not symbols(congruence.residue, congruence.modulus)
        return (Progression(congruence.residue, congruence.modulus),) if is_named else None
    values = _values(node) or ()
    parameters = symbols(*values)
    has_pi = any(Constant("pi") in parts(value) for value in values)
    return (
        _progressions(node, *parameters) if has_pi and len(parameters) == 1 and parameters <= INTEGER_LETTERS else None
    )


def _as_family(node: Node) -> Node:
    """Return `{x | x = k\\pi, k \\in Z}` as a family; other nodes unchanged."""
    parts_ = (node.member, *node.conditions) if isinstance(node, SetBuilder) else ()
    declared = [one for one in parts_ if isinstance(one, Relation) and one.operators == ("in",)]
    values = [one for one in parts_ if one not in declared and not isinstance(one, Symbol)]
    if len(declared) != 1 or len(values) != 1:
        return node
    parameter, domain = declared[0].sides
    if not (isinstance(parameter, Symbol) and isinstance(domain, NamedSet)):
        return node
    return Family(values[0], parameter.name, domain.name)


def is_solution(node: Node) -> bool:
    """Return whether a node gives a family of values to an unknown: `x = n\\pi`."""
    if not (isinstance(node, Relation) and node.operators == ("=",) and as_progressions(node)):
        return False
    return isinstance(node.sides[0], Symbol) and node.sides[0].name in _UNKNOWNS


def are_formulas(answer: Node, reference: Node) -> bool:
    """Return whether two nodes are single values with the same letters, not families: `n\\pi` and `(n - 2)\\pi`."""
    values = [_formula(node) for node in (answer, reference)]
    one, other = (symbols(value) if value is not None else None for value in values)
    return one is not None and one == other


def _formula(node: Node) -> Expression | None:
    """Return the value of a node, which can have a name, such as `S = n\\pi`; None for lists and solutions."""
    if as_list(node) or is_solution(node):
        return None
    value = node.sides[1] if isinstance(node, Relation) and node.operators == ("=",) else node
    return value if is_expression(value) else None


def equal_progressions(answer: tuple[Progression, ...], reference: tuple[Progression, ...]) -> bool | None:
    """Return whether two families have the same values.

    Returns:
        None if they have no common period, or if a family has more than `MAX_MEMBERS` values in this period.
    """
    period = _common_period([one.step for one in (*answer, *reference)])
    found, expected = (_members(family, period) for family in (answer, reference))
    if period is None or not found or not expected:
        return None
    return _are_all_in(found, expected, period) and _are_all_in(expected, found, period)


def _progressions(node: Node, parameter: str) -> tuple[Progression, ...] | None:
    values = _values(node)
    if values is None:
        return None
    found: list[Progression] = []
    for value in values:
        progression = _progression(value, parameter)
        progressions_of_value = (
            (progression,)
            if progression
            else [_progression(half, parameter) for half in _split_by_parity(value, parameter)]
        )
        found += (one for one in progressions_of_value if one is not None)
        if None in progressions_of_value:
            return None
    return tuple(found)


def _values(node: Node) -> tuple[Expression, ...] | None:
    """Return the values of a node or list, without the names before `=`; None if an item has no value."""
    listed = as_list(node)
    items = expand_signs(listed).items if listed else (node,)
    values = [
        item.sides[1] if isinstance(item, Relation) and item.operators == ("=",) else item
        for item in items
        if not isinstance(item, Sequence)
    ]
    shown = tuple(value for value in values if is_expression(value) and has_value(value))
    return shown if len(shown) == len(items) else None


def _progression(value: Expression, parameter: str) -> Progression | None:
    if symbols(value) != {parameter}:
        return None
    start, *rest = (substitute(value, parameter, integer(at)) for at in range(4))
    step = difference(rest[0], start)
    if same(step, ZERO) is not False:
        return None
    is_steady = all(
        same(one, Apply("sum", (start, Apply("product", (integer(at), step))))) for at, one in enumerate(rest, 1)
    )
    return Progression(start, step) if is_steady else None


def _split_by_parity(value: Expression, parameter: str) -> tuple[Expression, Expression]:
    """Return a value with the parameter n replaced by 2n and by 2n + 1, so that factors like `(-1)^n` are constant."""
    even = Apply("product", (integer(2), Symbol(parameter)))
    odd = Apply("sum", (even, ONE))
    return substitute(value, parameter, even), substitute(value, parameter, odd)


def _common_period(steps: list[Expression]) -> Expression | None:
    """Return the least common multiple of steps; None if a ratio of two steps is not a simple fraction."""
    ratios = [_ratio(step, steps[0]) for step in steps]
    known = [as_ratio for as_ratio in ratios if as_ratio]
    if len(known) < len(steps):
        return None
    multiple = Fraction(lcm(*(one.numerator for one in known)), gcd(*(one.denominator for one in known)))
    return Apply("product", (Number(multiple), steps[0]))


def _members(family: tuple[Progression, ...], period: Expression | None) -> list[Expression]:
    """Return the values of a family within a period; empty if there are too many."""
    members: list[Expression] = []
    for start, step in family:
        steps = None if period is None else _ratio(period, step)
        if steps is None or len(members) + abs(steps) > MAX_MEMBERS:
            return []
        members += (Apply("sum", (start, Apply("product", (integer(at), step)))) for at in range(int(abs(steps))))
    return members


def _are_all_in(ones: list[Expression], others: list[Expression], period: Expression) -> bool:
    """Return whether each value of `ones` differs from one of `others` by a whole number of periods."""
    return all(any(_ratio(difference(one, other), period, 1) is not None for other in others) for one in ones)


def _ratio(one: Expression, other: Expression, max_denominator: int = MAX_DENOMINATOR) -> Fraction | None:
    """Return the quotient of two numbers if its denominator is at most `max_denominator`; None otherwise."""
    nearest = nearest_fraction(Apply("quotient", (one, other)), max_denominator)
    if nearest is None or not same(one, Apply("product", (Number(nearest), other))):
        return None
    return nearest
