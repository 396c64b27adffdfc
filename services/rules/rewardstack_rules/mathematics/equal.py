"""Whether two answers are equal: structure first, then words, numbers, and for the rest math_verify."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import chain

from rewardstack_rules.mathematics import algebra, exact, names, symbolic, words
from rewardstack_rules.mathematics.bounds import MAX_ITEMS
from rewardstack_rules.mathematics.intervals import as_intervals, condition, is_intervals
from rewardstack_rules.mathematics.matrices import Cells, cells
from rewardstack_rules.mathematics.notation import squeeze, tidy
from rewardstack_rules.mathematics.structure import Group, group
from rewardstack_rules.mathematics.units import measure, units_differ

_RELATION = re.compile(r"[<>]|\\(?:[lg]eq?|in|cup|mathbb|infty|R)(?![A-Za-z])")
_BASED = re.compile(r"\(?([0-9A-F]+)\)?\s*_\s*(?:\{?\(?(\d+)\)?\}?|\{?\s*\\text\{\s*(\w+)\s*\}\s*\}?)")
_DECIMAL_COMMA = re.compile(r"([+-]?\d+),(\d+)")
_LETTER = re.compile(r"[A-Za-z]")
_ELLIPSIS = "\\ldots"


def equal(answer: str, reference: str) -> bool:
    """Whether an answer is the reference, in whatever form.

    Args:
        answer: within the bounds.
        reference: within the bounds.
    """
    one, other = tidy(answer), tidy(reference)
    if _equal(one, other):
        return True
    if not ("," in answer and "," in reference):
        return False
    # `100,200` may be a list as well as a number, but not one here and the other there.
    separate = tidy(answer, thousands=False), tidy(reference, thousands=False)
    return separate != (one, other) and _equal(*separate)


def readable(reference: str) -> bool:
    """Whether a reference, within the bounds, says anything that an answer could equal."""
    text = tidy(reference)
    several = group(text)
    if several is not None:
        return 0 < len(several.items) <= MAX_ITEMS and all(map(_readable, several.items))
    return _readable(text)


def _readable(text: str) -> bool:
    text = measure(condition(text))[0]
    if "\\pm" in text:
        return all(map(_readable, _both_signs(text)))
    known = words.phrase(text) or words.choice(text) or exact.number(text.rstrip("% ")) or _BASED.fullmatch(text)
    if known is not None or text == _ELLIPSIS or algebra.read(text) is not None:
        return True
    rows = cells(text)
    if rows is not None:
        return all(_readable(cell) for row in rows for cell in row)
    return as_intervals(text) is not None or symbolic.parsed(text) is not None


def _equal(one: str, other: str) -> bool:
    """Tidied answer and reference; a reference in several parts is compared part by part."""
    if squeeze(one) == squeeze(other):
        return True
    one, other = names.without_names(condition(one), condition(other))
    if "\\approx" in one and "\\approx" not in other:
        return _equal_approximation(one, other)
    if "\\pm" in one or "\\pm" in other:
        return _equal_in_any_order(_both_signs(one), _both_signs(other))
    if names.is_equation(one) and "=" not in other:
        return False
    one, other = _in_one_form(one, other)
    answer, reference = group(one), group(other)
    if answer is not None and reference is not None:
        return _equal_groups(names.solutions(answer), names.solutions(reference))
    if answer is None and reference is None:
        return _equal_single(one, other)
    return _equal_to_one(one, other, answer) if answer is not None else _equal_to_one(other, one, reference)


def _equal_to_one(text: str, single: str, several: Group | None) -> bool:
    """Whether several things, which `text` is, are one."""
    assert several is not None
    if several.brackets == "{}" and len(several.items) == 1:
        return _equal(several.items[0], single)
    decimal = _DECIMAL_COMMA.fullmatch(measure(text)[0])
    if decimal is not None:
        return _equal_single(f"{decimal[1]}.{decimal[2]}", single)
    if len(several.items) == 2 and several.joined and not several.brackets:
        whole, part = map(exact.number, several.items)
        number = exact.number(single)
        if whole is not None and part is not None and number is not None and whole.value.denominator == 1:
            return 0 < part.value < 1 <= whole.value and number.value == whole.value + part.value
    if several.brackets and len(several.items) == 2 and _RELATION.search(single):
        return symbolic.equal(text, single)
    return False


def _in_one_form(one: str, other: str) -> tuple[str, str]:
    """An inequality as an interval where the other is one, a point without its letter where the other is a point."""
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
    value, _, rounded = one.rpartition("\\approx")
    if _equal(value.strip(), other):
        return True
    number = exact.number(rounded.strip())
    computed = symbolic.value(value.strip())
    if number is None or computed is None:
        return False
    place = Fraction(1, 10 ** len(rounded.strip().partition(".")[2]))
    return abs(Fraction(str(computed)) - number.value) <= place / 2 and _equal(rounded.strip(), other)


def _both_signs(text: str) -> list[str]:
    """What a list stands for with every `\\pm` written out."""
    several = group(text)
    items = list(names.solutions(several).items) if several else [text]
    if several is not None and several.brackets not in ("", "{}"):
        items = [text]
    signs = (("\\pm", "+"), ("\\mp", "-")), (("\\pm", "-"), ("\\mp", "+"))
    both = []
    for item in items:
        for (plus, sign), (minus, opposite) in signs[: 2 if "\\pm" in item else 1]:
            both.append(tidy(item.replace(plus, sign).replace(minus, opposite)))
    return both


def _equal_groups(answer: Group, reference: Group) -> bool:
    if len(answer.items) != len(reference.items) or len(answer.items) > MAX_ITEMS:
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
    if one.endswith("%") or other.endswith("%"):
        return _equal_percentages(one, other)
    worded = _equal_in_words(one, other)
    if worded is not None:
        return worded
    (one, unit), (other, expected_unit) = measure(one), measure(other)
    if units_differ(unit, expected_unit):
        return False
    if _LETTER.fullmatch(one) and _LETTER.fullmatch(other):
        return one == other  # math_verify reads E and e alike
    based = _equal_in_base(one, other)
    if based is not None:
        return based
    number, expected_number = exact.number(one), exact.number(other)
    if number is not None and expected_number is not None:
        return exact.same(number, expected_number)
    if squeeze(one) == squeeze(other):
        return True
    decided = algebra.equal(one, other)
    return symbolic.equal(one, other) if decided is None else decided


def _equal_cells(rows: Cells, expected: Cells) -> bool:
    if [len(row) for row in rows] != [len(row) for row in expected]:
        return False
    pairs = zip(chain.from_iterable(rows), chain.from_iterable(expected), strict=True)
    return all(_equal(cell, other) for cell, other in pairs)


def _equal_percentages(one: str, other: str) -> bool:
    """At least one has a percent sign."""
    number, expected = exact.number(one.rstrip("% ")), exact.number(other.rstrip("% "))
    if one.endswith("%") == other.endswith("%") or number is None or expected is None:
        return _equal_single(one.rstrip("% "), other.rstrip("% "))
    return exact.same_percentage(number, expected) if one.endswith("%") else exact.same_percentage(expected, number)


def _equal_in_words(one: str, other: str) -> bool | None:
    """Letters of a choice, times of day, words; None where neither is any of these."""
    (letter, _), (expected_letter, value) = words.labelled(one), words.labelled(other)
    if letter is not None and expected_letter is not None:
        return letter == expected_letter
    if value:
        return _equal(one, value)
    time, expected_time = words.clock(one), words.clock(other)
    if time is not None and expected_time is not None:
        return words.same_time(time, expected_time)
    number, expected_number = words.numeral(one), words.numeral(other)
    if (number is None) != (expected_number is None):
        return _equal_single(number or one, expected_number or other)
    said, expected = words.phrase(one), words.phrase(other)
    return None if said is None and expected is None else said == expected


def _equal_in_base(one: str, other: str) -> bool | None:
    """Numerals with a base, such as `1011_2`; None where neither has one. A base left out is the other's."""
    based, expected = _based(one), _based(other)
    if based is None and expected is None:
        return None
    if based is not None and expected is not None:
        return based == expected
    return (based[0] if based else one) == (expected[0] if expected else other)


def _based(text: str) -> tuple[str, str] | None:
    """Digits and base."""
    match = _BASED.fullmatch(text)
    if match is None:
        return None
    base = match[2] or words.numeral(f"\\text{{{match[3]}}}")
    return (match[1], base) if base else None
