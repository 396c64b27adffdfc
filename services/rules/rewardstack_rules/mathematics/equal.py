"""Whether two answers are equal: structure first, then words, numbers, and for the rest math_verify."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Sequence
from typing import Any

import math_verify
from latex2sympy2_extended.latex2sympy2 import NormalizationConfig
from sympy import I  # type: ignore[import-untyped]

from rewardstack_rules.mathematics import exact, words
from rewardstack_rules.mathematics.bounds import MAX_ITEMS
from rewardstack_rules.mathematics.notation import squeeze, tidy
from rewardstack_rules.mathematics.structure import Group, group

# It warns that it runs without its own timeouts, which cannot interrupt native code and fail outside the main thread.
logging.getLogger("math_verify").setLevel(logging.ERROR)

# Units are read here (`words.measure`): math_verify's own list takes the variable of `2t` for one.
_NORMALIZATION = NormalizationConfig(basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="none")
_EXTRACTION = [math_verify.LatexExtractionConfig(normalization_config=_NORMALIZATION)]

_RELATION = re.compile(r"[<>]|\\(?:[lg]eq?|in|cup|mathbb|infty|R)(?![A-Za-z])")
_NAME = re.compile(r"(?:[A-Za-z]|\\[a-z]+)(?:_\{?\w+\}?)?(?:\(\w+\))?|\([A-Za-z](?:\s*,\s*[A-Za-z])*\)")
_NAMED = re.compile(rf"\s*({_NAME.pattern})\s*(?:(?<![<>!])=|\\in(?![A-Za-z]))\s*([^=]+)")
_BASED = re.compile(r"([0-9A-F]+)\s*_\s*\{?(\d+)\}?")


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
    return _equal(tidy(answer, thousands=False), tidy(reference, thousands=False))


def readable(reference: str) -> bool:
    """Whether a reference, within the bounds, says anything that an answer could equal."""
    text = tidy(reference)
    several = group(text)
    if several is not None:
        return 0 < len(several.items) <= MAX_ITEMS and all(map(_readable, several.items))
    return _readable(text)


def _readable(text: str) -> bool:
    text = words.measure(text)[0]
    known = words.phrase(text) or words.choice(text) or exact.number(text.rstrip("% ")) or _BASED.fullmatch(text)
    return known is not None or _parsed(text) is not None


def _equal(one: str, other: str) -> bool:
    """Tidied answer and reference; a reference in several parts is compared part by part."""
    if squeeze(one) == squeeze(other):
        return True
    one, other = _without_names(one, other)
    answer, reference = group(one), group(other)
    if answer is not None and reference is not None:
        return _equal_groups(answer, reference)
    if answer is None and reference is None:
        return _equal_single(one, other)
    several = answer or reference
    assert several is not None
    if several.brackets == "{}" and len(several.items) == 1:
        return _equal(several.items[0], other) if several is answer else _equal(one, several.items[0])
    single = one if answer is None else other
    if "\\pm" in single or (several.brackets and len(several.items) == 2 and _RELATION.search(single)):
        return _math_verify_equal(one, other)
    return False


def _without_names(one: str, other: str) -> tuple[str, str]:
    """`x = 5` for 5, and the other way round; two equations keep their names, unless these are the same."""
    named, expected = _NAMED.fullmatch(one), _NAMED.fullmatch(other)
    if named and expected and squeeze(named[1]) == squeeze(expected[1]):
        return named[2], expected[2]
    if "=" in one and "=" in other:
        return one, other
    return named[2] if named else one, expected[2] if expected else other


def _equal_groups(answer: Group, reference: Group) -> bool:
    if len(answer.items) != len(reference.items) or len(answer.items) > MAX_ITEMS:
        return False
    kinds = {answer.brackets, reference.brackets}
    if kinds <= {"", "{}"}:
        if answer.unordered or reference.unordered:
            return _equal_in_any_order(answer.items, reference.items)
    elif "{}" in kinds or (len(kinds) == 2 and not _interchangeable(kinds, len(answer.items))):
        return False
    return all(_equal(one, other) for one, other in zip(answer.items, reference.items, strict=True))


def _interchangeable(kinds: set[str], length: int) -> bool:
    """Whether tuples in these brackets mean the same: two numbers in square brackets are an interval."""
    return kinds == {"", "()"} or (length > 2 and kinds <= {"", "()", "[]"})


def _equal_in_any_order(items: Sequence[str], others: Sequence[str]) -> bool:
    left = list(others)
    for item in items:
        match = next((index for index, other in enumerate(left) if _equal(item, other)), None)
        if match is None:
            return False
        del left[match]
    return True


def _equal_single(one: str, other: str) -> bool:
    """Neither is a group."""
    if one.endswith("%") or other.endswith("%"):
        return _equal_percentages(one, other)
    letter = words.choice(other)
    if letter is not None and words.choice(one) is not None:
        return words.choice(one) == letter
    said, expected = words.phrase(one), words.phrase(other)
    if said is not None or expected is not None:
        return said == expected
    (one, unit), (other, expected_unit) = words.measure(one), words.measure(other)
    if words.units_differ(unit, expected_unit):
        return False
    based = _equal_in_base(one, other)
    if based is not None:
        return based
    number, expected_number = exact.number(one), exact.number(other)
    if number is not None and expected_number is not None:
        return exact.same(number, expected_number)
    return squeeze(one) == squeeze(other) or _math_verify_equal(one, other)


def _equal_percentages(one: str, other: str) -> bool:
    """At least one has a percent sign."""
    number, expected = exact.number(one.rstrip("% ")), exact.number(other.rstrip("% "))
    if one.endswith("%") == other.endswith("%") or number is None or expected is None:
        return _equal_single(one.rstrip("% "), other.rstrip("% "))
    return exact.same_percentage(number, expected) if one.endswith("%") else exact.same_percentage(expected, number)


def _equal_in_base(one: str, other: str) -> bool | None:
    """Numerals with a base, such as `1011_2`; None where neither has one. A base left out is the other's."""
    based, expected = _BASED.fullmatch(one), _BASED.fullmatch(other)
    if based is None and expected is None:
        return None
    if based is not None and expected is not None:
        return based.groups() == expected.groups()
    return (based[1] if based else one) == (expected[1] if expected else other)


def _math_verify_equal(answer: str, reference: str) -> bool:
    gold, target = _parsed(reference), _parsed(answer)
    if gold is None or target is None:
        return False
    return math_verify.verify(gold, target, allow_set_relation_comp=True, timeout_seconds=None)


def _parsed(text: str) -> Any | None:
    """What math_verify reads, with i as the imaginary unit; None where it reads nothing."""
    found = math_verify.parse(f"${text}$", _EXTRACTION, fallback_mode="no_fallback", parsing_timeout=None)
    if not found:
        return None
    expression = found[0]
    imaginary = {symbol: I for symbol in getattr(expression, "free_symbols", ()) if str(symbol) == "i"}
    with contextlib.suppress(TypeError, ValueError):  # in an inequality i is a number like any other letter
        return expression.subs(imaginary) if imaginary else expression
    return expression
