"""Limit the texts that are parsed: `refusal` returns which limit a text exceeds (length, number of bars or nesting).

The result depends only on the text, not on a clock. `numbers` has separate limits on computations.
"""

from __future__ import annotations

import re
from functools import lru_cache

MAX_RESPONSE = 1_000_000
"""Maximum characters of a response."""

MAX_ANSWER = 1_000
"""Maximum characters of an answer."""

MAX_NESTING = 20
"""Maximum nesting of brackets and braces."""

MAX_DIGITS = 100
"""Maximum length of a plain number that `refusal` accepts without further checks, or that `shortcut` compares."""

MAX_BARS = 20
"""Maximum number of absolute value bars. For each bar, the parser must find out whether it opens or closes."""

MAX_ITEMS = 50
"""Maximum number of boxes that are compared as one list.

`extraction.boxes` reads one box more than this. A list that is too long then exceeds `comparison.lists.MAX_ITEMS`, and
is not compared. If it were cut off at the maximum, it could equal a reference.
"""

CACHED_TEXTS = 1024
"""Number of texts whose `refusal` is cached. References and answers repeat, so a cache saves time."""

_BAR = re.compile(r"\||\\[lr]?[vV]ert")
_BRACKET = re.compile(r"\\(?:[A-Za-z]+|[^{}])|(?P<open>\\?\{|[(\[])|(?P<close>\\?\}|[)\]])", re.DOTALL)


def refusal(answer: str) -> str:
    """Return why an answer must not be parsed; empty if it may be parsed.

    Args:
        answer: text of an answer or a reference.
    """
    if len(answer) > MAX_ANSWER:
        return "too long"
    return "" if len(answer) <= MAX_DIGITS and answer.isdecimal() else _refusal(answer)


@lru_cache(maxsize=CACHED_TEXTS)
def _refusal(answer: str) -> str:
    """Return why a text within `MAX_ANSWER` must not be parsed; empty if it may be parsed."""
    if ("|" in answer or "ert" in answer) and len(_BAR.findall(answer)) > MAX_BARS:
        return "too many bars"
    return "too deeply nested" if _nesting(answer) > MAX_NESTING else ""


def _nesting(text: str) -> int:
    """Return the maximum nesting of brackets and braces."""
    deepest = depth = 0
    for match in _BRACKET.finditer(text):
        if match["open"]:
            depth += 1
            deepest = max(deepest, depth)
        elif match["close"] and depth:
            depth -= 1
    return deepest
