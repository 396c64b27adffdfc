"""Compare values with units, amounts of money, and counted nouns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from itertools import product

from rewardstack_verifier.comparison.values import (
    all_of,
    any_of,
    as_percentage,
    equal_in_radians,
    equal_values,
    has_calls,
    has_degree_signs,
    scale,
    simplify,
)
from rewardstack_verifier.lexicon import phrases
from rewardstack_verifier.numbers.rational import to_fraction
from rewardstack_verifier.numbers.tree import Apply, Expression, Number, Symbol, parts, symbols
from rewardstack_verifier.reading.names import GREEK
from rewardstack_verifier.reading.syntax import Node, Quantity, Relation, Total, Unit, Words, is_expression
from rewardstack_verifier.reading.wording import normalize_phrase

Measured = tuple[Expression, tuple[Unit, ...]]
"""A value, and the possible meanings of its unit, which are empty if there is no unit or the unit is unknown."""

_ARTICLES = frozenset(phrases.ARTICLES.split())
_UNSPECIFIC = frozenset(phrases.UNSPECIFIC.split())
_WORD = re.compile(r"\w+")
_ANGLE, _TEMPERATURE = (("angle", 1),), (("temperature", 1),)


def equal_quantities(answer: Node, reference: Node) -> bool | None:
    """Compare two quantities, or a quantity with a value whose unit was omitted.

    Known units are converted; an ambiguous unit matches in any of its meanings. An unknown unit counts as a noun, and
    nouns are not compared.
    """
    if (
        isinstance(answer, Total)
        and isinstance(reference, Total)
        and len(answer.quantities) == len(reference.quantities)
    ):
        parts = all_of(map(equal_quantities, answer.quantities, reference.quantities))
        if parts or not (_as_measured(answer) and _as_measured(reference)):
            return parts
    one, other = _as_measured(answer), _as_measured(reference)
    if one is None or other is None or not _have_same_words(answer, reference):
        return False
    (value, meanings), (asked, expected) = one, other
    if not meanings or not expected:
        return _equal_without_unit(one, other)
    return any_of(_equal_converted(value, own, asked, its) for own, its in product(meanings, expected))


def _have_same_words(answer: Node, reference: Node) -> bool:
    """Return whether the nouns of two values are the same, up to words that one of them leaves out behind a number.

    Behind letters, all words count: `n \\text{ odd}`. The answer may leave out a unit only if it is marked as one, and
    add one unmarked letter: `5 m`, not `5 m g h`.
    """
    quantities = [node for node in (answer, reference) if isinstance(node, Quantity)]
    if len(quantities) == 1 and quantities[0].factors > (quantities[0] is answer):
        return False
    nouns = [node.noun if isinstance(node, Quantity) else "" for node in (answer, reference)]
    if nouns[0] == nouns[1] or len({bool(one.meanings) for one in quantities}) > 1:
        return nouns[0] == nouns[1]
    has_number = any(isinstance(part, Number) for one in quantities for part in parts(one.value))
    one, other = ({*normalize_phrase(noun).split()} for noun in nouns)
    return one == other or (has_number and (one <= other or other <= one))


def equal_by_noun(answer: Iterable[Node], reference: Iterable[Node]) -> list[bool | None]:
    """Compare lists of counted nouns; return one verdict, or an empty list if the nouns do not decide.

    A list with only one noun (`5 cats and 3 cats`) does not equal a list with different nouns (`5 cats and 3 dogs`).
    But it may equal a list whose nouns all end with this one noun (`5 red cats and 3 black cats`).
    """
    one, other = _with_nouns(answer), _with_nouns(reference)
    if not one or len(one) != len(other):
        return []
    by_noun, asked = dict(one), dict(other)
    if len(by_noun) != len(asked):
        pairs = [*zip(one, other, strict=True)]
        if all(own.endswith(f" {its}") or its.endswith(f" {own}") for (own, _), (its, _) in pairs):
            return [all_of(equal_quantities(own, its) for (_, own), (_, its) in pairs)]
        return [False] if len(one) in (len(by_noun), len(asked)) else []
    if len(asked) < len(other) or by_noun.keys() != asked.keys():
        return []
    return [all_of(equal_quantities(by_noun[noun], asked[noun]) for noun in asked)]


def _with_nouns(quantities: Iterable[Node]) -> list[tuple[str, Node]]:
    """Return pairs of noun and quantity; empty if an item is not a quantity with a noun."""
    items = [*quantities]
    found = [(normalize_phrase(one.noun), one) for one in items if isinstance(one, Quantity) and not one.meanings]
    return [*found] if len(found) == len(items) else []


def have_different_names(answer: Node, reference: Node) -> bool:
    """Return whether two statements such as `x = 5 cm` give values to different names.

    The result is False if neither statement has a unit, words or an approximate value.
    """
    if not (isinstance(answer, Relation) and isinstance(reference, Relation)):
        return False
    if not (_has_unit(answer) or _has_unit(reference) or "~" in answer.operators + reference.operators):
        return False
    name, asked = answer.sides[0], reference.sides[0]
    if isinstance(name, Symbol) and isinstance(asked, Symbol):
        return name != asked and bool(name.name and asked.name)
    words, asked_words = _name_words(name), _name_words(asked)
    return not (words <= asked_words or asked_words <= words)


def _name_words(name: Node) -> frozenset[str]:
    """Return the words of a name without articles; empty for a letter, or for general words such as "total"."""
    if isinstance(name, Symbol):
        text = name.name if name.name.isalpha() and len(name.name) > 1 and name.name not in GREEK else ""
    else:
        text = name.text if isinstance(name, Words) else ""
    words = (normalize_phrase(word) for word in _WORD.findall(text.lower()) if word not in _ARTICLES)
    found = frozenset(words)
    return frozenset() if found <= _UNSPECIFIC else found


def _has_unit(node: Node) -> bool:
    return isinstance(node, Relation) and any(isinstance(side, (Quantity, Total, Words)) for side in node.sides)


def stated_value(node: Node, other: Node) -> Node | None:
    """Return the value that a statement such as `21 - 14 = 7 eggs` or `Total = 5` gives.

    Args:
        node: the node, which is a statement only if it or `other` has a unit or words.
        other: the node that `node` is compared with.

    Returns:
        The last side, or the side before a final `\\approx`. The result is None if an earlier side without letters
        differs from the last side. A node that is not a statement is returned unchanged.
    """
    if not isinstance(node, Relation) or not (_has_unit(node) or (_has_unit(other) and node.operators == ("=",))):
        return node
    *steps, value = node.sides
    computed = [step for step in steps if not isinstance(step, Words) and not (is_expression(step) and symbols(step))]
    if "~" in node.operators and computed and node.operators[-1] == "~":
        return computed[-1]
    return value if all(_equal_steps(step, value) for step in computed) else None


def _equal_steps(step: Node, value: Node) -> bool | None:
    """Return whether a step equals the stated value; True for a step with a function such as `f(3)`."""
    return (is_expression(step) and has_calls(step)) or equal_quantities(step, value)


def _equal_without_unit(one: Measured, other: Measured) -> bool | None:
    """Return whether two values, at least one of them without a unit, are equal.

    A unit may be omitted, unless the other value is a percentage. Units of counting are also converted (`2 dozen` is
    `24`). If the other value is not a whole number, cents are converted into the currency (`50 cents` is `0.5`).
    """
    (value, meanings), (asked, expected) = one, other
    units = (*meanings, *expected)
    if units and (has_degree_signs(value) or has_degree_signs(asked)):
        if any(unit.dimensions == _ANGLE for unit in units):
            return equal_in_radians(value, asked)
        return any(unit.dimensions == _TEMPERATURE for unit in units) and equal_values(value, asked)
    if units and (as_percentage(value) is not None or as_percentage(asked) is not None):
        return False
    same, bare = equal_values(value, asked), to_fraction(asked if meanings else value)
    for unit in units:
        is_hundredth = bool(unit.dimensions) and unit.size == Fraction(1, 100) and unit.dimensions[0][0].isupper()
        if not unit.dimensions or (not same and is_hundredth and bare is not None and bare.q != 1):
            converted = scale(value if meanings else asked, unit.size)
            return equal_values(converted, asked) if meanings else equal_values(value, converted)
    return same


def _equal_converted(value: Expression, unit: Unit, asked: Expression, expected: Unit) -> bool | None:
    if unit.dimensions != expected.dimensions:
        return _is_rate_left_out(unit, expected) and equal_values(value, asked)
    converted = scale(value, unit.size / expected.size)
    if unit.zero != expected.zero:
        converted = simplify(Apply("sum", (converted, Number((unit.zero - expected.zero) / expected.size))))
    return equal_values(converted, asked)


def _is_rate_left_out(one: Unit, other: Unit) -> bool:
    """Return whether one unit is a currency and the other a price in this currency, whose `per kg` may be omitted."""
    plain, rate = sorted((one, other), key=lambda unit: len(unit.dimensions))
    money = [(name, exponent) for name, exponent in rate.dimensions if name.isupper()]
    return len(money) == 1 and money == [*plain.dimensions] and money[0][1] == 1 and plain.size == 1


def _as_measured(node: Node) -> Measured | None:
    """Return the value and the unit of a node; None if it has no value. A `Total` is converted to its first unit."""
    if isinstance(node, Total):
        return _add_quantities(node.quantities)
    if isinstance(node, Quantity):
        return node.value, node.meanings
    return (node, ()) if is_expression(node) else None


def _add_quantities(quantities: tuple[Quantity, ...]) -> Measured | None:
    """Return the sum of quantities in the first unit.

    The result is None if their dimensions differ, or if a unit is not smaller than the previous one.
    """
    for first in quantities[0].meanings:
        sizes = [
            next((unit.size for unit in one.meanings if unit.dimensions == first.dimensions), None)
            for one in quantities
        ]
        found = [size for size in sizes if size is not None]
        if len(found) == len(quantities) and found == sorted({*found}, reverse=True):
            addends = (scale(one.value, size / first.size) for one, size in zip(quantities, found, strict=True))
            return simplify(Apply("sum", tuple(addends))), (first,)
    return None
