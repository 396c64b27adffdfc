"""Compare ratios: `2:3:5` equals `4:6:10`, `3:4` also equals the number `3/4`, and `V_1:V_2 = 3:4` has names.

A ratio of three or more terms does not equal any number.
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from rewardstack_verifier.comparison.values import all_of, equal_values
from rewardstack_verifier.numbers.equality import ZERO, same
from rewardstack_verifier.numbers.tree import ONE, Apply, Expression, Number, symbols
from rewardstack_verifier.reading.syntax import Node, Relation, Sequence, is_expression


class Ratio(NamedTuple):
    """The terms of a ratio, at least two, and the names of the quantities that they compare, if given."""

    terms: tuple[Expression, ...]
    names: tuple[Expression, ...] = ()


def as_ratio(node: Node) -> Ratio | None:
    """Return the ratio of an answer, `2:3` or `V_1:V_2 = 2:3`; None for any other answer."""
    if not isinstance(node, Sequence) or node.opening or set(node.joined) != {":"}:
        return None
    terms = tuple(item for item in node.items if is_expression(item))
    return Ratio(terms) if len(terms) == len(node.items) else _read_names(node.items)


def _read_names(items: tuple[Node, ...]) -> Ratio | None:
    """Return the ratio in `V_1 : V_2 = 2 : 3` or `\\frac{V_1}{V_2} = 2 : 3`; None if there is none.

    The parser reads `V_1 : (V_2 = 2) : 3`, so the items are regrouped around the equals sign.
    """
    at = next((at for at, item in enumerate(items) if isinstance(item, Relation)), 0)
    middle = items[at]
    if not isinstance(middle, Relation) or middle.operators != ("=",):
        return None
    sides = [*items[:at], *middle.sides, *items[at + 1 :]]
    shown = [side for side in sides if is_expression(side)]
    names, terms = tuple(shown[: at + 1]), tuple(shown[at + 1 :])
    if len(names) == 1 and isinstance(names[0], Apply) and names[0].operation == "quotient":
        names = names[0].arguments
    if len(terms) == 1:
        terms = (*terms, ONE)
    is_complete = len(shown) == len(sides) and len(names) == len(terms) == len({*names})
    return Ratio(terms, names) if is_complete and all(map(symbols, names)) else None


def equal_ratios(answer: Ratio, reference: Ratio) -> bool | None:
    """Return whether the terms are proportional, matched by name if both ratios have names.

    A term that is zero in one ratio must be zero in the other. A ratio of only zeros is not equal to any ratio.
    """
    if len(answer.terms) != len(reference.terms):
        return False
    terms_found = answer.terms
    if answer.names and reference.names:
        if {*answer.names} != {*reference.names}:
            return False
        terms_found = tuple(terms_found[answer.names.index(name)] for name in reference.names)
    zeros, asked_zeros = (tuple(same(term, ZERO) for term in terms) for terms in (terms_found, reference.terms))
    if None in zeros or None in asked_zeros:
        return None
    if zeros != asked_zeros or all(zeros):
        return False
    pairs = [pair for pair, zero in zip(zip(terms_found, reference.terms, strict=True), zeros, strict=True) if not zero]
    (first, asked_first), *others = pairs
    if not others:
        return equal_values(first, asked_first)  # `3:0` is the score of a game rather than a ratio
    return all_of(
        equal_values(Apply("product", (term, asked_first)), Apply("product", (first, asked))) for term, asked in others
    )


def equal_ratio_and_value(stated: Ratio, value: Expression) -> bool | None:
    """Return whether a ratio of two terms equals a number; a ratio that looks like a time of day, `3:30`, does not."""
    if len(stated.terms) != 2 or _is_rather_time(*stated.terms):
        return False
    return equal_values(Apply("quotient", stated.terms), value)


def _is_rather_time(hour: Expression, minute: Expression) -> bool:
    """Return whether a ratio looks like a time of day: two-digit minutes, and not in lowest terms."""
    if not (isinstance(hour, Number) and isinstance(minute, Number) and hour.places is minute.places is None):
        return False
    return 10 <= minute.value < 60 and gcd(int(hour.value), int(minute.value)) > 1
