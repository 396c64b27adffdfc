"""Sets of real numbers: intervals, unions, and the inequalities that say them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from rewardstack_verifier.comparison.lists import several
from rewardstack_verifier.comparison.regions import (
    INFINITY,
    MINUS_INFINITY,
    Combined,
    Interval,
    Region,
    equal_regions,
)
from rewardstack_verifier.comparison.values import all_of, equal_values
from rewardstack_verifier.numbers.equality import same
from rewardstack_verifier.numbers.tree import (
    Apply,
    Expression,
    Symbol,
    difference,
    integer,
    negative,
    substituted,
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
)

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPLEMENT = {">": "<=", ">=": "<"}
_LINE = Interval(MINUS_INFINITY, False, INFINITY, False)
_POSITIVE = Interval(integer(0), False, INFINITY, False)
_NEGATIVE = Interval(MINUS_INFINITY, False, integer(0), False)
_NAMED: dict[str, Region] = {
    "R": _LINE,
    "R+": _POSITIVE,
    "R-": _NEGATIVE,
    "R*": Combined("cup", (_POSITIVE, _NEGATIVE)),
}


class Reals(NamedTuple):
    """A set of real numbers, and the letter that it is said of; empty where it is said of none."""

    region: Region
    variable: str = ""


def reals(node: Node) -> Reals | None:
    """The set of real numbers that an answer says; None where it says anything else, or its members one by one.

    Two items in brackets may be a point, too.
    """
    if isinstance(node, SetBuilder):
        return _built(node)
    if isinstance(node, NamedSet):
        return Reals(_NAMED[node.name]) if node.name in _NAMED else None
    if isinstance(node, Combination):
        return _combined(node.operator, (node.left, node.right))
    if isinstance(node, Sequence):
        return _bracketed(node) if node.opening else _joined(node)
    return _conditional(node) if isinstance(node, Relation) else None


def equal_reals(answer: Reals, reference: Reals) -> bool | None:
    """Whether two sets are the same; None where the order of their bounds is not known.

    What is said of another letter is another answer.
    """
    if answer.variable and reference.variable and answer.variable != reference.variable:
        return False
    one, other = answer.region, reference.region
    if isinstance(one, Interval) and isinstance(other, Interval):
        return _equal(one, other)
    return equal_regions(one, other)


def members(node: Node) -> Reals | None:
    """A set whose members are listed, `{1, 2}` or `\\pm 1`, as one of real numbers."""
    listed = several(node)
    if node == NamedSet("empty"):
        return Reals(Interval(integer(0), False, integer(0), False))
    if listed is None:
        return Reals(_point(node)) if is_expression(node) else None
    points = tuple(_point(item) for item in listed.items if is_expression(item))
    return Reals(Combined("cup", points)) if len(points) == len(listed.items) else None


def _point(value: Expression) -> Interval:
    return Interval(value, True, value, True)


def _equal(one: Interval, other: Interval) -> bool | None:
    if (one.low_in, one.high_in) != (other.low_in, other.high_in):
        return equal_regions(one, other)
    return all_of((equal_values(one.low, other.low), equal_values(one.high, other.high)))


def _built(node: SetBuilder) -> Reals | None:
    """What holds of a letter, which may be said to be of a set: `{x in R | x > 2}`."""
    member, conditions = node.member, node.conditions
    if isinstance(member, Relation) and member.operators == ("in",):
        conditions, member = (member, *conditions), member.sides[0]
    if not isinstance(member, Symbol):
        return None
    found = _combined("cap", conditions)
    return found._replace(variable="") if found and found.variable == member.name else None


def _combined(operator: str, nodes: tuple[Node, ...]) -> Reals | None:
    """Several sets as one, all of them said of one letter."""
    taken = members if operator == "setminus" else _listed
    sets = [found for node in nodes if (found := reals(node) or taken(node)) is not None]
    variables = {one.variable for one in sets}
    if len(sets) != len(nodes) or len(variables) > 1:
        return None
    return Reals(Combined(operator, tuple(one.region for one in sets)), *variables)


def _listed(node: Node) -> Reals | None:
    return members(node) if isinstance(node, Sequence) and node.opening == "{" else None


def _joined(node: Sequence) -> Reals | None:
    """Conditions, or intervals, with words or commas between them; a comma between conditions joins them."""
    first, *rest = node.items
    if isinstance(first, Relation) and first.operators == ("!=",) and all(map(is_expression, rest)):
        return _combined("cap", (first, *(replace(first, sides=(first.sides[0], one)) for one in rest)))
    said = [isinstance(item, Relation) for item in node.items]
    if set(node.joined) <= {","} and not any(said):
        return _combined("cup", node.items) if all(map(_is_half_line, node.items)) else None
    if set(node.joined) == {"or"}:
        return _combined("cup", node.items)
    if not all(said) or not set(node.joined) <= {",", "and", ";"}:
        return None
    return _combined("cap" if "and" in node.joined else ",", node.items)


def _is_half_line(node: Node) -> bool:
    """Whether it is an interval, and can be no point."""
    found = reals(node)
    region = found.region if found else None
    return isinstance(region, Interval) and (region.low == MINUS_INFINITY or region.high == INFINITY)


def _bracketed(node: Sequence) -> Reals | None:
    if node.opening not in ("(", "[") or len(node.items) != 2 or node.joined not in ((",",), (";",)):
        return None
    low, high = node.items
    if not (is_expression(low) and is_expression(high)):
        return None
    return Reals(Interval(low, node.opening == "[", high, node.closing == "]"))


def _conditional(node: Relation) -> Reals | None:
    """What `x < 3`, `1 <= x < 3`, `|x - 2| < 1` or `x in [1, 3]` say."""
    first, last = node.sides[0], node.sides[-1]
    if node.operators in (("in",), ("notin",)) and isinstance(first, Symbol):
        inside = reals(last) or _listed(last)
        return inside and Reals(inside.region if node.operators == ("in",) else _without(inside.region), first.name)
    if node.operators == ("!=",) and isinstance(last, Symbol) and not _names(first):
        first, last = last, first
    if node.operators == ("!=",) and isinstance(first, Symbol) and first.name not in _names(last):
        excluded = members(last)
        return excluded and Reals(_without(excluded.region), first.name)
    sides = [side for side in node.sides if is_expression(side)]
    if len(sides) != len(node.sides) or not set(node.operators) <= {*_TURNED}:
        return None
    if len(sides) == 2:
        return _half_line(sides[0], node.operators[0], sides[1])
    return _segment(sides, node.operators) if len(sides) == 3 else None


def _without(region: Region) -> Region:
    return Combined("setminus", (_LINE, region))


def _names(node: Node) -> frozenset[str]:
    return symbols(node) if is_expression(node) else frozenset()


def _half_line(left: Expression, operator: str, right: Expression) -> Reals | None:
    if symbols(right) and not symbols(left):
        left, operator, right = right, _TURNED[operator], left
    if isinstance(left, Apply) and left.operation == "negative":
        left, operator, right = left.arguments[0], _TURNED[operator], negative(right)
    if isinstance(left, Apply) and left.operation == "abs":
        return _around(left.arguments[0], operator, right)
    name = _bounded(left, right)
    if not name:
        return None
    included = operator in ("<=", ">=")
    if operator.startswith("<"):
        return Reals(_between(None, right, included), name)
    return Reals(_between(right, None, included), name)


def _bounded(of: Expression, *bounds: Expression) -> str:
    """What bounds are of, a letter or a function of letters, `f(x)`; nothing where it is neither, or in a bound."""
    is_call = isinstance(of, Apply) and of.operation.startswith("call ")
    letters = of.arguments if isinstance(of, Apply) and is_call else (of,)
    if not all(isinstance(letter, Symbol) for letter in letters) or symbols(of) & symbols(*bounds):
        return ""
    return of.operation if isinstance(of, Apply) else "".join(symbols(of))


def _around(middle: Expression, operator: str, radius: Expression) -> Reals | None:
    """`|x - a| < r`, or what is not within it."""
    names = symbols(middle)
    if operator in _COMPLEMENT:
        inside = _around(middle, _COMPLEMENT[operator], radius)
        return inside and Reals(_without(inside.region), inside.variable)
    if len(names) != 1 or symbols(radius):
        return None
    (name,) = names
    centre = _constant(difference(Symbol(name), middle), name)
    if centre is None:
        return None
    low, high = difference(centre, radius), Apply("sum", (centre, radius))
    return Reals(Interval(low, operator == "<=", high, operator == "<="), name)


def _constant(expression: Expression, name: str) -> Expression | None:
    """The number that `x - (x - a)` is; None where it is none."""
    at_zero = substituted(expression, name, integer(0))
    return at_zero if same(expression, at_zero) else None


def _segment(sides: list[Expression], operators: tuple[str, ...]) -> Reals | None:
    low, middle, high = sides
    first, second = operators
    if first.startswith(">") and second.startswith(">"):
        low, high, first, second = high, low, _TURNED[second], _TURNED[first]
    name = _bounded(middle, low, high)
    if not (first.startswith("<") and second.startswith("<") and name):
        return None
    return Reals(Interval(low, first == "<=", high, second == "<="), name)


def _between(low: Expression | None, high: Expression | None, included: bool = False) -> Interval:
    """From a bound, or from minus infinity, to another, or to infinity."""
    return Interval(
        MINUS_INFINITY if low is None else low,
        low is not None and included,
        INFINITY if high is None else high,
        high is not None and included,
    )
