"""Work that an answer leaves undone: integrals, derivatives, limits, and sums and products without end."""

from __future__ import annotations

from functools import lru_cache

from rewardstack_verifier.reading.lexer import Token, UnreadError, lex
from rewardstack_verifier.reading.parser import formula
from rewardstack_verifier.reading.syntax import Node

_OPERATORS = {
    **dict.fromkeys(("int", "iint", "iiint", "oint"), "integral"),
    **dict.fromkeys(("lim", "limsup", "liminf"), "limit"),
}
_ENDLESS = frozenset(("sum", "prod"))
REMEMBERED = 1024
"""Texts whose operators are remembered: several responses are compared with one reference."""


@lru_cache(maxsize=REMEMBERED)
def undone(text: str) -> frozenset[str]:
    """The operators whose value is still to be found in what an answer says last, behind its last equals sign.

    Finite sums and products are arithmetic, which may be left undone.

    Args:
        text: within the bounds.
    """
    if "\\" not in text and text.isascii():
        return frozenset()
    try:
        return _operators(_last_side(lex(text)))
    except UnreadError:
        return frozenset()


def result(tokens: list[Token]) -> Node:
    """What stands behind the last equals sign, before which something was to be done.

    Raises:
        UnreadError: nothing was, or it is not read.
    """
    said = _last_side(tokens)
    if not _operators(tokens[: len(tokens) - len(said)]):
        raise UnreadError("nothing to be done")
    return formula(said)


def _last_side(tokens: list[Token]) -> list[Token]:
    """The tokens behind the last equals sign that is in no index, all of them where there is none."""
    depth, start = 0, 0
    for at, token in enumerate(tokens):
        depth += {"{": 1, "}": -1}.get(token.text, 0)
        if not depth and token.text in ("=", "approx"):
            start = at + 1
    return tokens[start:]


def _operators(said: list[Token]) -> frozenset[str]:
    found = {_OPERATORS[token.text] for token in said if token.text in _OPERATORS}
    names = {token.text for token in said}
    if names & _ENDLESS and "infty" in names:
        found.add("series")
    if any(_is_derivative(said[at : at + 6]) for at in range(len(said))):
        found.add("derivative")
    return frozenset(found)


def _is_derivative(tokens: list[Token]) -> bool:
    """Whether `\\frac{d}{dx}` begins here, or `dy/dx`."""
    texts = [token.text for token in tokens]
    if texts[1:2] == ["/"] and texts[0] in ("d", "dy", "df") and len(texts) > 2:
        return len(texts[2]) == 2 and texts[2].startswith("d")
    return texts[:5] == ["frac", "{", "d", "}", "{"] and len(texts[5]) == 2 and texts[5].startswith("d")
