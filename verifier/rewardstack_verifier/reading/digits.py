"""Parse numbers in special notations: `1A3_{16}`, `0.1(6)`, `3,5`, `1.234,56`, `22° 30'`."""

from __future__ import annotations

import re
from fractions import Fraction

from rewardstack_verifier.numbers.tree import Apply, Number, Symbol, integer
from rewardstack_verifier.reading.lexer import LETTERS, NUMBER, Token, UnreadableError
from rewardstack_verifier.reading.terms import make_periodic, require

_LETTERED = re.compile(r"(\()?([0-9A-Za-z]{1,60})(?(1)\))_([1-3]\d)")
_PERIODIC = re.compile(r"(-?)(\d{1,20})\.(\d{0,20})\((\d{1,20})\)")
MAX_TOKENS = 64
"""Maximum number of tokens of a number in a special notation."""
_GROUPED = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_GROUP = re.compile(r"\.\d{3}")
_BRACKETS = frozenset(("(", ")", "[", "]", "\\{", "\\}"))
_SEXAGESIMAL = re.compile(r"(-?)(\d{1,4})degree(\d{1,2})'(?:(\d{1,2}(?:\.\d{1,9})?)(?:''|\"))?\.?")


def parse_lettered_digits(tokens: list[Token]) -> Apply:
    """Parse a number whose digits include letters, with its base: `1A3_{16}`.

    Raises:
        UnreadableError: the tokens are not such a number, or a digit is not below the base.
    """
    text = "".join(token.text for token in tokens[: MAX_TOKENS + 1] if token.text not in ("{", "}"))
    match = _LETTERED.fullmatch(text) if len(tokens) <= MAX_TOKENS else None
    if match is None or match[2].isdecimal() or not 10 < int(match[3]) <= 36:
        raise UnreadableError("no digits with a base")
    digits, base = match[2].upper(), int(match[3])
    require(not any(int(digit, 36) >= base for digit in digits), "digits that the base does not have")
    return Apply("subscript", (Symbol(digits), integer(base)))


def parse_bracketed_period(tokens: list[Token]) -> Number:
    """Parse a decimal with its repeating digits in parentheses: `0.1(6)`.

    Raises:
        UnreadableError: the tokens are not such a decimal.
    """
    text = "".join(token.text for token in tokens[: MAX_TOKENS + 1])
    match = _PERIODIC.fullmatch(text) if len(tokens) <= MAX_TOKENS and ")" in text else None
    if match is None:
        raise UnreadableError("no digits in parentheses")
    sign, whole, fixed, block = match.groups()
    number = make_periodic(whole, fixed, block)
    return Number(-number.value) if sign else number


def replace_decimal_comma(tokens: list[Token]) -> list[Token]:
    """Replace the only comma by a decimal point, and remove points between thousands: `1.234,56` becomes `1234.56`.

    Raises:
        UnreadableError: there is not exactly one comma, there are brackets, or the comma does not directly join two
            whole numbers.
    """
    commas = [at for at, token in enumerate(tokens) if token.text == ","]
    grouped = _count_thousands_tokens(tokens)
    require(len(commas) == 1 and not _BRACKETS & {token.text for token in tokens}, "no decimal comma")
    at = commas[0]
    around = tokens[at - 1 : at + 2]
    require(at and len(around) == 3 and not (around[1].spaced or around[2].spaced), "a comma between members of a list")
    start = at - grouped if grouped else at - 1
    whole = "".join(token.text for token in tokens[start:at]).replace(".", "") if grouped else around[0].text
    require((whole + around[2].text).isdecimal() and tokens[start].kind == NUMBER, "no whole numbers around a comma")
    return [*tokens[:start], tokens[start]._replace(text=f"{whole}.{around[2].text}"), *tokens[at + 2 :]]


def is_certainly_decimal(tokens: list[Token]) -> bool:
    """Return whether the first comma must be decimal, as in `0,5`, `1.234,56`, `3,5 kg`, `3,5%` or `$3,50`."""
    at = next((at for at, token in enumerate(tokens) if token.text == ","), 0)
    following = tokens[at + 2 : at + 3]
    units = any(token.kind == LETTERS or token.text in ("%", "€", "degree", "^") for token in following)
    money = at > 1 and tokens[at - 2].text == "$" and len(tokens[at + 1 : at + 2]) and len(tokens[at + 1].text) == 2
    return bool(tokens) and (
        tokens[at - 1].text == "0" or bool(_count_thousands_tokens(tokens)) or units or bool(money)
    )


def _count_thousands_tokens(tokens: list[Token]) -> int:
    """Return the number of tokens of a number such as `1.234` before the first comma; 0 if there is none."""
    at = next((at for at, token in enumerate(tokens) if token.text == ","), 0)
    start = at - 1
    while start > 0 and _GROUP.fullmatch(tokens[start].text) and not tokens[start].spaced:
        start -= 1
    return at - start if start >= 0 and at and _GROUPED.fullmatch(tokens[start].text) else 0


def parse_sexagesimal(tokens: list[Token]) -> Apply:
    """Parse an angle in degrees and minutes, perhaps with seconds, `22° 30'`, and return it in degrees.

    Raises:
        UnreadableError: the tokens are not such an angle.
    """
    text = "".join(token.text for token in tokens[: MAX_TOKENS + 1] if token.text not in ("^", "{", "}"))
    match = _SEXAGESIMAL.fullmatch(text) if len(tokens) <= MAX_TOKENS else None
    if match is None:
        raise UnreadableError("no angle with minutes")
    sign, degrees, minutes, seconds = match.groups()
    value = Fraction(degrees) + Fraction(minutes) / 60 + Fraction(seconds or 0) / 3600
    return Apply("degree", (Number(-value if sign else value),))
