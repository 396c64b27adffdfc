"""Compare two answers with a table, `COMPARISONS`, whose rows compare answers of certain types.

To add a type, write a module with its class (a `Structure` of `reading.syntax`), its parser and its comparison. Add the
parser to the readers in `reading.readings`, and the rows to the table.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product
from typing import Any, get_args

from rewardstack_verifier.comparison.approximations import as_approximation, equal_approximations
from rewardstack_verifier.comparison.equations import (
    as_equation,
    equal_equations,
    equal_to_value,
    is_curve,
    last_equation,
    relates_powers,
)
from rewardstack_verifier.comparison.families import are_formulas, as_progressions, equal_progressions, is_solution
from rewardstack_verifier.comparison.integers import (
    as_based_number,
    as_congruence,
    equal_bases,
    equal_congruences,
    equal_to_residue,
)
from rewardstack_verifier.comparison.intervals import (
    Reals,
    as_inequality,
    as_members,
    as_reals,
    equal_inequalities,
    equal_reals,
)
from rewardstack_verifier.comparison.lines import as_line, equal_lines
from rewardstack_verifier.comparison.lists import as_list, equal_lists, equal_to_one
from rewardstack_verifier.comparison.quantities import (
    equal_by_noun,
    equal_quantities,
    have_different_names,
    stated_value,
)
from rewardstack_verifier.comparison.ratios import as_ratio, equal_ratio_and_value, equal_ratios
from rewardstack_verifier.comparison.values import all_of
from rewardstack_verifier.comparison.vectors import as_components, strip_names
from rewardstack_verifier.comparison.wording import equal_choice_and_value, equal_choices, equal_in_words
from rewardstack_verifier.numbers.tree import Expression, Number, Symbol, symbols
from rewardstack_verifier.reading.operators import unevaluated_operators
from rewardstack_verifier.reading.readings import parse_readings, parse_with_decimal_comma
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
    SetFormula,
    Time,
    Total,
    Words,
    is_expression,
)
from rewardstack_verifier.stack import with_fresh_stack
from rewardstack_verifier.tracing import trace

DECIDING = {Choice, Time}
"""Types that exclude other readings.

If the first readings of both texts have the same type, and the type is one of these, only the first readings are
compared. This also holds if one of the texts is a date, so `15 March` is not 15.
"""
Convert = Callable[[Node], Any]
"""Converts an answer to one type; returns None or an empty value if the answer has another type."""
Row = Callable[[Node, Node], "list[bool | None]"]
"""Compares an answer with its reference; returns a list of one verdict, or an empty list if the row does not apply."""
_WORDED = (Words, Remark, Time, Date)
_MEASURED = (*get_args(Expression), Quantity, Total)
_COMPOUND = (Relation, Sequence, Matrix, NamedSet, Combination)
_KNOWN = {Number, *_COMPOUND}
"""Two nodes of different types in this set are not equal if no row applies to them.

In the set, `Number` represents all types of `_MEASURED`.
"""


@with_fresh_stack
def compare(answer: str, reference: str) -> bool | None:
    """Return whether an answer equals its reference by value.

    Args:
        answer: text of the answer; `bounds.refusal` must accept it.
        reference: text of the reference; `bounds.refusal` must accept it.

    Returns:
        True if a reading of the answer equals a reading of the reference; None if no two readings can be compared;
        otherwise False. An answer with an unevaluated operator, such as an integral, is wrong if the reference does not
        have this operator.
    """
    if unevaluated_operators(answer) - unevaluated_operators(reference):
        trace("values")
        return False
    answer_readings = parse_readings(answer) + parse_with_decimal_comma(answer)
    reference_readings = parse_readings(reference) + parse_with_decimal_comma(reference, must_be_certain=True)
    first = {type(readings[0]) for readings in (answer_readings, reference_readings) if readings}
    if Date in first or (len(first) == 1 and first <= DECIDING):
        answer_readings, reference_readings = answer_readings[:1], reference_readings[:1]
    is_compared = is_equal = False
    for one, other in product(answer_readings, reference_readings):
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
        None if it is unknown whether they are equal, or if their types cannot be compared.
    """
    if answer == reference and not _is_clock(answer):
        return True
    if _has_remainder(answer) or _has_remainder(reference):
        return False
    answer, reference = strip_names(*(_drop_steps(last_equation(one)) for one in (answer, reference)))
    if isinstance(answer, Choice) and not isinstance(reference, Choice):
        return equal_choice_and_value(answer, reference, equal_nodes)
    if isinstance(reference, Choice) and not isinstance(answer, Choice):
        return equal_choice_and_value(reference, answer, equal_nodes)
    if isinstance(answer, _WORDED) or isinstance(reference, _WORDED):
        return equal_in_words(answer, reference)
    if have_different_names(answer, reference):
        return False
    one, other = stated_value(answer, reference), stated_value(reference, answer)
    if one is None or other is None:
        return False  # the statement is inconsistent
    return _compare_by_table(_drop_name(one, other), _drop_name(other, one))


def _drop_steps(node: Node) -> Node:
    """Reduce a chain `a = ... = z` to `a = z` if z is a point, set or matrix.

    The chain is unchanged if a side between `a` and `z` has the type of `z`, but does not equal `z`.
    """
    if not isinstance(node, Relation) or len(node.sides) < 3 or set(node.operators) != {"="} or node.modulus:
        return node
    first, *steps, last = node.sides
    if not isinstance(last, _COMPOUND) or not all(equal_nodes(one, last) for one in steps if type(one) is type(last)):
        return node
    return Relation(("=",), (first, last))


def _compare_by_table(answer: Node, reference: Node) -> bool | None:
    for row in COMPARISONS:
        for verdict in row(answer, reference):
            return verdict
    types = {_comparable_type(answer), _comparable_type(reference)}
    return False if types <= _KNOWN and len(types) == 2 else None


def same_type_row(convert: Convert, equal: Callable[[Any, Any], bool | None]) -> Row:
    """Return a row for two answers of the same type."""

    def row(answer: Node, reference: Node) -> list[bool | None]:
        one = convert(answer)
        other = convert(reference) if one else None
        return [equal(one, other)] if one and other else []

    return row


def two_types_row(convert: Convert, convert_other: Convert, equal: Callable[[Any, Any], bool | None]) -> Row:
    """Return a row for answers of two types, in either order; `equal` gets the answer of the first type first."""

    def row(answer: Node, reference: Node) -> list[bool | None]:
        for first, second in ((answer, reference), (reference, answer)):
            one = convert(first)
            other = convert_other(second) if one else None
            if one and other:
                return [equal(one, other)]
        return []

    return row


def any_type_row(convert: Convert, equal: Callable[[Node, Node], bool | None]) -> Row:
    """Return a row for two answers, at least one of which `convert` accepts; `equal` gets both unconverted."""
    return lambda answer, reference: [equal(answer, reference)] if convert(answer) or convert(reference) else []


def if_equal_row(row: Row) -> Row:
    """Return a row that applies only if `row` finds the answers equal."""
    return lambda answer, reference: [verdict for verdict in row(answer, reference) if verdict]


def accept_types(*types: type[Node]) -> Convert:
    """Return a conversion that accepts nodes of these types."""
    return lambda node: node if isinstance(node, types) else None


def _or_value_row(
    convert: Convert, equal: Callable[[Any, Any], bool | None], to_value: Callable[[Any, Any], bool | None]
) -> Row:
    """Return a row that compares two answers of one type, or one answer of this type with a value.

    The row applies if at least one node has this type. If the other node has a different type and is not a value, the
    verdict is None.
    """
    rows = (
        same_type_row(convert, equal),
        two_types_row(convert, _as_value, to_value),
        any_type_row(convert, _no_verdict),
    )
    return lambda answer, reference: next((verdicts for row in rows if (verdicts := row(answer, reference))), [])


def _no_verdict(answer: Node, reference: Node) -> None:
    """Return None: the two nodes are not compared."""


def _as_value(node: Node) -> Node | None:
    return node if is_expression(node) else None


def _as_single_value(node: Node) -> Node | None:
    """Return a node if it is a single value (an expression, quantity or equation); None otherwise."""
    return node if is_expression(node) or isinstance(node, Quantity) or as_equation(node) else None


def _list_as_reals(node: Node) -> Reals | None:
    """Return a list as a set of real numbers; None if it does not describe a set of real numbers."""
    return as_reals(node) if as_list(node) else None


def _as_list_of_values(node: Node) -> Sequence | None:
    """Return a list that does not describe a set of real numbers; None otherwise."""
    items = as_list(node)
    return items if items and not as_reals(items) else None


def _drop_name(node: Node, other: Node) -> Node:
    """Return only the value of `\\angle A = 30^\\circ` if the other answer is a value without a name.

    The node is unchanged if its name also occurs in its value or in the other answer, or if it is a family of solutions
    (`x = n\\pi`) to compare with an expression. Other nodes are also unchanged.
    """
    if not (isinstance(node, Relation) and node.operators == ("=",) and isinstance(other, _MEASURED)):
        return node
    if is_expression(other) and is_solution(node):
        return node
    name, value = node.sides
    if not (isinstance(name, Symbol) and is_expression(value)):
        return node
    return node if name.name in symbols(value, *_expressions(other)) else value


def _expressions(node: Node) -> tuple[Expression, ...]:
    return (node,) if is_expression(node) else ()


def _compare_progressions(answer: Node, reference: Node) -> list[bool | None]:
    """Compare two families of values with an integer parameter, unless they are formulas with the same letters."""
    if are_formulas(answer, reference) or (as_congruence(answer) and as_congruence(reference)):
        return []
    return same_type_row(as_progressions, equal_progressions)(answer, reference)


def _equal_families(answer: Node, reference: Node) -> bool | None:
    """Compare two families of values. Families with different domains are not equal.

    The result is None if only one node is a family, or if the parameters have different names.
    """
    if not (isinstance(answer, Family) and isinstance(reference, Family)):
        return None
    if answer.domain != reference.domain:
        return False
    return equal_nodes(answer.of, reference.of) if answer.parameter == reference.parameter else None


def _equal_equations(answer: Node, reference: Node) -> bool | None:
    """Compare two equations, or an equation and a value; an equation never equals a list, matrix or set."""
    one, other = as_equation(answer), as_equation(reference)
    if one and other:
        return equal_equations(one, other)
    if one and is_expression(reference):
        return equal_to_value(one, reference)
    if other and is_expression(answer):
        return not (is_curve(other) or relates_powers(other, answer)) and equal_to_value(other, answer)
    return False if isinstance(answer, _COMPOUND) and isinstance(reference, _COMPOUND) else None


def _compare_counted_nouns(answer: Node, reference: Node) -> list[bool | None]:
    """Compare two lists that count nouns: `5 boys and 6 girls`."""
    if not (isinstance(answer, Sequence) and isinstance(reference, Sequence)):
        return []
    one, other = as_list(answer), as_list(reference)
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


def _equal_named_sets(answer: NamedSet, reference: NamedSet) -> bool:
    """Compare two named sets; the natural numbers may begin with 0 or 1."""
    return answer == reference or {answer.name, reference.name} in ({"N", "Z+"}, {"N", "N*"})


def _equal_sets(answer: Node, reference: Node) -> bool | None:
    """Compare two sets of real numbers, one of which may be a list of its members."""
    one, other = as_reals(answer) or as_members(answer), as_reals(reference) or as_members(reference)
    plain = is_expression(answer) or is_expression(reference)
    return equal_reals(one, other) if one and other and not plain else False


def _is_clock(node: Node) -> bool:
    """Return whether a node may be a time of day, for which `10:05` and `10:5` are different."""
    return isinstance(node, Sequence) and ":" in node.joined


def _has_remainder(node: Node) -> bool:
    """Return whether a node is a quotient with a remainder."""
    return isinstance(node, Sequence) and node.joined == ("remainder",)


def _comparable_type(node: Node) -> type[Node] | None:
    return Number if isinstance(node, _MEASURED) else type(node)


COMPARISONS: tuple[Row, ...] = (
    _compare_progressions,
    same_type_row(as_line, equal_lines),
    any_type_row(accept_types(Family), _equal_families),
    _or_value_row(as_ratio, equal_ratios, equal_ratio_and_value),
    same_type_row(_list_as_reals, equal_reals),
    _compare_counted_nouns,
    same_type_row(as_list, lambda one, other: equal_lists(one, other, equal_nodes)),
    two_types_row(as_list, _as_single_value, lambda one, other: equal_to_one(one, other, equal_nodes)),
    any_type_row(as_approximation, equal_approximations),
    any_type_row(as_based_number, equal_bases),
    _or_value_row(as_congruence, equal_congruences, equal_to_residue),
    any_type_row(as_equation, _equal_equations),
    same_type_row(accept_types(*_MEASURED), equal_quantities),
    same_type_row(accept_types(Choice), equal_choices),
    same_type_row(accept_types(Matrix), _equal_matrices),
    same_type_row(as_components, _equal_items),
    two_types_row(_as_list_of_values, as_components, _equal_row),
    if_equal_row(same_type_row(as_inequality, _equal_inequalities)),
    any_type_row(as_reals, _equal_sets),
    same_type_row(as_inequality, _equal_inequalities),
    same_type_row(accept_types(NamedSet), _equal_named_sets),
    same_type_row(accept_types(SetFormula), operator.eq),
)
"""The rows in order; the first that applies decides.

If none applies, nodes of two different types in `_KNOWN` are not equal.
"""
