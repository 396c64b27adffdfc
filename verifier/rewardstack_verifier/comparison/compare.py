"""Whether two answers are equal: `compare`, by a table of what compares two by pair of types.

A new type has a file of its own, with a class (a `Structure` of `reading.syntax`), what reads it and what compares two
of it, and its rows here.
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
from rewardstack_verifier.comparison.wording import equal_choice_and_value, equal_choices, equal_said
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
from rewardstack_verifier.trail import tell

DECIDING = (Choice, Time, Date)
"""What both texts may be, they are."""
Form = Callable[[Node], Any]
"""What an answer is as one type; nothing, or None, where it is of another."""
Row = Callable[[Node, Node], "list[bool | None]"]
"""The verdict on an answer and its reference; empty where they are not of the types that the row compares."""
_SAID = (Words, Remark, Time, Date)
_MEASURED = (*get_args(Expression), Quantity, Total)
_PARTED = (Relation, Sequence, Matrix, NamedSet, Combination)
_KNOWN = {Number, *_PARTED}
"""Types of which no two are the same."""


@on_any_stack
def compare(answer: str, reference: str) -> bool | None:
    """Whether an answer is the reference, by their values.

    Args:
        answer: within the bounds.
        reference: within the bounds.

    Returns:
        Whether any reading of one equals one of the other; None where no two are compared. Work that the reference does
        not leave undone is none that an answer may.
    """
    if undone(answer) - undone(reference):
        tell("values")
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
        tell("values")
    return is_equal if is_compared else None


def equal_nodes(answer: Node, reference: Node) -> bool | None:
    """Whether two answers are equal, by their types.

    Args:
        answer: as it is read.
        reference: the same.

    Returns:
        None where that is not for their values alone to say, or their types are not compared here.
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
    if isinstance(answer, _SAID) or isinstance(reference, _SAID):
        return equal_said(answer, reference)
    if names_differ(answer, reference):
        return False
    one, other = value_stated(answer, reference), value_stated(reference, answer)
    if one is None or other is None:
        return False  # what is stated contradicts itself
    return _by_table(_without_letter(one, other), _without_letter(other, one))


def _without_steps(node: Node) -> Node:
    """The first and last side of a chain that ends with a point, set or matrix, where those of its type are equal."""
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
    """A row of two answers of one type."""

    def row(answer: Node, reference: Node) -> list[bool | None]:
        one = form(answer)
        other = form(reference) if one else None
        return [equal(one, other)] if one and other else []

    return row


def pair(form: Form, other_form: Form, equal: Callable[[Any, Any], bool | None]) -> Row:
    """A row of an answer of one type and a reference of another, or the other way round; `equal` has them as named."""

    def row(answer: Node, reference: Node) -> list[bool | None]:
        for first, second in ((answer, reference), (reference, answer)):
            one = form(first)
            other = other_form(second) if one else None
            if one and other:
                return [equal(one, other)]
        return []

    return row


def either(form: Form, equal: Callable[[Node, Node], bool | None]) -> Row:
    """A row of an answer and a reference one of which at least is of a type; `equal` has the answer first."""
    return lambda answer, reference: [equal(answer, reference)] if form(answer) or form(reference) else []


def surely(row: Row) -> Row:
    """A row that decides only where its answers are equal."""
    return lambda answer, reference: [found for found in row(answer, reference) if found]


def of_type(*types: type[Node]) -> Form:
    """The form of what belongs to some types."""
    return lambda node: node if isinstance(node, types) else None


def _or_value(form: Form, equal: Callable[[Any, Any], bool | None], to_value: Callable[[Any, Any], bool | None]) -> Row:
    """A row of two answers of one type, or one such and a value; beside anything else it stays open."""
    rows = (both(form, equal), pair(form, _value, to_value), either(form, _open))
    return lambda answer, reference: next((found for row in rows if (found := row(answer, reference))), [])


def _open(answer: Node, reference: Node) -> None:
    """No verdict."""


def _value(node: Node) -> Node | None:
    return node if is_expression(node) else None


def _single(node: Node) -> Node | None:
    """One value, beside a list."""
    return node if is_expression(node) or isinstance(node, Quantity) or equation(node) else None


def _listed_reals(node: Node) -> Reals | None:
    """A list that is a set of real numbers."""
    return reals(node) if several(node) else None


def _list_of_values(node: Node) -> Sequence | None:
    """A list that is no set of real numbers."""
    found = several(node)
    return found if found and not reals(found) else None


def _without_letter(node: Node, other: Node) -> Node:
    """The value of `\\angle A = 30^\\circ`, beside a value that has no name."""
    if not (isinstance(node, Relation) and node.operators == ("=",) and isinstance(other, _MEASURED)):
        return node
    name, value = node.sides
    if not (isinstance(name, Symbol) and is_expression(value)):
        return node
    return node if name.name in symbols(value, *_expressions(other)) else value


def _expressions(node: Node) -> tuple[Expression, ...]:
    return (node,) if is_expression(node) else ()


def _equal_families(answer: Node, reference: Node) -> bool | None:
    """What holds for each member of a set: one that is said of none holds for no set of numbers."""
    if not (isinstance(answer, Family) and isinstance(reference, Family)):
        return None
    if answer.domain != reference.domain:
        return False
    return equal_nodes(answer.of, reference.of) if answer.parameter == reference.parameter else None


def _equal_equations(answer: Node, reference: Node) -> bool | None:
    """Two equations, or one and a value; beside an answer with parts it is another."""
    one, other = equation(answer), equation(reference)
    if one and other:
        return equal_equations(one, other)
    if one and is_expression(reference):
        return equal_to_value(one, reference)
    if other and is_expression(answer):
        return not is_curve(other) and equal_to_value(other, answer)
    return False if isinstance(answer, _PARTED) and isinstance(reference, _PARTED) else None


def _counted(answer: Node, reference: Node) -> list[bool | None]:
    """The row of two lists that count the same nouns: `5 boys and 6 girls`."""
    if not (isinstance(answer, Sequence) and isinstance(reference, Sequence)):
        return []
    one, other = several(answer), several(reference)
    return equal_by_noun(one.items, other.items) if one and other else []


def _equal_items(answer: tuple[Node, ...], reference: tuple[Node, ...]) -> bool | None:
    return len(answer) == len(reference) and all_of(map(equal_nodes, answer, reference))


def _equal_row(list_: Sequence, vector: tuple[Node, ...]) -> bool | None:
    """A list of single values in order, as a point without its parentheses is, and a vector."""
    ordered = not list_.opening and set(list_.joined) <= {","} and all(map(is_expression, list_.items))
    return _equal_items(list_.items, vector) if ordered else False


def _equal_matrices(answer: Matrix, reference: Matrix) -> bool | None:
    """Two matrices of one shape."""
    return len(answer.rows) == len(reference.rows) and all_of(map(_equal_items, answer.rows, reference.rows))


def _equal_inequalities(answer: Relation, reference: Relation) -> bool | None:
    return equal_inequalities(answer, reference, equal_nodes)


def _equal_sets(answer: Node, reference: Node) -> bool | None:
    """Two sets of real numbers, of which one may list its members."""
    one, other = reals(answer) or members(answer), reals(reference) or members(reference)
    plain = is_expression(answer) or is_expression(reference)
    return equal_reals(one, other) if one and other and not plain else False


def _is_bracketed(node: Node) -> bool:
    return isinstance(node, Sequence) and node.opening == "("


def _is_clock(node: Node) -> bool:
    """Whether it may be a time of day, of which `10:05` and `10:5` are not the same."""
    return isinstance(node, Sequence) and ":" in node.joined


def _has_remainder(node: Node) -> bool:
    """Whether it is a quotient and what is left."""
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
"""The first row that compares two answers decides; two types that are known, and in no row together, are different."""
