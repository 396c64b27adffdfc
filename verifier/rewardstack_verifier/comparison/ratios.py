"""Ratios: `2:3:5`, which is 4:6:10 and no number, and `3:4`, which is 3/4 as well."""

from __future__ import annotations

from math import gcd

from rewardstack_verifier.comparison.expressions import equal_values
from rewardstack_verifier.comparison.verdicts import all_of
from rewardstack_verifier.numbers.tree import Apply, Expression, Number
from rewardstack_verifier.reading.syntax import Node, Sequence, is_expression

Ratio = tuple[Expression, ...]


def ratio(node: Node) -> Ratio | None:
    """The terms of a ratio, at least two; None where it is anything else."""
    if not isinstance(node, Sequence) or node.opening or set(node.joined) != {":"}:
        return None
    terms = tuple(item for item in node.items if is_expression(item))
    return terms if len(terms) == len(node.items) else None


def equal_ratios(answer: Ratio, reference: Ratio) -> bool | None:
    """Whether the terms of one are a multiple of the other's."""
    if len(answer) != len(reference):
        return False
    return all_of(
        equal_values(Apply("product", (term, reference[0])), Apply("product", (answer[0], asked)))
        for term, asked in zip(answer[1:], reference[1:], strict=True)
    )


def equal_ratio_and_value(terms: Ratio, value: Expression) -> bool | None:
    """Whether a ratio of two terms is a number; one that is rather a time of day, `3:30`, is none."""
    if len(terms) != 2 or _is_rather_time(*terms):
        return False
    return equal_values(Apply("quotient", terms), value)


def _is_rather_time(hour: Expression, minute: Expression) -> bool:
    """Whether it has two digits and could be reduced."""
    if not (isinstance(hour, Number) and isinstance(minute, Number) and hour.places is minute.places is None):
        return False
    return 10 <= minute.value < 60 and gcd(int(hour.value), int(minute.value)) > 1
