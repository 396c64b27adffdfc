"""Compare sets of real numbers (intervals, unions, solutions of inequalities) and inequalities.

The bounds of two sets divide the real line into cells: each bound and each gap between bounds. Two sets are equal if
they contain the same cells. Inequalities that do not describe a set of real numbers are equal if their sides are equal,
or if the differences of their sides are equal up to a positive factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cmp_to_key
from typing import NamedTuple

from rewardstack_verifier.comparison.lists import as_list
from rewardstack_verifier.comparison.values import all_of, equal_values
from rewardstack_verifier.numbers.equality import are_proportional, is_less, same
from rewardstack_verifier.numbers.tree import (
    Apply,
    Constant,
    Expression,
    Symbol,
    difference,
    integer,
    is_call,
    negative,
    substitute,
    symbols,
)
from rewardstack_verifier.reading.syntax import (
    Combination,
    NamedSet,
    Node,
    Relation,
    Sequence,
    SetBuilder,
    is_expression,
    is_point,
)

INFINITY = Constant("infinity")
MINUS_INFINITY = negative(INFINITY)
MAX_BOUNDS = 40
"""Maximum number of bounds of two sets together."""
Cells = tuple[bool, ...]
"""For each cell, whether a set contains it: the gap below the first bound, the first bound, the gap above it, ..."""
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPLEMENT = {">": "<=", ">=": "<"}


class Interval(NamedTuple):
    """The real numbers between two bounds, which may be infinite, and whether each bound is included."""

    low: Expression
    low_in: bool
    high: Expression
    high_in: bool


class Combined(NamedTuple):
    """Sets and their operator: `cup`, `cap`, `setminus`, or `,`.

    `,` is the intersection (`cap`), or the union (`cup`) if the intersection is empty.
    """

    operator: str
    parts: tuple[Region, ...]


class _UnorderedError(Exception):
    """The order of two bounds is unknown, or a bound is not a real number."""


class Reals(NamedTuple):
    """A set of real numbers, and the letter whose values it describes (an empty string if there is no letter)."""

    region: Region
    variable: str = ""


Region = Interval | Combined
_LINE = Interval(MINUS_INFINITY, False, INFINITY, False)
_POSITIVE = Interval(integer(0), False, INFINITY, False)
_NEGATIVE = Interval(MINUS_INFINITY, False, integer(0), False)
_NAMED: dict[str, Region] = {
    "R": _LINE,
    "R+": _POSITIVE,
    "R-": _NEGATIVE,
    "R*": Combined("cup", (_POSITIVE, _NEGATIVE)),
}


def as_reals(node: Node) -> Reals | None:
    """Return an answer as a set of real numbers; None for listed members (`{1, 2}`) and for other answers.

    `(1, 2)` is an interval here, although it may also be a point.
    """
    if isinstance(node, SetBuilder):
        return _from_set_builder(node)
    if isinstance(node, NamedSet):
        return Reals(_NAMED[node.name]) if node.name in _NAMED else None
    if isinstance(node, Combination):
        return _combine(node.operator, (node.left, node.right))
    if isinstance(node, Sequence):
        return _from_brackets(node) if node.opening else _from_list(node)
    return _from_relation(node) if isinstance(node, Relation) else None


def equal_reals(answer: Reals, reference: Reals) -> bool | None:
    """Return whether two sets are equal; None if the order of their bounds is unknown.

    Sets for different letters are different.
    """
    if answer.variable and reference.variable and answer.variable != reference.variable:
        return False
    one, other = answer.region, reference.region
    if isinstance(one, Interval) and isinstance(other, Interval):
        return _equal_intervals(one, other)
    return _equal_regions(one, other)


def as_members(node: Node) -> Reals | None:
    """Return listed members (`{1, 2}`, `\\pm 1`) or a single value as a set of real numbers; None for other nodes."""
    listed = as_list(node)
    if listed is None:
        return Reals(_point(node)) if is_expression(node) else None
    points = tuple(_point(item) for item in listed.items if is_expression(item))
    return Reals(Combined("cup", points)) if len(points) == len(listed.items) else None


def _point(value: Expression) -> Interval:
    return Interval(value, True, value, True)


def _equal_intervals(one: Interval, other: Interval) -> bool | None:
    if (one.low_in, one.high_in) != (other.low_in, other.high_in):
        return _equal_regions(one, other)
    return all_of((equal_values(one.low, other.low), equal_values(one.high, other.high)))


def _from_set_builder(node: SetBuilder) -> Reals | None:
    """Return the set of `{x in R | x > 2}`; None if its conditions are not about x."""
    member, conditions = node.member, node.conditions
    if isinstance(member, Relation) and member.operators == ("in",):
        conditions, member = (member, *conditions), member.sides[0]
    if not isinstance(member, Symbol):
        return None
    found = _combine("cap", conditions)
    return found._replace(variable="") if found and found.variable == member.name else None


def _combine(operator: str, nodes: tuple[Node, ...]) -> Reals | None:
    """Combine sets of real numbers; None if a node is not such a set, or if two sets are for different letters."""
    as_set = as_members if operator == "setminus" else _braced_members
    sets = [found for node in nodes if (found := as_reals(node) or as_set(node)) is not None]
    variables = {one.variable for one in sets}
    if len(sets) != len(nodes) or len(variables) > 1:
        return None
    return Reals(Combined(operator, tuple(one.region for one in sets)), *variables)


def _braced_members(node: Node) -> Reals | None:
    return as_members(node) if isinstance(node, Sequence) and node.opening == "{" else None


def _from_list(node: Sequence) -> Reals | None:
    """Return the set that a list of conditions or intervals describes; None if it describes no set of real numbers."""
    first, *rest = node.items
    if isinstance(first, Relation) and first.operators == ("!=",) and all(map(is_expression, rest)):
        return _combine("cap", (first, *(replace(first, sides=(first.sides[0], one)) for one in rest)))
    conditional = [isinstance(item, Relation) for item in node.items]
    if set(node.joined) <= {","} and not any(conditional):
        return _combine("cup", node.items) if all(map(_is_half_line, node.items)) else None
    if set(node.joined) == {"or"}:
        items = tuple(map(_value_as_set, node.items))
        is_union = any(map(as_inequality, items)) or not all(map(is_point, items)) or any(map(_is_half_line, items))
        return _combine("cup", items) if is_union else None  # otherwise, they are points
    if not all(conditional) or not set(node.joined) <= {",", "and", ";"}:
        return None
    return _combine("cap" if "and" in node.joined else ",", node.items)


def _value_as_set(node: Node) -> Node:
    """Return `x = 5` as `x \\in \\{5\\}`; other nodes unchanged."""
    if not isinstance(node, Relation) or node.operators != ("=",) or not is_expression(node.sides[1]):
        return node
    return replace(node, operators=("in",), sides=(node.sides[0], Sequence("{", (node.sides[1],), "}", ())))


def _is_half_line(node: Node) -> bool:
    """Return whether a node is an interval with an infinite bound. Such an interval cannot be read as a point."""
    found = as_reals(node)
    region = found.region if found else None
    return isinstance(region, Interval) and (region.low == MINUS_INFINITY or region.high == INFINITY)


def _from_brackets(node: Sequence) -> Reals | None:
    if node.opening not in ("(", "[") or len(node.items) != 2 or node.joined not in ((",",), (";",)):
        return None
    low, high = node.items
    if not (is_expression(low) and is_expression(high)):
        return None
    return Reals(Interval(low, node.opening == "[", high, node.closing == "]"))


def _from_relation(node: Relation) -> Reals | None:
    """Return the set described by `x < 3`, `1 <= x < 3`, `|x - 2| < 1` or `x in [1, 3]`."""
    first, last = node.sides[0], node.sides[-1]
    if node.operators in (("in",), ("notin",)) and isinstance(first, Symbol):
        inside = as_reals(last) or _braced_members(last)
        return inside and Reals(inside.region if node.operators == ("in",) else _complement(inside.region), first.name)
    if node.operators == ("!=",) and isinstance(last, Symbol) and not _names(first):
        first, last = last, first
    if node.operators == ("!=",) and isinstance(first, Symbol) and first.name not in _names(last):
        excluded = as_members(last)
        return excluded and Reals(_complement(excluded.region), first.name)
    sides = [side for side in node.sides if is_expression(side)]
    if len(sides) != len(node.sides) or not set(node.operators) <= {*_MIRRORED}:
        return None
    if len(sides) == 2:
        return _half_line(sides[0], node.operators[0], sides[1])
    return _segment(sides, node.operators) if len(sides) == 3 else None


def _complement(region: Region) -> Region:
    return Combined("setminus", (_LINE, region))


def _names(node: Node) -> frozenset[str]:
    return symbols(node) if is_expression(node) else frozenset()


def _half_line(left: Expression, operator: str, right: Expression) -> Reals | None:
    if symbols(right) and not symbols(left):
        left, operator, right = right, _MIRRORED[operator], left
    if isinstance(left, Apply) and left.operation == "negative":
        left, operator, right = left.arguments[0], _MIRRORED[operator], negative(right)
    if isinstance(left, Apply) and left.operation == "abs":
        return _from_absolute_value(left.arguments[0], operator, right)
    name = _bounded_name(left, right)
    if not name:
        return None
    if operator.startswith("<"):
        return Reals(Interval(MINUS_INFINITY, False, right, operator == "<="), name)
    return Reals(Interval(right, operator == ">=", INFINITY, False), name)


def _bounded_name(of: Expression, *bounds: Expression) -> str:
    """Return the name of an expression between bounds; empty if it has none, or if a bound contains its letter.

    Only a letter, and a function of letters such as `f(x)`, have a name.
    """
    letters = of.arguments if is_call(of) else (of,)
    if not all(isinstance(letter, Symbol) for letter in letters) or symbols(of) & symbols(*bounds):
        return ""
    return of.operation if isinstance(of, Apply) else "".join(symbols(of))


def _from_absolute_value(middle: Expression, operator: str, radius: Expression) -> Reals | None:
    """Return the set that `|x - a| < r` or `|x - a| > r` describes."""
    names = symbols(middle)
    if operator in _COMPLEMENT:
        inside = _from_absolute_value(middle, _COMPLEMENT[operator], radius)
        return inside and Reals(_complement(inside.region), inside.variable)
    if len(names) != 1 or symbols(radius):
        return None
    (name,) = names
    center = _constant(difference(Symbol(name), middle), name)
    if center is None:
        return None
    low, high = difference(center, radius), Apply("sum", (center, radius))
    return Reals(Interval(low, operator == "<=", high, operator == "<="), name)


def _constant(expression: Expression, name: str) -> Expression | None:
    """Return the value of an expression if it does not depend on a letter; None if it does, or if unknown."""
    at_zero = substitute(expression, name, integer(0))
    return at_zero if same(expression, at_zero) else None


def _segment(sides: list[Expression], operators: tuple[str, ...]) -> Reals | None:
    low, middle, high = sides
    first, second = operators
    if first.startswith(">") and second.startswith(">"):
        low, high, first, second = high, low, _MIRRORED[second], _MIRRORED[first]
    name = _bounded_name(middle, low, high)
    if not (first.startswith("<") and second.startswith("<") and name):
        return None
    return Reals(Interval(low, first == "<=", high, second == "<="), name)


def _equal_regions(answer: Region, reference: Region) -> bool | None:
    """Return whether two sets of real numbers are equal. A set that is not written as empty is not the empty set.

    The result is None if there are more than `MAX_BOUNDS` bounds, if a bound has letters, if the order of the bounds is
    unknown, or if infinity is an element of a set.
    """
    found, expected = _bounds(answer), _bounds(reference)
    if len(found) + len(expected) > MAX_BOUNDS or symbols(*found, *expected):
        return None
    if _has_infinite_number(answer) or _has_infinite_number(reference):
        return None
    try:
        reference_groups = _group_bounds(expected, [])
        groups = _group_bounds(found, reference_groups)
        place_of_bound = {bound: at for at, group in enumerate(groups) for bound in group}
        cells = _cells(answer, place_of_bound, len(groups))
        return any(cells) and cells == _cells(reference, place_of_bound, len(groups))
    except _UnorderedError:
        return None


def _bounds(region: Region) -> list[Expression]:
    if isinstance(region, Combined):
        return [bound for part in region.parts for bound in _bounds(part)]
    return [bound for bound in (region.low, region.high) if bound not in (INFINITY, MINUS_INFINITY)]


def _has_infinite_number(region: Region) -> bool:
    """Return whether a part of a set begins at infinity or ends at minus infinity, as in `{3, \\infty}`."""
    if isinstance(region, Combined):
        return any(map(_has_infinite_number, region.parts))
    return region.low == INFINITY or region.high == MINUS_INFINITY


def _group_bounds(bounds: list[Expression], groups: list[list[Expression]]) -> list[list[Expression]]:
    """Group equal bounds, add them to the existing groups, and sort the groups."""
    groups = [list(group) for group in groups]
    for bound in bounds:
        group = next((group for group in groups if _known(equal_values(bound, group[0]))), None)
        if group is None:
            groups.append([bound])
        else:
            group.append(bound)
    return sorted(groups, key=cmp_to_key(_order))


def _known(decided: bool | None) -> bool:
    if decided is None:
        raise _UnorderedError
    return decided


def _order(one: list[Expression], other: list[Expression]) -> int:
    return -1 if _known(is_less(one[0], other[0])) else 1


def _cells(region: Region, place_of_bound: dict[Expression, int], count: int) -> Cells:
    """Return the cells of a set; the bound at place n is cell 2n + 1."""
    if isinstance(region, Combined):
        first, *others = (_cells(part, place_of_bound, count) for part in region.parts)
        for other in others:
            first = _combine_cells(region.operator, first, other)
        return first
    start = -1 if region.low == MINUS_INFINITY else 2 * place_of_bound[region.low] + 2 - region.low_in
    stop = 2 * count + 1 if region.high == INFINITY else 2 * place_of_bound[region.high] + 1 + region.high_in
    if start >= stop:
        raise _UnorderedError  # `(3, -2)` is a point, not an empty interval
    return tuple(start <= cell < stop for cell in range(2 * count + 1))


def _combine_cells(operator: str, one: Cells, other: Cells) -> Cells:
    pairs = list(zip(one, other, strict=True))
    both = tuple(left and right for left, right in pairs)
    if operator == "cap" or (operator == "," and any(both)):
        return both
    if operator == "setminus":
        return tuple(left and not right for left, right in pairs)
    return tuple(left or right for left, right in pairs)


def as_inequality(node: Node) -> Relation | None:
    """Return an inequality with its larger side on the right, or a `!=` relation; None for other nodes."""
    if isinstance(node, Relation) and node.operators == ("!=",):
        return node
    if not isinstance(node, Relation) or not {*node.operators} <= {*_MIRRORED}:
        return None
    if {*node.operators} & {*_COMPLEMENT}:
        return Relation(tuple(_MIRRORED[one] for one in node.operators[::-1]), node.sides[::-1])
    return node


def equal_inequalities(
    answer: Relation, reference: Relation, equal: Callable[[Node, Node], bool | None]
) -> bool | None:
    """Return whether two inequalities are equivalent.

    Args:
        answer, reference: results of `as_inequality`.
        equal: compares two sides.

    Returns:
        None if unknown. Inequalities with different sides are not compared if they are chains, or if they have fewer
        than two letters, because they would have to be solved; the result is then also None.
    """
    if answer.operators != reference.operators:
        return False
    if all_of(map(equal, answer.sides, reference.sides)):
        return True
    one, other = _excess(answer), _excess(reference)
    if one is None or other is None or len(symbols(one, other)) < 2:
        return None
    return are_proportional(one, other, positively=answer.operators != ("!=",))


def _excess(relation: Relation) -> Expression | None:
    """Return the larger side minus the smaller side; None for more than two sides, or if a side is no expression."""
    small, large, *more = relation.sides
    return difference(large, small) if is_expression(small) and is_expression(large) and not more else None
