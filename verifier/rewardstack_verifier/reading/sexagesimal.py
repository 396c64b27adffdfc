"""Angles in degrees, minutes and seconds: `22° 30'`."""

from __future__ import annotations

import re
from fractions import Fraction

from rewardstack_verifier.numbers.tree import Apply, Number
from rewardstack_verifier.reading.lexer import Token, UnreadError

_FORM = re.compile(r"(-?)(\d{1,4})degree(\d{1,2})'(?:(\d{1,2}(?:\.\d{1,9})?)(?:''|\"))?\.?")
MOST_TOKENS = 24


def sexagesimal(tokens: list[Token]) -> Apply:
    """An angle as its degrees.

    Raises:
        UnreadError: it has no minutes, or is no such angle.
    """
    text = "".join(token.text for token in tokens[: MOST_TOKENS + 1] if token.text not in ("^", "{", "}"))
    match = _FORM.fullmatch(text) if len(tokens) <= MOST_TOKENS else None
    if match is None:
        raise UnreadError("no angle with minutes")
    sign, degrees, minutes, seconds = match.groups()
    value = Fraction(degrees) + Fraction(minutes) / 60 + Fraction(seconds or 0) / 3600
    return Apply("degree", (Number(-value if sign else value),))
