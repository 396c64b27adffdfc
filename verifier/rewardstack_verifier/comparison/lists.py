"""Compare answers with several members: lists, sets, and expressions with `\\pm`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rewardstack_verifier.comparison.equations import as_equation, named_values
from rewardstack_verifier.comparison.values import all_of, any_of
from rewardstack_verifier.numbers.rational import to_fraction
from rewardstack_verifier.numbers.tree import Apply, Expression, Symbol, integer, negative, parts, symbols
from rewardstack_verifier.reading.syntax import (
    Combination,
    NamedSet,
    Node,
    Quantity,
    Relation,
    Sequence,
    is_expression,
    is_point,
)

Equal = Callable[[Node, Node], "bool | None"]
_SIGNS = {"plus or minus": (1, -1), "minus or plus": (-1, 1)}
MAX_ITEMS = 50
"""Maximum number of members of a list that is compared with another list."""


def as_list(node: Node) -> Sequence | None:
    """Return a list, a set, or both values of an expression or a point with `\\pm`; None for a single answer."""
    if isinstance(node, Sequence):
        if is_point(node):
            return _both_points(node)
        return _group_items(node) if node.opening in ("", "{") and ":" not in node.joined else None
    if isinstance(node, Relation) and node.operators == ("=",) and is_expression(node.sides[1]):
        values = as_list(node.sides[1])
        if values is None:
            return None
        return replace(values, items=tuple(Relation(("=",), (node.sides[0], one)) for one in values.items))
    if isinstance(node, Relation) and node.operators == ("in",) and isinstance(node.sides[0], Symbol):
        set_ = node.sides[1]
        if not (isinstance(set_, Sequence) and set_.opening == "{"):
            return None
        return Sequence("", tuple(Relation(("=",), (node.sides[0], one)) for one in set_.items), "", ("or",))
    if isinstance(node, Combination) and node.operator == "cap":
        return _integers_between(node.left, node.right) or _integers_between(node.right, node.left)
    if is_expression(node) and _signs(node):
        return Sequence("", (_with_sign(node, 0), _with_sign(node, 1)), "", ("or",))
    return None


def _integers_between(interval: Node, integers: Node) -> Sequence | None:
    """Return the integers of an interval, `[1, 5] \\cap \\mathbb{Z}`; None if the bounds are not two numbers."""
    if integers != NamedSet("Z") or not isinstance(interval, Sequence) or interval.opening not in ("(", "["):
        return None
    bounds = [to_fraction(item) for item in interval.items if is_expression(item)]
    low, high = bounds if len(bounds) == 2 else (None, None)
    if low is None or high is None or not low < high < low + MAX_ITEMS:
        return None
    first = low.floor() + 1 if interval.opening == "(" else low.ceil()
    last = high.ceil() - 1 if interval.closing == ")" else high.floor()
    return Sequence("{", tuple(integer(at) for at in range(int(first), int(last) + 1)), "}")


def _signs(expression: Expression) -> list[str]:
    """Return the operations `\\pm` and `\\mp` in an expression."""
    return [part.operation for part in parts(expression) if isinstance(part, Apply) and part.operation in _SIGNS]


def _both_points(point: Sequence) -> Sequence | None:
    """Return both values of a point that has one `\\pm`, or linked signs (`\\pm` and `\\mp`); None for other points."""
    items = [item for item in point.items if is_expression(item)]
    signs = [sign for item in items for sign in _signs(item)]
    if len(items) < len(point.items) or not (len(signs) == 1 or len({*signs}) == 2):
        return None
    points = (replace(point, items=tuple(_with_sign(item, index) for item in items)) for index in (0, 1))
    return Sequence("", tuple(points), "", ("or",))


def _group_items(list_: Sequence) -> Sequence:
    """Group the comma-separated items between two semicolons into one member.

    "and" and "or" also separate groups if each group gives values to the same letters: `x = 1, y = 2 or x = 3, y = 4`.
    """
    separator = next((joiner for joiner in (";", "and", "or") if joiner in list_.joined), "")
    if list_.opening or {*list_.joined} != {",", separator}:
        return list_
    groups: list[Node] = []
    items: list[Node] = []
    for item, joiner in zip(list_.items, (*list_.joined, separator), strict=True):
        items.append(item)
        if joiner == separator:
            groups.append(items[0] if len(items) == 1 else Sequence("", tuple(items), "", (",",) * (len(items) - 1)))
            items = []
    names = {_names(group) for group in groups}
    if separator != ";" and (len(names) > 1 or () in names):
        return list_
    return Sequence("", tuple(groups), "", (";",) * (len(groups) - 1))


def _names(group: Node) -> tuple[Expression, ...]:
    """Return the letters to which a list gives values; empty if an item has no letter, or a letter is repeated."""
    named = [as_equation(item) for item in group.items] if isinstance(group, Sequence) else []
    names = tuple(sides[0] for sides in named if sides and isinstance(sides[0], Symbol))
    return names if len({*names}) == len(named) else ()


def expand_signs(list_: Sequence) -> Sequence:
    """Expand members with `\\pm`; a value without a name gets the name of the previous value."""
    items: list[Node] = []
    for item in list_.items:
        before = as_equation(items[-1]) if items else None
        if before and isinstance(before[0], Symbol) and is_expression(item):
            item = Relation(("=",), (before[0], item))
        both = as_list(item) if not isinstance(item, Sequence) or is_point(item) else None
        items += both.items if both else (item,)
    return replace(list_, items=tuple(items), joined=list_.joined if len(items) == len(list_.items) else ("or",))


def _drop_indices(list_: Sequence, other: Sequence) -> Sequence:
    """Replace the names `x_1` and `x_2` by `x` if `x` is the only name in the other list."""
    named = [
        (one, one[0].name.partition("_")) for one in map(as_equation, list_.items) if one and isinstance(one[0], Symbol)
    ]
    names = {one[0] for one in map(as_equation, other.items) if one}
    letters = {letter for _, (letter, _, number) in named if number.isdecimal()}
    if len(named) < len(list_.items) or len(letters) != 1 or names != {Symbol(letter) for letter in letters}:
        return list_
    return replace(list_, items=tuple(Relation(("=",), (*names, one[1])) for one, _ in named))


def _drop_names(list_: Sequence, other: Sequence) -> Sequence:
    """Return the values of `x = 1, y = 2`, in this order, if `other` is a list of values without names.

    Otherwise, the list is unchanged. It is also unchanged if two names differ only in their indices, as in
    `x_1 = 1, x_2 = 2`, because these values may be in any order.
    """
    named = named_values(list_) if _is_ordered(other) else None
    if not named or len({name.partition("_")[0] for name, _ in named}) < len(named):
        return list_
    return Sequence("", tuple(value for _, value in named), "", (",",) * (len(named) - 1))


def equal_lists(answer: Sequence, reference: Sequence, equal: Equal) -> bool | None:
    """Return whether two lists have the same members.

    The order counts if both lists consist of values or words, have no brackets and are joined by commas or semicolons.
    One of them may also name its values by different letters (`x = 1, y = 2`). All other lists, such as sets, lists
    joined by words and two lists of equations, may be in any order. In sets and lists of points, a member may repeat.

    Args:
        answer: a list from `as_list`.
        reference: a list from `as_list`.
        equal: compares two members.

    Returns:
        None if this is unknown, or a list has more than `MAX_ITEMS` members.
    """
    one, other = expand_signs(answer), expand_signs(reference)
    one, other = _drop_indices(one, other), _drop_indices(other, one)
    if one.opening and other.opening and max(len(one.items), len(other.items)) <= MAX_ITEMS:
        return _equal_sets(one.items, other.items, equal)
    if len(one.items) > MAX_ITEMS:
        return None
    if len(other.items) <= MAX_ITEMS and all(map(is_point, (*one.items, *other.items))):
        return _equal_sets(one.items, other.items, equal)
    if len(one.items) != len(other.items) or _have_conflicting_joiners(one, other):
        return False
    one, other = _drop_names(one, other), _drop_names(other, one)
    if not (_is_ordered(one) and _is_ordered(other)):
        return _match_items(one.items, other.items, equal)
    return all_of(map(equal, one.items, other.items))


def equal_to_one(answer: Sequence, reference: Node, equal: Equal) -> bool | None:
    """Return whether a list equals one value.

    Each member of a list without brackets must equal the value, and only "or" may join them. A set must have the value
    as its only member.

    Returns:
        None if the list has no brackets and only letters as members, and does not equal the value.
    """
    items = expand_signs(answer).items
    if answer.opening:
        return equal(items[0], reference) if len(items) == 1 and not _is_set(items[0]) else False
    verdicts = {equal(item, reference) for item in items}
    if verdicts == {True} and set(answer.joined) == {"or"}:
        return True
    # No verdict on letters: `A, C` may be two choices, which can also be written `AC`.
    return None if all(isinstance(item, Symbol) for item in items) else False


def _have_conflicting_joiners(one: Sequence, other: Sequence) -> bool:
    """Return whether one list says "and" and the other "or"; False if `one` has only numbers, or only equations.

    If both lists give values to different names, as `x = 2 or y = 3` does, return whether only one list says "or".
    """
    if _has_different_names(one) and _has_different_names(other):
        return ("or" in one.joined) != ("or" in other.joined)
    values = all(is_expression(item) and not symbols(item) for item in one.items) or all(map(as_equation, one.items))
    return not values and {"and", "or"} <= {*one.joined, *other.joined}


def _has_different_names(list_: Sequence) -> bool:
    """Return whether each member gives a value to its own letter, and at least two letters differ without indices."""
    named = named_values(replace(list_, joined=tuple("," for _ in list_.joined))) or ()
    return len({name.partition("_")[0] for name, _ in named}) > 1


def _is_set(node: Node) -> bool:
    return isinstance(node, (Sequence, NamedSet)) and (isinstance(node, NamedSet) or node.opening == "{")


def _with_sign(expression: Expression, sign_index: int) -> Expression:
    """Return the expression with each `\\pm` or `\\mp` replaced by its upper sign (index 0) or lower sign (index 1)."""
    if not isinstance(expression, Apply):
        return expression
    arguments = tuple(_with_sign(argument, sign_index) for argument in expression.arguments)
    if expression.operation in _SIGNS:
        first, second = arguments
        return Apply("sum", (first, second if _SIGNS[expression.operation][sign_index] > 0 else negative(second)))
    return Apply(expression.operation, arguments)


def _is_ordered(list_: Sequence) -> bool:
    """Return whether the order of a list counts: it has no brackets, no "or", no equations or points, and no "and".

    "and" may join counts of different nouns: `4 red and 3 blue` is `4, 3`.
    """
    are_counts = all(isinstance(item, Quantity) and item.noun for item in list_.items)
    is_plain = not list_.opening and {*list_.joined} <= ({",", ";", "and"} if are_counts else {",", ";"})
    return is_plain and not any(isinstance(item, (Relation, Sequence)) for item in list_.items)


def _equal_sets(one: tuple[Node, ...], other: tuple[Node, ...], equal: Equal) -> bool | None:
    """Return whether each member of one set is a member of the other, and vice versa."""
    table = [[_is_set(item) == _is_set(expected) and equal(item, expected) for expected in other] for item in one]
    rows = [any_of(row) for row in [*table, *map(list, zip(*table, strict=True))]]
    return all_of(rows)


def _match_items(items: tuple[Node, ...], expected: tuple[Node, ...], equal: Equal) -> bool | None:
    """Return whether each of `items` equals a different member of `expected`."""
    remaining, has_undecided = list(expected), False
    for item in items:
        verdicts = [_is_set(one) == _is_set(item) and equal(item, one) for one in remaining]
        if True not in verdicts:
            return None if has_undecided or None in verdicts else False
        has_undecided |= None in verdicts
        del remaining[verdicts.index(True)]
    return True
