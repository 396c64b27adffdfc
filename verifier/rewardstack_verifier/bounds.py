"""Which answers no parser may see: those that are too long or too deep (`refusal`).

A bound decides by the text alone, so the same answer is refused everywhere and always, unlike by a clock. Values are
computed within bounds of their own (`numbers`).
"""

from __future__ import annotations

import re
from functools import lru_cache

MAX_RESPONSE = 1_000_000
"""Characters of a response."""

MAX_ANSWER = 1_000
"""Characters of an answer."""

MAX_NESTING = 20
"""Brackets and braces within one another."""

MAX_DIGITS = 100
"""Digits in a row."""

MAX_BARS = 20
"""Bars of absolute values, which may open as well as close: a parser tries both for each."""

MAX_ITEMS = 50
"""Members of a list, set or tuple."""

REMEMBERED = 1024
"""Texts whose verdict is remembered: a reference meets several answers, and an answer is asked about more than once."""

_BAR = re.compile(r"\||\\[lr]?[vV]ert")
_BRACKET = re.compile(r"\\(?:[A-Za-z]+|[^{}])|(?P<open>\\?\{|[(\[])|(?P<close>\\?\}|[)\]])", re.DOTALL)


def refusal(answer: str) -> str:
    """Why this answer may not be parsed; empty if it may.

    Args:
        answer: as it stands in the response.
    """
    if len(answer) > MAX_ANSWER:
        return "too long"
    return "" if len(answer) <= MAX_DIGITS and answer.isdecimal() else _refusal(answer)


@lru_cache(maxsize=REMEMBERED)
def _refusal(answer: str) -> str:
    """Why a text that is not too long may not be parsed."""
    if ("|" in answer or "ert" in answer) and len(_BAR.findall(answer)) > MAX_BARS:
        return "too many bars"
    return "too deeply nested" if _nesting(answer) > MAX_NESTING else ""


def _nesting(text: str) -> int:
    """Return how many brackets and braces stand within one another at most."""
    deepest = depth = 0
    for match in _BRACKET.finditer(text):
        if match["open"]:
            depth += 1
            deepest = max(deepest, depth)
        elif match["close"] and depth:
            depth -= 1
    return deepest
