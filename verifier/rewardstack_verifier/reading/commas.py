"""Numbers whose decimals a comma separates: `3,5`, `1.234,56`; a second reading of what may be a list as well."""

from __future__ import annotations

import re

from rewardstack_verifier.reading.lexer import LETTERS, NUMBER, Token, UnreadError

_GROUPED = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_GROUP = re.compile(r"\.\d{3}")
_BRACKETS = frozenset(("(", ")", "[", "]", "\\{", "\\}"))


def with_decimal_comma(tokens: list[Token]) -> list[Token]:
    """The tokens with the one comma between two numbers as a decimal point, and points between thousands left out.

    Raises:
        UnreadError: no such comma stands there, or more than one, brackets, or a space beside it.
    """
    commas = [at for at, token in enumerate(tokens) if token.text == ","]
    grouped = _thousands(tokens)
    if len(commas) != 1 or _BRACKETS & {token.text for token in tokens}:
        raise UnreadError("no decimal comma")
    at = commas[0]
    around = tokens[at - 1 : at + 2]
    if at == 0 or len(around) < 3 or around[1].spaced or around[2].spaced or not around[2].text.isdecimal():
        raise UnreadError("a comma between members of a list")
    start = at - grouped if grouped else at - 1
    whole = "".join(token.text for token in tokens[start:at]).replace(".", "") if grouped else around[0].text
    if not whole.isdecimal() or tokens[start].kind != NUMBER:
        raise UnreadError("no whole number before a comma")
    return [*tokens[:start], tokens[start]._replace(text=f"{whole}.{around[2].text}"), *tokens[at + 2 :]]


def is_certain(tokens: list[Token]) -> bool:
    """Whether a comma can only be a decimal one: behind a zero or thousands with points, in a quantity, or in money."""
    at = next((at for at, token in enumerate(tokens) if token.text == ","), 0)
    behind = tokens[at + 2 : at + 3]
    units = any(token.kind == LETTERS or token.text in ("%", "€", "degree", "^") for token in behind)
    money = at > 1 and tokens[at - 2].text == "$" and len(tokens[at + 1 : at + 2]) and len(tokens[at + 1].text) == 2
    return bool(tokens) and (tokens[at - 1].text == "0" or bool(_thousands(tokens)) or units or bool(money))


def _thousands(tokens: list[Token]) -> int:
    """How many tokens a number takes before a comma whose thousands points separate; 0 where there is none."""
    at = next((at for at, token in enumerate(tokens) if token.text == ","), 0)
    start = at - 1
    while start > 0 and _GROUP.fullmatch(tokens[start].text) and not tokens[start].spaced:
        start -= 1
    return at - start if start >= 0 and at and _GROUPED.fullmatch(tokens[start].text) else 0
