"""Sets of real numbers: intervals, unions, and the inequalities that say them."""

from __future__ import annotations

from typing import NamedTuple

from rewardstack_rules.mathematics.comparison.expressions import equal_values
from rewardstack_rules.mathematics.comparison.verdicts import all_of
from rewardstack_rules.mathematics.numbers.equality import same
from rewardstack_rules.mathematics.numbers.rational import rational
from rewardstack_rules.mathematics.numbers.tree import (
    Apply,
    Constant,
    Expression,
    Symbol,
    difference,
    integer,
    negative,
    substituted,
    symbols,
)
from rewardstack_rules.mathematics.reading.syntax import (
    Combination,
    NamedSet,
    Node,
    Relation,
    Sequence,
    SetBuilder,
    is_expression,
)

INFINITY = Constant("infinity")
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Interval(NamedTuple):
    """The real numbers between two bounds, which may be infinite, and whether each bound is one of them."""

    low: Expression
    low_in: bool
    high: Expression
    high_in: bool


class Reals(NamedTuple):
    """A union of intervals, and the letter that it is said of; empty where it is said of none."""

    intervals: tuple[Interval, ...]
    variable: str = ""


def reals(node: Node) -> Reals | None:
    """The set of real numbers that an answer says; None where it says anything else.

    Two items in brackets may be a point, too.
    """
    if isinstance(node, SetBuilder) and isinstance(node.member, Symbol) and len(node.conditions) == 1:
        return reals(node.conditions[0])
    if isinstance(node, NamedSet):
        return Reals((_between(None, None),)) if node.name == "R" else None
    if isinstance(node, Combination):
        return _union(node.left, node.right) if node.operator == "cup" else None
    if isinstance(node, Sequence):
        return _union(*node.items) if set(node.joined) == {"or"} and not node.opening else _bracketed(node)
    return _conditional(node) if isinstance(node, Relation) else None


def equal_reals(answer: Reals, reference: Reals) -> bool | None:
    """Whether two unions have the same intervals; None where they have not, but may be written otherwise."""
    if answer.variable and reference.variable and answer.variable != reference.variable:
        return None
    if len(answer.intervals) == len(reference.intervals) == 1:
        return _equal(answer.intervals[0], reference.intervals[0])
    left = list(reference.intervals)
    for one in answer.intervals:
        found = next((other for other in left if _equal(one, other)), None)
        if found is None:
            return None
        left.remove(found)
    return None if left else True


def _equal(one: Interval, other: Interval) -> bool | None:
    if (one.low_in, one.high_in) != (other.low_in, other.high_in):
        return False
    return all_of((equal_values(one.low, other.low), equal_values(one.high, other.high)))


def _union(*nodes: Node) -> Reals | None:
    found = [reals(node) for node in nodes]
    sets = [one for one in found if one is not None]
    variables = {one.variable for one in sets}
    if len(sets) != len(nodes) or len(variables) > 1:
        return None
    return Reals(tuple(interval for one in sets for interval in one.intervals), *variables)


def _bracketed(node: Sequence) -> Reals | None:
    if node.opening not in ("(", "[") or len(node.items) != 2 or node.joined not in ((",",), (";",)):
        return None
    low, high = node.items
    if not (is_expression(low) and is_expression(high)):
        return None
    return Reals((Interval(low, node.opening == "[", high, node.closing == "]"),))


def _conditional(node: Relation) -> Reals | None:
    """What `x < 3`, `1 <= x < 3`, `|x - 2| < 1` or `x in [1, 3]` say."""
    if node.operators == ("in",) and isinstance(node.sides[0], Symbol):
        inside = reals(node.sides[1])
        return inside and inside._replace(variable=node.sides[0].name)
    sides = [side for side in node.sides if is_expression(side)]
    if len(sides) != len(node.sides) or not set(node.operators) <= {*_TURNED}:
        return None
    if len(sides) == 2:
        return _half_line(sides[0], node.operators[0], sides[1])
    return _segment(sides, node.operators) if len(sides) == 3 else None


def _half_line(left: Expression, operator: str, right: Expression) -> Reals | None:
    if symbols(right) and not symbols(left):
        left, operator, right = right, _TURNED[operator], left
    if isinstance(left, Apply) and left.operation == "abs":
        return _around(left.arguments[0], operator, right)
    if not isinstance(left, Symbol) or left.name in symbols(right):
        return None
    included = operator in ("<=", ">=")
    if operator.startswith("<"):
        return Reals((_between(None, right, included),), left.name)
    return Reals((_between(right, None, included),), left.name)


def _around(middle: Expression, operator: str, radius: Expression) -> Reals | None:
    """`|x - a| < r`, of a radius that is known to be positive."""
    size = rational(radius)
    names = symbols(middle)
    if size is None or size <= 0 or len(names) != 1 or operator not in ("<", "<="):
        return None
    (name,) = names
    centre = difference(Symbol(name), middle)
    shifted = _constant(centre, name)
    if shifted is None:
        return None
    low, high = difference(shifted, radius), Apply("sum", (shifted, radius))
    return Reals((Interval(low, operator == "<=", high, operator == "<="),), name)


def _constant(expression: Expression, name: str) -> Expression | None:
    """The number that `x - (x - a)` is; None where it is none."""
    at_zero = substituted(expression, name, integer(0))
    return at_zero if same(expression, at_zero) else None


def _segment(sides: list[Expression], operators: tuple[str, ...]) -> Reals | None:
    low, middle, high = sides
    first, second = operators
    if first.startswith(">") and second.startswith(">"):
        low, high, first, second = high, low, _TURNED[second], _TURNED[first]
    if not (first.startswith("<") and second.startswith("<") and isinstance(middle, Symbol)):
        return None
    if middle.name in symbols(low, high):
        return None
    return Reals((Interval(low, first == "<=", high, second == "<="),), middle.name)


def _between(low: Expression | None, high: Expression | None, included: bool = False) -> Interval:
    """From a bound, or from minus infinity, to another, or to infinity."""
    return Interval(
        negative(INFINITY) if low is None else low,
        low is not None and included,
        INFINITY if high is None else high,
        high is not None and included,
    )
