"""Answers that have parts: points, intervals, sets, matrices, values with their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, get_args

from rewardstack_rules.mathematics.comparison.angles import equal_angles, in_degrees
from rewardstack_rules.mathematics.comparison.bases import equal_bases, in_base
from rewardstack_rules.mathematics.comparison.congruences import congruence, equal_congruences, equal_to_residue
from rewardstack_rules.mathematics.comparison.equations import (
    concluded,
    equal_approximation,
    equal_equations,
    equal_to_value,
    equation,
)
from rewardstack_rules.mathematics.comparison.families import equal_progressions, progressions
from rewardstack_rules.mathematics.comparison.intervals import equal_reals, members, reals
from rewardstack_rules.mathematics.comparison.lists import equal_lists, equal_to_one, several
from rewardstack_rules.mathematics.comparison.points import point, without_name
from rewardstack_rules.mathematics.comparison.quantities import (
    equal_percentages,
    equal_quantities,
    names_differ,
    percentage,
    value_stated,
)
from rewardstack_rules.mathematics.comparison.ratios import equal_ratio_and_value, equal_ratios, ratio
from rewardstack_rules.mathematics.comparison.vectors import components
from rewardstack_rules.mathematics.comparison.verdicts import all_of
from rewardstack_rules.mathematics.comparison.wording import (
    equal_choice_and_value,
    equal_choices,
    equal_said,
)
from rewardstack_rules.mathematics.numbers.tree import Expression, Number, Symbol, symbols
from rewardstack_rules.mathematics.reading.syntax import (
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

_SAID = (Words, Remark, Time, Date)
_MEASURED = (*get_args(Expression), Quantity, Total)

T = TypeVar("T")


def equal_nodes(answer: Node, reference: Node) -> bool | None:
    """Whether two answers are equal, by their types.

    Args:
        answer: as it is read.
        reference: likewise.

    Returns:
        None where that is not for their values alone to say, or their types are not compared here.
    """
    if answer == reference and not _is_clock(answer):
        return True
    if _has_remainder(answer) or _has_remainder(reference):
        return False
    answer, reference = without_name(concluded(answer)), without_name(concluded(reference))
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
    return _equal_stated(value_stated(answer, reference), value_stated(reference, answer))


def _equal_stated(answer: Node | None, reference: Node | None) -> bool | None:
    """Two answers that are neither letters nor words; none where what is stated contradicts itself."""
    if answer is None or reference is None:
        return False
    answer, reference = _without_letter(answer, reference), _without_letter(reference, answer)
    families = progressions(answer), progressions(reference)
    if families[0] and families[1]:
        return equal_progressions(families[0], families[1])
    if isinstance(answer, Family) or isinstance(reference, Family):
        return _equal_families(answer, reference)
    if ratio(answer) or ratio(reference):
        return _equal_ratios(answer, reference)
    lists = several(answer), several(reference)
    if lists[0] and lists[1]:
        one, other = reals(answer), reals(reference)
        if one and other:
            return equal_reals(one, other)
        return equal_lists(lists[0], lists[1], equal_nodes)
    for list_, value in ((lists[0], reference), (lists[1], answer)):
        if list_ and (is_expression(value) or isinstance(value, Quantity) or equation(value)):
            return equal_to_one(list_, value, equal_nodes)
    if isinstance(answer, Relation) and "~" in answer.operators:
        return equal_approximation(answer, reference) if is_expression(reference) else None
    if in_base(answer) or in_base(reference):
        return equal_bases(answer, reference)
    if congruence(answer) or congruence(reference):
        return _equal_congruences(answer, reference)
    if equation(answer) or equation(reference):
        if is_expression(answer) or is_expression(reference) or (equation(answer) and equation(reference)):
            return _equal_equations(answer, reference)
        return False if isinstance(answer, _PARTED) and isinstance(reference, _PARTED) else None
    if isinstance(answer, _MEASURED) and isinstance(reference, _MEASURED):
        return _equal_measured(answer, reference)
    return _equal_parted(answer, reference)


def _equal_parted(answer: Node, reference: Node) -> bool | None:
    """Two answers of which one at least has parts: of two types they are not the same, but where both are vectors."""
    if isinstance(answer, Choice) and isinstance(reference, Choice):
        return equal_choices(answer, reference)
    if isinstance(answer, Matrix) and isinstance(reference, Matrix):
        return _equal_matrices(answer, reference)
    vectors = components(answer), components(reference)
    if vectors[0] and vectors[1]:
        return _equal_items(vectors[0], vectors[1])
    lists = several(answer), several(reference)
    for list_, vector in ((lists[0], vectors[1]), (lists[1], vectors[0])):
        if list_ and vector and not reals(list_):
            return _equal_items(list_.items, vector) if _is_row(list_) else False
    relations = _rightwards(answer), _rightwards(reference)
    if relations[0] and relations[1] and _equal_relations(relations[0], relations[1]):
        return True
    one, other = reals(answer), reals(reference)
    if one or other:
        one, other = one or members(answer), other or members(reference)
        plain = is_expression(answer) or is_expression(reference)
        return equal_reals(one, other) if one and other and not plain else False
    if relations[0] and relations[1]:
        return _equal_relations(relations[0], relations[1])
    if isinstance(answer, NamedSet) and isinstance(reference, NamedSet):
        return answer == reference
    return False if {_kind(answer), _kind(reference)} <= _KNOWN and _kind(answer) != _kind(reference) else None


def _without_letter(node: Node, other: Node) -> Node:
    """The value of `\\angle A = 30^\\circ`, beside a value that has no name."""
    if not (isinstance(node, Relation) and node.operators == ("=",) and isinstance(other, _MEASURED)):
        return node
    name, value = node.sides
    named = isinstance(name, Symbol) and is_expression(value) and name.name not in symbols(value, *_expressions(other))
    return value if named else node


def _expressions(node: Node) -> tuple[Expression, ...]:
    return (node,) if is_expression(node) else ()


def _equal_families(answer: Node, reference: Node) -> bool | None:
    """What holds for each member of a set: one that is said of none holds for no set of numbers."""
    if not (isinstance(answer, Family) and isinstance(reference, Family)):
        return None
    if answer.domain != reference.domain:
        return False
    return equal_nodes(answer.of, reference.of) if answer.parameter == reference.parameter else None


def _equal_measured(answer: Node, reference: Node) -> bool | None:
    """Two values, or quantities; percentages and angles have rules of their own."""
    if is_expression(answer) and is_expression(reference):
        if percentage(answer) or percentage(reference):
            return equal_percentages(answer, reference)
        if in_degrees(answer) or in_degrees(reference):
            return equal_angles(answer, reference)
    return equal_quantities(answer, reference)


def _either(
    form: Callable[[Node], T | None], both: Callable[[T, T], bool | None], value: Callable[[T, Expression], bool | None]
) -> Callable[[Node, Node], bool | None]:
    """Compares two nodes of one form, or one such and a value."""

    def compare(answer: Node, reference: Node) -> bool | None:
        one, other = form(answer), form(reference)
        if one is not None and other is not None:
            return both(one, other)
        if one is not None and is_expression(reference):
            return value(one, reference)
        return value(other, answer) if other is not None and is_expression(answer) else None

    return compare


_equal_equations = _either(equation, equal_equations, equal_to_value)
_equal_congruences = _either(congruence, equal_congruences, equal_to_residue)
_equal_ratios = _either(ratio, equal_ratios, equal_ratio_and_value)


def _is_bracketed(node: Node) -> bool:
    return isinstance(node, Sequence) and node.opening == "("


def _is_clock(node: Node) -> bool:
    """Whether it may be a time of day, of which `10:05` and `10:5` are not the same."""
    return isinstance(node, Sequence) and ":" in node.joined


def _has_remainder(node: Node) -> bool:
    """Whether it is a quotient and what is left."""
    return isinstance(node, Sequence) and node.joined == ("remainder",)


def _is_row(list_: Sequence) -> bool:
    """Whether a list has single values in order, as a point without its parentheses has."""
    return not list_.opening and set(list_.joined) <= {","} and all(map(is_expression, list_.items))


def _equal_items(answer: tuple[Node, ...], reference: tuple[Node, ...]) -> bool | None:
    return len(answer) == len(reference) and all_of(map(equal_nodes, answer, reference))


def _equal_matrices(answer: Matrix, reference: Matrix) -> bool | None:
    """Two matrices of one shape."""
    return len(answer.rows) == len(reference.rows) and all_of(map(_equal_items, answer.rows, reference.rows))


def _rightwards(node: Node) -> Relation | None:
    """An inequality whose larger side stands on its right; None where it is none."""
    if not isinstance(node, Relation) or not set(node.operators) <= {*_TURNED, *_TURNED.values()}:
        return None
    if set(node.operators) & set(_TURNED):
        return Relation(tuple(_TURNED.get(one, "") for one in node.operators[::-1]), node.sides[::-1])
    return node


def _equal_relations(answer: Relation, reference: Relation) -> bool | None:
    if answer.operators != reference.operators:
        return False
    return True if _equal_items(answer.sides, reference.sides) else None


def _kind(node: Node) -> type[Node] | None:
    return Number if isinstance(node, _MEASURED) else type(node)


_PARTED = (Relation, Sequence, Matrix, NamedSet, Combination)
_TURNED = {">": "<", ">=": "<="}
_KNOWN = {Number, *_PARTED}
"""Types of which no two are the same."""
