"""Answers that have parts: points, intervals, sets, matrices, values with their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, get_args

from rewardstack_rules.mathematics.comparison.angles import equal_angles, in_degrees
from rewardstack_rules.mathematics.comparison.equations import (
    equal_approximation,
    equal_equations,
    equal_to_value,
    equation,
)
from rewardstack_rules.mathematics.comparison.families import equal_progressions, progressions
from rewardstack_rules.mathematics.comparison.intervals import equal_reals, reals
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
from rewardstack_rules.mathematics.comparison.verdicts import all_of
from rewardstack_rules.mathematics.comparison.wording import (
    equal_choice_and_value,
    equal_choices,
    equal_said,
)
from rewardstack_rules.mathematics.numbers.tree import Expression, Symbol, symbols
from rewardstack_rules.mathematics.reading.syntax import (
    Choice,
    Date,
    Family,
    Matrix,
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
    answer, reference = without_name(answer), without_name(reference)
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
        return equal_lists(lists[0], lists[1], equal_nodes)
    if lists[0] and (is_expression(reference) or isinstance(reference, Quantity)) and not lists[1]:
        return equal_to_one(lists[0], reference, equal_nodes)
    if lists[1] and isinstance(answer, Quantity):
        return False
    if isinstance(answer, Relation) and "~" in answer.operators:
        return equal_approximation(answer, reference) if is_expression(reference) else None
    if equation(answer) or equation(reference):
        return _equal_equations(answer, reference)
    if isinstance(answer, _MEASURED) and isinstance(reference, _MEASURED):
        return _equal_measured(answer, reference)
    for kind, compare in _TABLE.items():
        if isinstance(answer, kind) and isinstance(reference, kind):
            return compare(answer, reference)
    one, other = reals(answer), reals(reference)
    return equal_reals(one, other) if one and other else None


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
_equal_ratios = _either(ratio, equal_ratios, equal_ratio_and_value)


def _is_bracketed(node: Node) -> bool:
    return isinstance(node, Sequence) and node.opening == "("


def _is_clock(node: Node) -> bool:
    """Whether it may be a time of day, of which `10:05` and `10:5` are not the same."""
    return isinstance(node, Sequence) and ":" in node.joined


def _equal_sequences(answer: Sequence, reference: Sequence) -> bool | None:
    """Two points or intervals in the same brackets, of as many items."""
    brackets = (answer.opening, answer.closing) == (reference.opening, reference.closing)
    if not brackets or len(answer.items) != len(reference.items) or _is_clock(answer) or _is_clock(reference):
        return None
    return all_of(map(equal_nodes, answer.items, reference.items)) if answer.opening in ("(", "[") else None


def _equal_matrices(answer: Matrix, reference: Matrix) -> bool | None:
    if [len(row) for row in answer.rows] != [len(row) for row in reference.rows]:
        return None
    entries = zip(answer.rows, reference.rows, strict=True)
    return all_of(equal_nodes(one, other) for row, asked in entries for one, other in zip(row, asked, strict=True))


_TABLE: dict[type[Node], Callable[..., bool | None]] = {
    Sequence: _equal_sequences,
    Matrix: _equal_matrices,
    Choice: equal_choices,
}
"""By the type of both; what is of two types is compared by its text."""
