"""Parse values whose names are not expressions: `\\angle ABC = 25^\\circ`, `P(A \\mid B) = 1/3`, `f(5) = 25`."""

from __future__ import annotations

from contextlib import suppress

from rewardstack_verifier.numbers.tree import Symbol
from rewardstack_verifier.reading.digits import parse_sexagesimal
from rewardstack_verifier.reading.lexer import LETTERS, NUMBER, Token, UnreadableError, parse_first
from rewardstack_verifier.reading.names import GREEK, word_set
from rewardstack_verifier.reading.parser import parse_formula
from rewardstack_verifier.reading.syntax import Relation, Sequence

_NAMING = word_set(
    "angle triangle # nabla mathbb det dim rank ker tr max min sup inf Var var Cov Pr Area area vol perimeter"
)
"""Tokens with which a name can begin."""
_FUNCTIONS = word_set("sin cos tan cot sec csc log ln")
_SETS = word_set("cup cap setminus | ( ) { } , ' ^ c")
"""Tokens that can be beside the letters of sets."""
_BRACES = word_set("{ }")
MAX_TOKENS = 16
"""Maximum tokens of a name."""


def parse_named_value(tokens: list[Token]) -> Relation:
    """Parse a name, an equals sign and a value; the name becomes a symbol and is not evaluated.

    A point with its letter, `A(3, 4)`, needs no equals sign.

    Raises:
        UnreadableError: the tokens do not begin with a name, or the value cannot be parsed.
    """
    if (point := _point(tokens)) is not None:
        return point
    at = _equals_sign(tokens[: MAX_TOKENS + 1])
    name = [token for token in tokens[:at] if token.text not in _BRACES]
    if not name or not _is_name(name):
        raise UnreadableError("no name")
    value = parse_first((parse_formula, parse_sexagesimal), tokens[at + 1 :])
    is_chain = isinstance(value, Relation) and value.modulus is None and set(value.operators) == {"="}
    sides = value.sides if isinstance(value, Relation) and is_chain else (value,)
    return Relation(("=",) * len(sides), (Symbol(" ".join(token.text for token in name)), *sides))


def _equals_sign(tokens: list[Token]) -> int:
    """Return the position of the first equals sign outside of parentheses; 0 if there is none."""
    depth = 0
    for at, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == "=" and depth <= 0:
            return at
    return 0


def _point(tokens: list[Token]) -> Relation | None:
    """Parse a letter before a pair, `A(3, 4)`; None for anything else."""
    if len(tokens) < 5 or not (len(tokens[0].text) == 1 and tokens[0].text.isupper() and tokens[1].text == "("):
        return None
    with suppress(UnreadableError):
        coordinates = parse_formula(tokens[1:])
        if isinstance(coordinates, Sequence) and coordinates.opening == "(":
            return Relation(("of",), (Symbol(tokens[0].text), coordinates))
    return None


def _is_name(tokens: list[Token]) -> bool:
    texts = [token.text for token in tokens]
    if texts[0] in _NAMING or (texts[0] == "m" and texts[1:2] == ["angle"]):
        return True
    if texts[0] == "|":
        return texts[-1] == "|" and (_are_sets(tokens) or "vec" in texts)
    if texts[0] in _FUNCTIONS:
        return any(token.kind == LETTERS or token.text in GREEK for token in tokens[1:]) and not _has_number(tokens)
    if texts[0] == "frac" and len(texts) > 1 and texts[1][:1] == "d" and (texts[1] == "d" or texts[-1][:1] == "d"):
        return len(texts) <= 4
    return _is_call(tokens)


def _has_number(tokens: list[Token]) -> bool:
    """Return whether a number is a term outside of parentheses, as in `\\sin x + 3`, which is not a name."""
    depth = 0
    for before, token, behind in zip(tokens, tokens[1:], [*tokens[2:], None], strict=False):
        depth += {"(": 1, ")": -1}.get(before.text, 0)
        ends = behind is None or behind.text in ("+", "-")
        if not depth and before.text in ("+", "-") and token.kind == NUMBER and ends:
            return True
    return False


def _is_call(tokens: list[Token]) -> bool:
    """Return whether tokens are a function of numbers or sets, an inverse, or a probability: `f(5)`, `P(X > 2)`."""
    texts = [token.text for token in tokens]
    if not (len(texts[0]) == 1 and tokens[0].kind == LETTERS and texts[-1] in (")", "]")):
        return False
    if texts[1:6] == ["^", "(", "-", "1", ")"]:
        return True
    opening = next((at for at, text in enumerate(texts) if text in ("(", "[")), 0)
    inside = tokens[opening + 1 : -1]
    if not inside or not {*texts[1:opening]} <= {"^", "-", "1", "'", "_", "n"}:
        return False
    if texts[1:opening] == ["^", "-", "1"]:
        return True
    if texts[:2] in (["P", "("], ["E", "("]):
        return True
    if texts[0].isupper() and len(inside) == 1 and inside[0].text.islower():
        return True
    numbers = all(token.kind == NUMBER or token.text in ("-", ",") for token in inside)
    return (texts[0] in "fghFGHPQ" and numbers) or (texts[0] in "nPEVN" and _are_sets(inside))


def _are_sets(tokens: list[Token]) -> bool:
    """Return whether tokens are only capital letters and set operators."""
    return all(token.text.isupper() if token.kind == LETTERS else token.text in _SETS for token in tokens)
