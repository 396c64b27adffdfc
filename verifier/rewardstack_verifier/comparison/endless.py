"""Sums and products without end, compared term by term."""

from __future__ import annotations

from typing import TypeGuard

from rewardstack_verifier.numbers.equality import same
from rewardstack_verifier.numbers.tree import (
    OVER_INDEX,
    Apply,
    Constant,
    Expression,
    Symbol,
    substituted,
    symbols,
)

_INDEX = Symbol("n")
"""Which counts the terms of both, from 0 on: a letter of integers."""


def is_endless(expression: Expression) -> TypeGuard[Apply]:
    """Whether it is a sum or product over an index that has no last value."""
    return (
        isinstance(expression, Apply)
        and expression.operation in OVER_INDEX
        and expression.arguments[3] == Constant("infinity")
    )


def equal_series(answer: Expression, reference: Expression) -> bool | None:
    """Whether two expressions are sums, or products, with the same terms in the same order.

    Returns:
        None where one of the two is none, or it cannot be told; two whose terms differ are not the same, although what
        they add up to may be.
    """
    if not (
        isinstance(answer, Apply) and isinstance(reference, Apply) and is_endless(answer) and is_endless(reference)
    ):
        return None
    if answer.operation != reference.operation:
        return False
    return same(_term(answer), _term(reference))


def _term(series: Apply) -> Expression:
    body, index, first, _ = series.arguments
    [name] = symbols(index)
    return substituted(body, name, Apply("sum", (_INDEX, first)))
