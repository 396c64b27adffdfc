"""Compare two answers with a table, `COMPARISONS`, whose rows compare answers of certain types.

To add a type, write a module with its class (a `Structure` of `reading.syntax`), its parser and its comparison, and add
its rows here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product
from typing import Any, get_args

from rewardstack_verifier.comparison.approximations import approximation, equal_approximations
from rewardstack_verifier.comparison.equations import concluded, equal_equations, equal_to_value, equation, is_curve
from rewardstack_verifier.comparison.families import equal_progressions, progressions
from rewardstack_verifier.comparison.integers import (
    congruence,
    equal_bases,
    equal_congruences,
    equal_to_residue,
    in_base,
)
from rewardstack_verifier.comparison.intervals import Reals, equal_inequalities, equal_reals, inequality, members, reals
from rewardstack_verifier.comparison.lists import equal_lists, equal_to_one, several
from rewardstack_verifier.comparison.quantities import equal_by_noun, equal_quantities, names_differ, value_stated
from rewardstack_verifier.comparison.ratios import equal_ratio_and_value, equal_ratios, ratio
from rewardstack_verifier.comparison.values import all_of
from rewardstack_verifier.comparison.vectors import components, point, without_name
from rewardstack_verifier.comparison.wording import equal_choice_and_value, equal_choices, equal_in_words
from rewardstack_verifier.numbers.tree import Expression, Number, Symbol, symbols
from rewardstack_verifier.reading.readings import readings, readings_by_comma
from rewardstack_verifier.reading.syntax import (
    Choice,
    Combination,
    Date,
    Family,
    Matrix,
    NamedSet,
    Node,
    Quantity,
    Relation,
    Remark,
    Sequence,
    Time,
    Total,
    Words,
    is_expression,
)
from rewardstack_verifier.reading.undone import undone
from rewardstack_verifier.stack import on_any_stack
from rewardstack_verifier.trail import trace

DECIDING = (Choice, Time, Date)
"""If the first readings of both texts have the same one of these types, no other readings are compared."""
Form = Callable[[Node], Any]
"""Converts an answer to one type; returns None or something empty if the answer has another type."""
Row = Callable[[Node, Node], "list[bool | None]"]
"""Compares an answer with its reference: a list of one verdict, or an empty list if the row does not apply."""
_IN_WORDS = (Words, Remark, Time, Date)
_MEASURED = (*get_args(Expression), Quantity, Total)
_PARTED = (Relation, Sequence, Matrix, NamedSet, Combination)
_KNOWN = {Number, *_PARTED}
"""Types that no row needs to compare: two answers of different types of these are never equal."""


@on_any_stack
def compare(answer: str, reference: str) -> bool | None:
    """Return whether an answer equals its reference by value.

    Args:
        answer: text of the answer; `bounds.refusal` must accept it.
        reference: text of the reference; `bounds.refusal` must accept it.

    Returns:
        Whether any reading of the answer equals any reading of the reference; None if no two readings can be compared.
        An answer with unfinished arithmetic that the reference does not have is wrong.
    """
    if undone(answer) - undone(reference):
        trace("values")
        return False
    found = readings(answer) + readings_by_comma(answer)
    expected = readings(reference) + readings_by_comma(reference, certain=True)
    if found and expected and type(found[0]) is type(expected[0]) in DECIDING:
        found, expected = found[:1], expected[:1]
    is_compared = is_equal = False
    for one, other in product(found, expected):
        verdict = equal_nodes(one, other)
        is_compared |= verdict is not None
        if verdict:
            is_equal = True
            break
    if is_compared:
        trace("values")
    return is_equal if is_compared else None


def equal_nodes(answer: Node, reference: Node) -> bool | None:
    """Compare two parsed answers by their types.

    Args:
        answer: a reading of the answer.
        reference: a reading of the reference.

    Returns:
        None if their values do not decide whether they are equal, or no row compares their types.
    """
    if answer == reference and not _is_clock(answer):
        return True
    if _has_remainder(answer) or _has_remainder(reference):
        return False
    answer, reference = (without_name(_without_steps(concluded(one))) for one in (answer, reference))
    if _is_bracketed(answer) or _is_bracketed(reference):
        answer, reference = point(answer) or answer, point(reference) or reference
    if isinstance(answer, Choice) and not isinstance(reference, Choice):
        return equal_choice_and_value(answer, reference, equal_nodes)
    if isinstance(reference, Choice) and not isinstance(answer, Choice):
        return equal_choice_and_value(reference, answer, equal_nodes)
    if isinstance(answer, _IN_WORDS) or isinstance(reference, _IN_WORDS):
        return equal_in_words(answer, reference)
    if names_differ(answer, reference):
        return False
    one, other = value_stated(answer, reference), value_stated(reference, answer)
    if one is None or other is None:
        return False  # the statement contradicts itself
    return _by_table(_without_letter(one, other), _without_letter(other, one))


def _without_steps(node: Node) -> Node:
    """Reduce a chain `a = ... = z` to `a = z` if z is a point, set or matrix and equals all steps of its type."""
    if not isinstance(node, Relation) or len(node.sides) < 3 or set(node.operators) != {"="} or node.modulus:
        return node
    first, *steps, last = node.sides
    if not isinstance(last, _PARTED) or not all(equal_nodes(one, last) for one in steps if type(one) is type(last)):
        return node
    return Relation(("=",), (first, last))


def _by_table(answer: Node, reference: Node) -> bool | None:
    for row in COMPARISONS:
        for found in row(answer, reference):
            return found
    kinds = {_kind(answer), _kind(reference)}
    return False if kinds <= _KNOWN and len(kinds) == 2 else None


def both(form: Form, equal: Callable[[Any, Any], bool | None]) -> Row:
    """Return a row for two answers of the same type."""

    def row(answer: Node, reference: Node) -> list[bool | None]:
        one = form(answer)
        other = form(reference) if one else None
        return [equal(one, other)] if one and other else []

    return row


def pair(form: Form, other_form: Form, equal: Callable[[Any, Any], bool | None]) -> Row:
    """Return a row for answers of two types in either order; `equal` gets them in the order of the forms."""

    def row(answer: Node, reference: Node) -> list[bool | None]:
        for first, second in ((answer, reference), (reference, answer)):
            one = form(first)
            other = other_form(second) if one else None
            if one and other:
                return [equal(one, other)]
        return []

    return row


def either(form: Form, equal: Callable[[Node, Node], bool | None]) -> Row:
    """Return a row for two answers, at least one of which has the type of `form`; `equal` gets the answer first."""
    return lambda answer, reference: [equal(answer, reference)] if form(answer) or form(reference) else []


def surely(row: Row) -> Row:
    """Return a row that decides only if `row` finds its answers equal."""
    return lambda answer, reference: [found for found in row(answer, reference) if found]


def of_type(*types: type[Node]) -> Form:
    """Return the form that accepts nodes of these types unchanged."""
    return lambda node: node if isinstance(node, types) else None


def _or_value(form: Form, equal: Callable[[Any, Any], bool | None], to_value: Callable[[Any, Any], bool | None]) -> Row:
    """Return a row for two answers of one type, or one of that type and a value; any other pair is undecided."""
    rows = (both(form, equal), pair(form, _value, to_value), either(form, _open))
    return lambda answer, reference: next((found for row in rows if (found := row(answer, reference))), [])


def _open(answer: Node, reference: Node) -> None:
    """Return no verdict."""


def _value(node: Node) -> Node | None:
    return node if is_expression(node) else None


def _single(node: Node) -> Node | None:
    """Return a node if it is a single value; None otherwise."""
    return node if is_expression(node) or isinstance(node, Quantity) or equation(node) else None


def _listed_reals(node: Node) -> Reals | None:
    """Return a list as a set of real numbers; None if it does not describe a set of real numbers."""
    return reals(node) if several(node) else None


def _list_of_values(node: Node) -> Sequence | None:
    """Return a list that does not describe a set of real numbers; None otherwise."""
    found = several(node)
    return found if found and not reals(found) else None


def _without_letter(node: Node, other: Node) -> Node:
    """Return the value of `\\angle A = 30^\\circ`, if the other answer is a value without a name."""
    if not (isinstance(node, Relation) and node.operators == ("=",) and isinstance(other, _MEASURED)):
        return node
    name, value = node.sides
    if not (isinstance(name, Symbol) and is_expression(value)):
        return node
    return node if name.name in symbols(value, *_expressions(other)) else value


def _expressions(node: Node) -> tuple[Expression, ...]:
    return (node,) if is_expression(node) else ()


def _equal_families(answer: Node, reference: Node) -> bool | None:
    """Compare two families of values; they must have the same domain and parameter."""
    if not (isinstance(answer, Family) and isinstance(reference, Family)):
        return None
    if answer.domain != reference.domain:
        return False
    return equal_nodes(answer.of, reference.of) if answer.parameter == reference.parameter else None


def _equal_equations(answer: Node, reference: Node) -> bool | None:
    """Compare two equations, or an equation and a value; an equation never equals a list, matrix or set."""
    one, other = equation(answer), equation(reference)
    if one and other:
        return equal_equations(one, other)
    if one and is_expression(reference):
        return equal_to_value(one, reference)
    if other and is_expression(answer):
        return not is_curve(other) and equal_to_value(other, answer)
    return False if isinstance(answer, _PARTED) and isinstance(reference, _PARTED) else None


def _counted(answer: Node, reference: Node) -> list[bool | None]:
    """Compare two lists that count nouns: `5 boys and 6 girls`."""
    if not (isinstance(answer, Sequence) and isinstance(reference, Sequence)):
        return []
    one, other = several(answer), several(reference)
    return equal_by_noun(one.items, other.items) if one and other else []


def _equal_items(answer: tuple[Node, ...], reference: tuple[Node, ...]) -> bool | None:
    return len(answer) == len(reference) and all_of(map(equal_nodes, answer, reference))


def _equal_row(list_: Sequence, vector: tuple[Node, ...]) -> bool | None:
    """Compare an ordered list of values, such as a point without parentheses, with a vector."""
    ordered = not list_.opening and set(list_.joined) <= {","} and all(map(is_expression, list_.items))
    return _equal_items(list_.items, vector) if ordered else False


def _equal_matrices(answer: Matrix, reference: Matrix) -> bool | None:
    """Compare two matrices; they are different if their shapes differ."""
    return len(answer.rows) == len(reference.rows) and all_of(map(_equal_items, answer.rows, reference.rows))


def _equal_inequalities(answer: Relation, reference: Relation) -> bool | None:
    return equal_inequalities(answer, reference, equal_nodes)


def _equal_sets(answer: Node, reference: Node) -> bool | None:
    """Compare two sets of real numbers, one of which may be a list of its members."""
    one, other = reals(answer) or members(answer), reals(reference) or members(reference)
    plain = is_expression(answer) or is_expression(reference)
    return equal_reals(one, other) if one and other and not plain else False


def _is_bracketed(node: Node) -> bool:
    return isinstance(node, Sequence) and node.opening == "("


def _is_clock(node: Node) -> bool:
    """Return whether a node may be a time of day, for which `10:05` and `10:5` are different."""
    return isinstance(node, Sequence) and ":" in node.joined


def _has_remainder(node: Node) -> bool:
    """Return whether a node is a quotient with a remainder."""
    return isinstance(node, Sequence) and node.joined == ("remainder",)


def _kind(node: Node) -> type[Node] | None:
    return Number if isinstance(node, _MEASURED) else type(node)


COMPARISONS: tuple[Row, ...] = (
    both(progressions, equal_progressions),
    either(of_type(Family), _equal_families),
    _or_value(ratio, equal_ratios, equal_ratio_and_value),
    both(_listed_reals, equal_reals),
    _counted,
    both(several, lambda one, other: equal_lists(one, other, equal_nodes)),
    pair(several, _single, lambda one, other: equal_to_one(one, other, equal_nodes)),
    either(approximation, equal_approximations),
    either(in_base, equal_bases),
    _or_value(congruence, equal_congruences, equal_to_residue),
    either(equation, _equal_equations),
    both(of_type(*_MEASURED), equal_quantities),
    both(of_type(Choice), equal_choices),
    both(of_type(Matrix), _equal_matrices),
    both(components, _equal_items),
    pair(_list_of_values, components, _equal_row),
    surely(both(inequality, _equal_inequalities)),
    either(reals, _equal_sets),
    both(inequality, _equal_inequalities),
    both(of_type(NamedSet), operator.eq),
)
"""The first row that applies to two answers decides. Two different types of `_KNOWN` without a row are not equal."""
