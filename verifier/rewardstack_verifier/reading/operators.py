"""Find unevaluated operators in an answer: integrals, derivatives, limits, infinite sums and products."""

from __future__ import annotations

from functools import lru_cache

from rewardstack_verifier.reading.lexer import Token, UnreadableError, tokenize
from rewardstack_verifier.reading.parser import parse_formula
from rewardstack_verifier.reading.syntax import Node
from rewardstack_verifier.reading.terms import require

_OPERATORS = {
    **dict.fromkeys(("int", "iint", "iiint", "oint"), "integral"),
    **dict.fromkeys(("lim", "limsup", "liminf"), "limit"),
}
_INFINITE = frozenset(("sum", "prod"))
CACHED_TEXTS = 1024
"""Number of texts whose operators are cached. Several responses share a reference, so a cache saves time."""


@lru_cache(maxsize=CACHED_TEXTS)
def unevaluated_operators(text: str) -> frozenset[str]:
    """Return the kinds of unevaluated operators after the last equals sign of an answer.

    Args:
        text: text of an answer; `bounds.refusal` must accept it.

    Returns:
        Some of `integral`, `limit`, `derivative` and `series` (an infinite sum or product). Finite sums and products
        are not included, because the verifier evaluates them.
    """
    if "\\" not in text and text.isascii():
        return frozenset()
    try:
        return _operators(_last_side(tokenize(text)))
    except UnreadableError:
        return frozenset()


def parse_result(tokens: list[Token]) -> Node:
    """Parse the result after the last equals sign of an answer that evaluates an operator.

    Raises:
        UnreadableError: there is no operator before the last equals sign, or the result cannot be parsed.
    """
    last = _last_side(tokens)
    require(_operators(tokens[: len(tokens) - len(last)]), "nothing to evaluate")
    return parse_formula(last)


def _last_side(tokens: list[Token]) -> list[Token]:
    """Return the tokens after the last `=` or `\\approx` outside of braces; all tokens if there is none."""
    depth, start = 0, 0
    for at, token in enumerate(tokens):
        depth += {"{": 1, "}": -1}.get(token.text, 0)
        if not depth and token.text in ("=", "approx"):
            start = at + 1
    return tokens[start:]


def _operators(tokens: list[Token]) -> frozenset[str]:
    found = {_OPERATORS[token.text] for token in tokens if token.text in _OPERATORS}
    names = {token.text for token in tokens}
    if names & _INFINITE and "infty" in names:
        found.add("series")
    if any(_is_derivative(tokens[at : at + 6]) for at in range(len(tokens))):
        found.add("derivative")
    return frozenset(found)


def _is_derivative(tokens: list[Token]) -> bool:
    """Return whether tokens begin with `\\frac{d}{dx}` or `dy/dx`."""
    texts = [token.text for token in tokens]
    texts = (
        texts[2:3] + texts[5:] if texts[:2] == ["frac", "{"] else texts[:1] + texts[2:3] if texts[1:2] == ["/"] else []
    )
    return [one[:1] for one in texts] == ["d", "d"] and len(texts[0]) <= len(texts[1]) == 2
