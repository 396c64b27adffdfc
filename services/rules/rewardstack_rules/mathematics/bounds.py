"""What no parser may see: answers too long or too deep (`refusal`), or that math_verify would compute for ever.

A bound decides by the text alone, so the same answer is refused everywhere and always, unlike by a clock. Values are
computed within bounds of their own (`numbers`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

MAX_RESPONSE = 1_000_000
"""Characters of a response."""

MAX_ANSWER = 1_000
"""Characters of an answer."""

MAX_NESTING = 20
"""Brackets and braces within one another."""

MAX_DIGITS = 100
"""Digits in a row."""

MAX_EXPONENT = 10_000
"""A number in an exponent."""

MAX_TOWER = 2
"""Powers within one another's exponents: a^(b^c) has two."""

MAX_COUNT = 10_000
"""A number beside factorials, binomials, sums and products."""

MAX_BARS = 20
"""Bars of absolute values, which may open as well as close: a parser tries both for each."""

MAX_ITEMS = 50
"""Members of a list, set or tuple."""

REMEMBERED = 1024
"""Texts whose verdict is remembered: a reference meets several answers, and an answer is asked about more than once."""

_DIGITS = re.compile(rf"\d{{{MAX_DIGITS + 1}}}")
_BAR = re.compile(r"\||\\[lr]?[vV]ert")
_NUMBER = re.compile(r"\d+")
_COUNTING = re.compile(r"(?<!\\)!|\\[dt]?binom|\\choose|\\sum|\\prod")
_POWER = re.compile(r"(\d+)\s*\^\s*\{?\s*(\d+)")
_RAISED_POWER = re.compile(r"\^\s*[{(]?\s*-?(\d+)\s*\^\s*[{(]?\s*(\d+)")
_TOKEN = re.compile(r"\d+(?:\.\d+)?|\\[A-Za-z]+|\\?.", re.DOTALL)
_SIGNS = frozenset("+- ")
_OPEN = frozenset(("(", "[", "{", "\\{"))
_CLOSE = frozenset((")", "]", "}", "\\}"))


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
    return "too deeply nested" if _measure(answer)[0] > MAX_NESTING else ""


def too_large(answer: str) -> str:
    """Why this answer may not be computed by a library that has no bounds; empty if it may.

    Args:
        answer: one that is not refused.
    """
    if _DIGITS.search(answer):
        return "too many digits"
    text = answer.replace("**", "^")
    _, tower, exponent = _measure(text)
    if tower > MAX_TOWER:
        return "too high a tower of powers"
    if exponent > MAX_EXPONENT:
        return "too large an exponent"
    if _COUNTING.search(text):
        return _counting_refusal(text)
    if any(power > MAX_EXPONENT for power in _powers_in_exponents(text)):
        return "too large an exponent"
    return ""


def _counting_refusal(text: str) -> str:
    """Factorials and sums are computed step by step, so what they count to is bounded."""
    if _nests_factorials(text):
        return "a factorial of a factorial"
    powers = (int(base) ** min(int(exponent), MAX_EXPONENT) for base, exponent in _POWER.findall(text))
    numbers = (int(number) for number in _NUMBER.findall(text))
    if any(number > MAX_COUNT for number in (*numbers, *powers)):
        return "too large a number to count to"
    return ""


def _powers_in_exponents(text: str) -> Iterator[int]:
    """The powers that are exponents, such as the second in `2^{3^4}`, as far as a bound has to know them."""
    for base, exponent in _RAISED_POWER.findall(text):
        yield int(base) ** min(int(exponent), MAX_EXPONENT.bit_length()) if int(base) > 1 else int(base)


def _nests_factorials(text: str) -> bool:
    """Whether what a factorial is taken of holds a factorial: `(9!)!`, `9!!`, `\\frac{9!}{2}!`."""
    held = [False]  # whether there is a factorial inside each open bracket
    last, closed = False, False  # whether there is one in the last operand, and whether that ends with a brace
    for token in _TOKEN.findall(text):
        if token == "!" and last:
            return True
        if token in _OPEN:
            held.append(last and closed)
            last = False
        elif token in _CLOSE and len(held) > 1:
            last = held.pop()
            held[-1] |= last
        elif token != " ":
            last = token == "!"
            held[-1] |= last
        closed = token in _CLOSE
    return False


def _measure(text: str) -> tuple[int, int, int]:
    """The deepest nesting, the highest tower of powers, and the largest number in an exponent."""
    deepest = highest = largest = 0
    levels = [0]  # in how many exponents the text inside each open bracket stands
    last = 0  # the same for the last operand
    raised = False  # whether the next operand is an exponent
    for token in _TOKEN.findall(text):
        if token == "^":
            last += 1
            raised = True
        elif not (raised and token in _SIGNS):
            level = last if raised else levels[-1]
            if token in _OPEN:
                levels.append(level)
            elif token in _CLOSE and len(levels) > 1:
                level = levels.pop()
            elif token[0].isdecimal() and level > 0:
                largest = max(largest, int(token.partition(".")[0]))
            deepest, highest = max(deepest, len(levels) - 1), max(highest, level)
            last, raised = level, False
    return deepest, highest, largest
