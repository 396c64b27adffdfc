"""What only algebra can decide: math_verify, and numbers compared to more digits than it does."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import math_verify
from latex2sympy2_extended.latex2sympy2 import NormalizationConfig
from sympy import Expr, Float, I, sympify  # type: ignore[import-untyped]

from rewardstack_rules.mathematics import exact

# It warns that it runs without its own timeouts, which cannot interrupt native code and fail outside the main thread.
logging.getLogger("math_verify").setLevel(logging.ERROR)

# Units are read elsewhere (`units.measure`): math_verify's own list takes the variable of `2t` for one.
_NORMALIZATION = NormalizationConfig(basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="none")
_EXTRACTION = [math_verify.LatexExtractionConfig(normalization_config=_NORMALIZATION)]
_SIDE_BY_SIDE = re.compile(r"(?:^|[^_\d])\d+ \d")

PARSED = 512
"""Texts that a process remembers parsed: the answers to one problem come close together."""

DIGITS = 40
"""To which numbers are computed."""

EXACT = Float("1e-30")
FLOATING = Float("1e-12")
"""How far two numbers may lie apart that computing alone parts, without and with a decimal in them, in proportion."""

_DECIMAL = re.compile(r"\d*\.(\d*)")


def equal(answer: str, reference: str) -> bool:
    """Whether math_verify takes an answer for the reference, and no number says otherwise.

    Args:
        answer: tidied, and within the bounds.
        reference: the same.
    """
    gold, target = parsed(reference), parsed(answer)
    if gold is None or target is None:
        return False
    same = _same_number(gold, target, [_places(answer), _places(reference)])
    if same is not None:
        return same
    return math_verify.verify(gold, target, allow_set_relation_comp=True, timeout_seconds=None)


def value(text: str) -> Any | None:
    """The number that a tidied text is worth, None where it is not one real number."""
    found = _number(parsed(text))
    return found if found is not None and found.is_real else None


@lru_cache(maxsize=PARSED)
def parsed(text: str) -> Any | None:
    """What math_verify reads, with i as the imaginary unit; None where it reads nothing."""
    if _SIDE_BY_SIDE.search(text):
        return None  # it would add two numbers, or read the first alone
    found = math_verify.parse(f"${text}$", _EXTRACTION, fallback_mode="no_fallback", parsing_timeout=None)
    if not found:
        return None
    expression = found[0]
    imaginary = {symbol: I for symbol in getattr(expression, "free_symbols", ()) if str(symbol) == "i"}
    with contextlib.suppress(TypeError, ValueError):  # in an inequality i is a number like any other letter
        return expression.subs(imaginary) if imaginary else expression
    return expression


def _places(text: str) -> int:
    """Digits behind the point of the longest decimal; -1 without any."""
    return max((len(digits) for digits in _DECIMAL.findall(text)), default=-1)


def _same_number(one: Any, other: Any, places: Sequence[int]) -> bool | None:
    """Whether two numbers are equal, or one is the other rounded; None where they are not two numbers."""
    value, expected = _number(one), _number(other)
    if value is None or expected is None:
        return None
    difference = _number(one - other)
    if difference is None:
        return None
    distance, size = abs(difference), max(abs(value), abs(expected))
    rounded = sympify(exact.tolerance(*places))
    if bool(distance < rounded) and bool(distance <= sympify(exact.RELATIVE) * size):
        return True
    return bool(distance <= (EXACT if max(places) < 0 else FLOATING) * size)


def _number(expression: Any) -> Any | None:
    if not isinstance(expression, Expr) or expression.is_Matrix or expression.free_symbols:
        return None
    with contextlib.suppress(TypeError, ValueError, ArithmeticError, AttributeError):
        found = expression.evalf(DIGITS)
        return found if found.is_number and found.is_finite and abs(found).is_Float | abs(found).is_zero else None
    return None
