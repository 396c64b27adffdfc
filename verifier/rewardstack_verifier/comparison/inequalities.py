"""Inequalities that say no set of real numbers: equal side by side, or the same up to a positive factor."""

from __future__ import annotations

from collections.abc import Callable

from rewardstack_verifier.comparison.values import all_of
from rewardstack_verifier.numbers.equality import proportional
from rewardstack_verifier.numbers.tree import Expression, difference, symbols
from rewardstack_verifier.reading.syntax import Node, Relation, is_expression

_TURNED = {">": "<", ">=": "<="}


def inequality(node: Node) -> Relation | None:
    """An inequality whose larger side stands on its right, or one of two sides that differ; None where it is none."""
    if isinstance(node, Relation) and node.operators == ("!=",):
        return node
    if not isinstance(node, Relation) or not set(node.operators) <= {*_TURNED, *_TURNED.values()}:
        return None
    if set(node.operators) & set(_TURNED):
        return Relation(tuple(_TURNED.get(one, "") for one in node.operators[::-1]), node.sides[::-1])
    return node


def equal_inequalities(
    answer: Relation, reference: Relation, equal: Callable[[Node, Node], bool | None]
) -> bool | None:
    """Whether two inequalities say the same.

    Args:
        answer: as `inequality` gives it.
        reference: likewise.
        equal: compares two sides.

    Returns:
        None where they are to be solved, or chains.
    """
    if answer.operators != reference.operators:
        return False
    if all_of(map(equal, answer.sides, reference.sides)):
        return True
    one, other = _excess(answer), _excess(reference)
    if one is None or other is None or len(symbols(one, other)) < 2:
        return None
    return proportional(one, other, positively=answer.operators != ("!=",))


def _excess(relation: Relation) -> Expression | None:
    """By how much the larger side is larger; None where there are more sides, or one is no expression."""
    small, large, *more = relation.sides
    return difference(large, small) if is_expression(small) and is_expression(large) and not more else None
