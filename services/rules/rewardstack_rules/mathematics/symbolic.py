"""What is not read here: math_verify, within `LIMIT`, and with numbers compared to more digits than it does."""

from __future__ import annotations

import contextlib
import logging
import re
from functools import cache, lru_cache
from typing import Any

import math_verify
from latex2sympy2_extended.latex2sympy2 import NormalizationConfig
from sympy import Expr, Float, I  # type: ignore[import-untyped]

from rewardstack_rules.mathematics.bounds import too_large
from rewardstack_rules.mathematics.limit import OutOfTimeError, within
from rewardstack_rules.mathematics.trail import ASKED, UNDECIDED, tell

# It warns that it runs without its own timeouts, which cannot interrupt native code and fail outside the main thread.
logging.getLogger("math_verify").setLevel(logging.ERROR)

# Units are read elsewhere (`reading.units`): math_verify's own list takes the variable of `2t` for one.
_NORMALIZATION = NormalizationConfig(basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="none")
_EXTRACTION = [math_verify.LatexExtractionConfig(normalization_config=_NORMALIZATION)]
_SIDE_BY_SIDE = re.compile(r"(?:^|[^_\d])\d+ \d")

LIMIT = 0.05
"""Seconds of processor time that a question may take: a parser that is warm needs a few thousandths."""

PARSED = 512
"""Texts that a process remembers parsed: the answers to one problem come close together."""

DIGITS = 40
"""To which numbers are computed."""

CLOSE = Float("1e-12")
"""How far two numbers may lie apart that computing alone parts, in proportion; math_verify takes six digits."""


_PAIRS = (
    (r"\frac{1}{2}", r"\frac{2\sqrt{3}}{4\sqrt{3}}"),
    (r"2\sqrt{3}", r"\sqrt{12}"),
    (r"x^2+2x+1", r"(x+1)^{2}"),
    (r"\frac{x+1}{2}", r"\frac{x}{2} + \frac{1}{2}"),
    (r"y = 2x + 1", r"2x - y + 1 = 0"),
    (r"x \ge 1", r"[1, \infty)"),
    (r"-2 < x \le 7", r"(-2, 7]"),
    (r"(-\infty, 1) \cup (2, \infty)", r"(2, \infty) \cup (-\infty, 1)"),
    (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"\begin{bmatrix} 1 & 2 \\ 3 & 5 \end{bmatrix}"),
    (r"3 \pm 2\sqrt{2}", r"3 + 2\sqrt{2}, 3 - 2\sqrt{2}"),
    (r"\frac{\pi}{2}", r"\pi/3"),
    (r"\sin(x) + \cos^2 x", r"\cos^{2} x + \sin x"),
    (r"\log_2 8 + \ln e", r"2^{2}"),
    (r"\binom{5}{2}", r"5!"),
    (r"5 \text{ cm}", r"50 \text{ mm}"),
    (r"12", r"\text{twelve}"),
    (r"e^{i\pi}", r"|x| - 1"),
    (r"f(x) = a_1 x \cdot y", r"-\frac{a}{b}"),
)
"""Of common notations, seen before anything counts against the limit: the parser is slow at new ones."""


def equal(answer: str, reference: str) -> bool:
    """Whether math_verify takes an answer for the reference in time, and no number says otherwise.

    Args:
        answer: within the bounds.
        reference: the same.
    """
    if too_large(answer) or too_large(reference):
        tell(UNDECIDED)
        return False
    tell(ASKED)
    warm_up()
    try:
        with within(LIMIT):
            return _equal(answer, reference)
    except OutOfTimeError:
        tell(UNDECIDED)
        return False


def is_readable(text: str) -> bool:
    """Whether math_verify reads anything in a text."""
    if too_large(text):
        return False
    warm_up()
    try:
        with within(LIMIT):
            return _parsed(text) is not None
    except OutOfTimeError:
        return False


@cache
def warm_up() -> None:
    """Fills the parser's caches."""
    for answer, reference in _PAIRS:
        _equal(answer, reference)


def _equal(answer: str, reference: str) -> bool:
    gold, target = _parsed(reference), _parsed(answer)
    if gold is None or target is None:
        return False
    same = _same_number(gold, target)
    if same is not None:
        return same
    return math_verify.verify(gold, target, allow_set_relation_comp=True, timeout_seconds=None)


@lru_cache(maxsize=PARSED)
def _parsed(text: str) -> Any | None:
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


def _same_number(one: Any, other: Any) -> bool | None:
    """Whether two numbers are equal; None where they are not two numbers."""
    value, expected = _number(one), _number(other)
    if value is None or expected is None:
        return None
    difference = _number(one - other)
    return None if difference is None else bool(abs(difference) <= CLOSE * max(abs(value), abs(expected)))


def _number(expression: Any) -> Any | None:
    if not isinstance(expression, Expr) or expression.is_Matrix or expression.free_symbols:
        return None
    with contextlib.suppress(TypeError, ValueError, ArithmeticError, AttributeError):
        found = expression.evalf(DIGITS)
        return found if found.is_number and found.is_finite and abs(found).is_Float | abs(found).is_zero else None
    return None
