"""Compare answers with several members: lists, sets, and expressions with `\\pm`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rewardstack_verifier.comparison.equations import equation
from rewardstack_verifier.comparison.values import all_of, any_of
from rewardstack_verifier.numbers.tree import Apply, Expression, Symbol, negative, parts, symbols
from rewardstack_verifier.reading.syntax import NamedSet, Node, Relation, Sequence, is_expression

Equal = Callable[[Node, Node], "bool | None"]
_SIGNS = {"plus or minus": (1, -1), "minus or plus": (-1, 1)}
MOST_ITEMS = 50
"""Maximum number of members of lists that are compared pair by pair."""


def several(node: Node) -> Sequence | None:
    """Return a list, a set, or both values of an expression with `\\pm`; None for a single answer."""
    if isinstance(node, Sequence):
        return _grouped(node) if node.opening in ("", "{") and ":" not in node.joined else None
    if isinstance(node, Relation) and node.operators == ("=",) and is_expression(node.sides[1]):
        values = several(node.sides[1])
        if values is None:
            return None
        return replace(values, items=tuple(Relation(("=",), (node.sides[0], one)) for one in values.items))
    if isinstance(node, Relation) and node.operators == ("in",) and isinstance(node.sides[0], Symbol):
        set_ = node.sides[1]
        if not (isinstance(set_, Sequence) and set_.opening == "{"):
            return None
        return Sequence("", tuple(Relation(("=",), (node.sides[0], one)) for one in set_.items), "", ("or",))
    if is_expression(node) and any(isinstance(part, Apply) and part.operation in _SIGNS for part in parts(node)):
        return Sequence("", (_with_sign(node, 0), _with_sign(node, 1)), "", ("or",))
    return None


def _grouped(list_: Sequence) -> Sequence:
    """Group the comma-separated items between two semicolons into one member.

    "and" and "or" also separate groups if each group gives values to the same letters: `x = 1, y = 2 or x = 3, y = 4`.
    """
    parting = next((joiner for joiner in (";", "and", "or") if joiner in list_.joined), "")
    if list_.opening or {*list_.joined} != {",", parting}:
        return list_
    groups: list[Node] = []
    items: list[Node] = []
    for item, joiner in zip(list_.items, (*list_.joined, parting), strict=True):
        items.append(item)
        if joiner == parting:
            groups.append(items[0] if len(items) == 1 else Sequence("", tuple(items), "", (",",) * (len(items) - 1)))
            items = []
    names = {_names(group) for group in groups}
    if parting != ";" and (len(names) > 1 or () in names):
        return list_
    return Sequence("", tuple(groups), "", (";",) * (len(groups) - 1))


def _names(group: Node) -> tuple[Expression, ...]:
    """Return the letters that a list gives values to; empty if an item gives none, or a letter is repeated."""
    named = [equation(item) for item in group.items] if isinstance(group, Sequence) else []
    names = tuple(sides[0] for sides in named if sides and isinstance(sides[0], Symbol))
    return names if len({*names}) == len(named) else ()


def written_out(list_: Sequence) -> Sequence:
    """Expand members with `\\pm`; a value without a name gets the name of the previous value."""
    items: list[Node] = []
    for item in list_.items:
        before = equation(items[-1]) if items else None
        if before and isinstance(before[0], Symbol) and is_expression(item):
            item = Relation(("=",), (before[0], item))
        both = several(item) if not isinstance(item, Sequence) else None
        items += both.items if both else (item,)
    return replace(list_, items=tuple(items), joined=list_.joined if len(items) == len(list_.items) else ("or",))


def _without_numbers(list_: Sequence, beside: Sequence) -> Sequence:
    """Replace `x_1` and `x_2` by one letter, if the other list uses only that letter."""
    named = [
        (one, one[0].name.partition("_")) for one in map(equation, list_.items) if one and isinstance(one[0], Symbol)
    ]
    names = {one[0] for one in map(equation, beside.items) if one}
    letters = {letter for _, (letter, _, number) in named if number.isdecimal()}
    if len(named) < len(list_.items) or len(letters) != 1 or names != {Symbol(letter) for letter in letters}:
        return list_
    return replace(list_, items=tuple(Relation(("=",), (*names, one[1])) for one, _ in named))


def equal_lists(answer: Sequence, reference: Sequence, equal: Equal) -> bool | None:
    """Return whether two lists have the same members.

    Order counts only for expressions that are joined by commas or semicolons, without brackets. Sets, lists joined by
    words, and equations may be in any order. In sets and lists of points, a member may be repeated.

    Args:
        answer: a list from `several`.
        reference: a list from `several`.
        equal: compares two members.

    Returns:
        None if this is unknown, or a list has more than `MOST_ITEMS` members.
    """
    one, other = written_out(answer), written_out(reference)
    one, other = _without_numbers(one, other), _without_numbers(other, one)
    if one.opening and other.opening and max(len(one.items), len(other.items)) <= MOST_ITEMS:
        return _equal_sets(one.items, other.items, equal)
    if len(one.items) > MOST_ITEMS:
        return None
    if len(other.items) <= MOST_ITEMS and all(map(_is_point, (*one.items, *other.items))):
        return _equal_sets(one.items, other.items, equal)
    if len(one.items) != len(other.items) or _conflict(one, other):
        return False
    if not (_is_ordered(one) and _is_ordered(other)):
        return _matched(one.items, other.items, equal)
    return all_of(map(equal, one.items, other.items))


def equal_to_one(answer: Sequence, reference: Node, equal: Equal) -> bool | None:
    """Return whether several answers equal one value: each must equal it, and only "or" may join them."""
    items = written_out(answer).items
    if answer.opening:
        return equal(items[0], reference) if len(items) == 1 and not _is_set(items[0]) else False
    verdicts = {equal(item, reference) for item in items}
    if verdicts == {True} and set(answer.joined) == {"or"}:
        return True
    # `A, C` may be a choice of both, which is also written `AC`.
    return None if all(isinstance(item, Symbol) for item in items) else False


def _conflict(one: Sequence, other: Sequence) -> bool:
    """Return whether one list says "and" and the other "or", unless all members are values."""
    values = all(is_expression(item) and not symbols(item) for item in one.items) or all(map(equation, one.items))
    return not values and {"and", "or"} <= {*one.joined, *other.joined}


def _is_point(node: Node) -> bool:
    return isinstance(node, Sequence) and node.opening == "("


def _is_set(node: Node) -> bool:
    return isinstance(node, (Sequence, NamedSet)) and (isinstance(node, NamedSet) or node.opening == "{")


def _with_sign(expression: Expression, which: int) -> Expression:
    """Return the expression with the upper or the lower of its signs."""
    if not isinstance(expression, Apply):
        return expression
    arguments = tuple(_with_sign(argument, which) for argument in expression.arguments)
    if expression.operation in _SIGNS:
        first, second = arguments
        return Apply("sum", (first, second if _SIGNS[expression.operation][which] > 0 else negative(second)))
    return Apply(expression.operation, arguments)


def _is_ordered(list_: Sequence) -> bool:
    return not list_.opening and set(list_.joined) <= {",", ";"} and all(map(is_expression, list_.items))


def _equal_sets(one: tuple[Node, ...], other: tuple[Node, ...], equal: Equal) -> bool | None:
    """Return whether each member of one set is a member of the other, and vice versa."""
    table = [[_is_set(item) == _is_set(asked) and equal(item, asked) for asked in other] for item in one]
    rows = [any_of(row) for row in [*table, *map(list, zip(*table, strict=True))]]
    return all_of(rows)


def _matched(items: tuple[Node, ...], asked: tuple[Node, ...], equal: Equal) -> bool | None:
    """Return whether each of `items` equals a different member of `asked`."""
    left, open_ = list(asked), False
    for item in items:
        verdicts = [_is_set(one) == _is_set(item) and equal(item, one) for one in left]
        if True not in verdicts:
            return None if open_ or None in verdicts else False
        open_ |= None in verdicts
        del left[verdicts.index(True)]
    return True
