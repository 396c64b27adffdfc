"""Digits written otherwise: in a base beyond ten, `1A3_{16}`; repeating ones in parentheses, `0.1(6)`."""

from __future__ import annotations

import re
from fractions import Fraction

from rewardstack_verifier.numbers.tree import Apply, Number, Symbol, integer
from rewardstack_verifier.reading.lexer import Token, UnreadError

_FORM = re.compile(r"([0-9A-Za-z]{1,60})_([1-3]\d)")
_PERIODIC = re.compile(r"(-?)(\d{1,20})\.(\d{0,20})\((\d{1,20})\)")
MOST_TOKENS = 64


def lettered_digits(tokens: list[Token]) -> Apply:
    """Digits and their base.

    Raises:
        UnreadError: it is no such number, or has no letter.
    """
    text = "".join(token.text for token in tokens[: MOST_TOKENS + 1] if token.text not in ("{", "}"))
    match = _FORM.fullmatch(text) if len(tokens) <= MOST_TOKENS else None
    if match is None or match[1].isdecimal() or not 10 < int(match[2]) <= 36:
        raise UnreadError("no digits with a base")
    digits, base = match[1].upper(), int(match[2])
    if any(int(digit, 36) >= base for digit in digits):
        raise UnreadError("digits that the base has not")
    return Apply("subscript", (Symbol(digits), integer(base)))


def periodic(tokens: list[Token]) -> Number:
    """A decimal whose repeating digits stand in parentheses.

    Raises:
        UnreadError: it is none.
    """
    text = "".join(token.text for token in tokens[: MOST_TOKENS + 1])
    match = _PERIODIC.fullmatch(text) if len(tokens) <= MOST_TOKENS and ")" in text else None
    if match is None:
        raise UnreadError("no digits in parentheses")
    sign, whole, fixed, block = match.groups()
    period = Fraction(int(block), 10 ** len(block) - 1) / 10 ** len(fixed)
    value = Fraction(f"{whole}.{fixed or 0}") + period
    return Number(-value if sign else value)
