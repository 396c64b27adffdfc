"""Whether two answers are equal: structure first, then words, numbers, and for the rest math_verify."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import chain

from rewardstack_rules.mathematics import (
    algebra,
    angles,
    equations,
    exact,
    names,
    signs,
    single,
    symbolic,
)
from rewardstack_rules.mathematics.bounds import MAX_ITEMS
from rewardstack_rules.mathematics.intervals import as_intervals, as_union, condition, is_intervals
from rewardstack_rules.mathematics.matrices import Cells, cells
from rewardstack_rules.mathematics.notation import squeeze, tidy
from rewardstack_rules.mathematics.structure import Group, group

_RELATION = re.compile(r"[<>]|\\(?:[lg]eq?|in|cup|mathbb|infty|R)(?![A-Za-z])")
_INEQUALITY = re.compile(r"[<>]|\\(?:[lg]eq?|ne)(?![A-Za-z])")
_CHOICE, _CHOICES = re.compile(r"[A-H]"), re.compile(r"[A-H]{2,8}")
_DECIMAL_COMMA = re.compile(r"([+-]?\d+),(\d+)")


def equal(answer: str, reference: str) -> bool:
    """Whether an answer is the reference, in whatever form.

    Args:
        answer: within the bounds.
        reference: within the bounds.
    """
    if angles.mixes_units(answer, reference):
        return _equal_angles(answer, reference)
    one, other = tidy(answer), tidy(reference)
    if _equal(one, other):
        return True
    if "," in answer and "," in reference:
        # `100,200` may be a list as well as a number, but not one here and the other there.
        separate = tidy(answer, thousands=False), tidy(reference, thousands=False)
        if separate != (one, other) and _equal(*separate):
            return True
    return _equal_angles(answer, reference)


def _equal_angles(answer: str, reference: str) -> bool:
    """Degrees for radians, or the other way round."""
    one, other = angles.in_degrees(answer, reference), angles.in_degrees(reference, answer)
    return (one or other) is not None and _equal(tidy(one or answer), tidy(other or reference))


def _equal(one: str, other: str) -> bool:
    """Tidied answer and reference; a reference in several parts is compared part by part."""
    if squeeze(one) == squeeze(other):
        return True
    one, other = _with_one_parameter(one, other)
    one, other = names.without_names(names.result(condition(one)), names.result(condition(other)))
    one, other = _in_one_form(one, other)
    if "\\approx" in one and "\\approx" not in other:
        return _equal_approximation(one, other)
    if signs.has_both(one) or signs.has_both(other):
        return _equal_in_any_order(signs.written_out(one), signs.written_out(other))
    if names.is_equation(one) and "=" not in other:
        return _is_identity(one) and _equal(one.rpartition("=")[2].strip(), other)
    answer, reference = group(one), group(other)
    if (answer is None) != (reference is None):
        one, other = names.spread(one), names.spread(other)
        answer, reference = group(one), group(other)
    if answer is None and "=" in one and "=" not in other and not _INEQUALITY.search(one):
        if equations.contradict(one):
            return False
        one = one.rpartition("=")[2].strip()
    if answer is None and reference is None:
        return _equal_single(one, other)
    if answer is not None and reference is not None:
        return _equal_solutions(answer, reference)
    if answer is not None:
        return _equal_to_one(one, other, answer)
    # `3,5` asks for two numbers: only `0,5` cannot.
    return (other[:2] == "0," or not _DECIMAL_COMMA.fullmatch(other)) and _equal_to_one(other, one, reference)


def _is_identity(equation: str) -> bool:
    """Whether both ends of a chain of equations are the same whatever its letters are."""
    first, *_, last = equation.split("=")
    same = algebra.equal(first, last)
    return (symbolic.value(first) is not None and symbolic.equal(first, last)) if same is None else same


def _with_one_parameter(one: str, other: str) -> tuple[str, str]:
    """`k\\pi, k \\in \\mathbb{Z}` and `n\\pi, n \\in \\mathbb{Z}` with the same letter."""
    if "\\in" not in one + other:
        return names.with_the_same_multiple(one, other), other
    (found, letter), (expected, wanted) = names.without_parameter(one), names.without_parameter(other)
    return names.renamed(found, letter, wanted) if letter and letter != wanted and wanted else found, expected


def _equal_to_one(text: str, one: str, several: Group | None) -> bool:
    """Whether several things, which `text` is, are one."""
    assert several is not None
    if several.brackets == "{}" and len(several.items) == 1 and not _is_set(several.items[0]):
        return _equal(several.items[0], one)
    decimal = _DECIMAL_COMMA.fullmatch(text)
    if decimal is not None:
        return _equal_single(f"{decimal[1]}.{decimal[2]}", one)
    if several.joined == "or" and not several.brackets and all(_equal(item, one) for item in several.items):
        return True
    if _CHOICES.fullmatch(one) and all(map(_CHOICE.fullmatch, several.items)):
        return sorted(several.items) == sorted(one)
    if len(several.items) == 2 and several.joined and not several.brackets:
        whole, part = map(exact.number, several.items)
        number = exact.number(one)
        if whole is not None and part is not None and number is not None and whole.value.denominator == 1:
            return 0 < part.value < 1 <= whole.value and number.value == whole.value + part.value
    if several.brackets not in ("", "{}") and len(several.items) == 2 and _RELATION.search(one):
        return symbolic.equal(text, one)
    return False


def _is_set(text: str) -> bool:
    return text.startswith(("\\{", "\\emptyset"))


def _in_one_form(one: str, other: str) -> tuple[str, str]:
    """An inequality as an interval where the other is one, a point without its letter where the other is a point."""
    one, other = as_union(one), as_union(other)
    intervals, expected = as_intervals(one), as_intervals(other)
    if intervals is not None and expected is not None and intervals.variable == expected.variable:
        return intervals.text, expected.text
    if intervals is not None and expected is None and is_intervals(other):
        return intervals.text, other
    if expected is not None and intervals is None and is_intervals(one):
        return one, expected.text
    return names.without_point(one), names.without_point(other)


def _equal_approximation(one: str, other: str) -> bool:
    """`1/3 \\approx 0.33` for 1/3, and for 0.33, which it is to two digits."""
    value, rounded = (side.strip() for side in one.rsplit("\\approx", 1))
    number, computed = exact.number(rounded), symbolic.value(value)
    if number is None or computed is None:
        return _equal(value, other)
    place = Fraction(1, 10 ** len(rounded.partition(".")[2]))
    distance = abs(Fraction(str(computed)) - number.value)
    if distance < place and _equal(value, other):
        return True
    return distance <= place / 2 and _equal(rounded, other)


def _equal_solutions(answer: Group, reference: Group) -> bool:
    """Two groups; solutions without the name of their unknown, unless each has its own."""
    unknown, expected = names.unknown(answer), names.unknown(reference)
    if unknown and expected and unknown != expected:
        return False
    return _equal_groups(names.solutions(answer), names.solutions(reference))


def _equal_groups(answer: Group, reference: Group) -> bool:
    if len(answer.items) != len(reference.items) or len(answer.items) > MAX_ITEMS:
        return False
    if {answer.joined, reference.joined} == {"and", "or"} and all(map(str.isalpha, answer.items)):
        return False  # `p \\land q` and `p \\lor q`
    if any(item[:2] == "\\{" for item in answer.items) != any(item[:2] == "\\{" for item in reference.items):
        return False
    pointed = _equal_coordinates(answer, reference)
    if pointed is not None:
        return pointed
    kinds = {answer.brackets, reference.brackets}
    if kinds <= {"", "{}"}:
        if answer.unordered or reference.unordered:
            return _equal_in_any_order(answer.items, reference.items)
    elif "{}" in kinds or (len(kinds) == 2 and not _interchangeable(kinds, len(answer.items))):
        return False
    return all(_equal(one, other) for one, other in zip(answer.items, reference.items, strict=True))


def _equal_coordinates(answer: Group, reference: Group) -> bool | None:
    """`x = 1, y = 2` for (1, 2), or the other way round; None where not exactly one of both names its values."""
    for named, bare in ((answer, reference), (reference, answer)):
        point = names.coordinates(named)
        if point is None or any("=" in item for item in bare.items):
            continue
        if bare.brackets not in ("", "()"):
            return False
        bare = bare._replace(brackets="()")
        # A reference lists its values in the order that was asked for.
        written = names.coordinates(named, ordered=False) if named is reference else None
        return _equal_groups(point, bare) or (written is not None and _equal_groups(written, bare))
    return None


def _interchangeable(kinds: set[str], length: int) -> bool:
    """Whether tuples in these brackets mean the same: two numbers in square brackets are an interval."""
    return kinds == {"", "()"} or (length > 2 and kinds <= {"", "()", "[]"})


def _equal_in_any_order(items: Sequence[str], others: Sequence[str]) -> bool:
    if len(items) != len(others):
        return False
    left = list(others)
    for item in items:
        match = next((index for index, other in enumerate(left) if _equal(item, other)), None)
        if match is None:
            return False
        del left[match]
    return True


def _equal_single(one: str, other: str) -> bool:
    """Neither is a group."""
    rows, expected_rows = cells(one), cells(other)
    if rows is not None and expected_rows is not None:
        return _equal_cells(rows, expected_rows)
    return single.equal(one, other)


def _equal_cells(rows: Cells, expected: Cells) -> bool:
    if [len(row) for row in rows] != [len(row) for row in expected]:
        return False
    pairs = zip(chain.from_iterable(rows), chain.from_iterable(expected), strict=True)
    return all(_equal(cell, other) for cell, other in pairs)
