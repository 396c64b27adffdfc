"""Parse statements: a name or computation, an equals sign, and a value with a unit or a name in words."""

from __future__ import annotations

from contextlib import suppress

from rewardstack_verifier.lexicon import phrases
from rewardstack_verifier.reading.lexer import COMMAND, LETTERS, MARK, NUMBER, Token, UnreadError, first_read
from rewardstack_verifier.reading.names import FUNCTIONS, JOINING, RELATIONS
from rewardstack_verifier.reading.parser import MOST_FACTORS, formula
from rewardstack_verifier.reading.quantities import SIGNS, quantity, total, worded_value
from rewardstack_verifier.reading.syntax import Node, Quantity, Relation, Total, Words
from rewardstack_verifier.reading.terms import expression
from rewardstack_verifier.reading.units import named

MOST_TOKENS = 120
"""Maximum tokens of a statement."""
MOST_WORDS = 8
"""Maximum words of a name."""
_STATING = ("=", "approx")
_CHANGING_ALL = frozenset(phrases.CHANGING.split())
_CHANGING = _CHANGING_ALL - frozenset(phrases.WITHIN.split())
_PARTING = frozenset((",", ";", ":", "?", "&", "\\\\", "land", "lor", *RELATIONS))
"""Signs that separate statements, or parts of a statement."""


def stated(tokens: list[Token]) -> Relation:
    """Parse a statement: `V = 5 cm`, `21 - 14 = 7 eggs`, `Total = 5`.

    Raises:
        UnreadError: there is no equals sign, a side cannot be parsed, or no side has a unit or words, so that the
            tokens are a plain equation.
    """
    sides: list[list[Token]] = [[]]
    operators: list[str] = []
    for token in tokens[:MOST_TOKENS]:
        if token.text in _STATING and token.kind in (MARK, COMMAND):
            operators.append(RELATIONS[token.text])
            sides.append([])
        else:
            sides[-1].append(token)
    if not operators or not all(sides) or len(tokens) > MOST_TOKENS:
        raise UnreadError("not a statement")
    *steps, last = sides[1:]
    read_step = _side_or_text if steps else _side
    nodes = (_name_or_value(sides[0]), *map(read_step, steps), _side(last))
    if not any(isinstance(node, (Quantity, Total, Words)) for node in nodes):
        raise UnreadError("an equation")
    return Relation(tuple(operators), nodes)


def _side(tokens: list[Token]) -> Node:
    """Parse an expression, a quantity, a sum of quantities, or a computation with amounts of one currency."""
    with suppress(UnreadError):
        return first_read((quantity, worded_value, total, _added), tokens)
    sign = next((token.text for token in tokens if token.text in SIGNS), "")
    if not sign:
        raise UnreadError("not a value")
    return Quantity(worded_value([token for token in tokens if token.text != sign]), sign, named(sign))


def _added(tokens: list[Token]) -> Quantity:
    """Parse a sum of amounts in one unit: `5 cm + 20 cm`."""
    unit = next((token.text for token in tokens if token.kind == LETTERS), "")
    numbers = [token for token in tokens if token.kind != LETTERS or token.text != unit]
    meanings = named(unit) if unit else ()
    if not meanings or any(token.kind != NUMBER and token.text not in ("+", "-") for token in numbers):
        raise UnreadError("not a sum of amounts")
    return Quantity(expression(formula(numbers)), unit, meanings)


def _side_or_text(tokens: list[Token]) -> Node:
    """Parse a step of a chain; a formula that cannot be parsed becomes `Words`, which are not compared."""
    with suppress(UnreadError):
        return _side(tokens)
    if not all(map(_is_of_formula, tokens)):
        raise UnreadError("a step that may not be a formula")
    return Words(" ".join(token.text for token in tokens).lower())


def _is_of_formula(token: Token) -> bool:
    """Return whether a token can be part of a formula, and neither joins nor changes values."""
    if token.kind != LETTERS:
        return token.text not in _PARTING
    if token.text in _CHANGING_ALL or token.text in JOINING:
        return False
    return len(token.text) <= MOST_FACTORS or token.text in FUNCTIONS or bool(named(token.text))


def _name_or_value(tokens: list[Token]) -> Node:
    """Parse the first side of a statement: a name in words, an expression, or a quantity."""
    if any(token.text == "_" for token in tokens[:MOST_WORDS]):
        with suppress(UnreadError):
            return formula(tokens)  # a name with a subscript in words
        if tokens[0].word and all(token.kind == LETTERS or token.text in "_{}" for token in tokens):
            return Words("".join(token.text for token in tokens if token.kind == LETTERS).lower())
    if all(token.kind == LETTERS or token.text in "'-." for token in tokens) and _is_name(tokens):
        return Words(" ".join(token.text for token in tokens).lower())
    return _side(tokens)


def _is_name(tokens: list[Token]) -> bool:
    words = [token.text for token in tokens if token.kind == LETTERS]
    is_long = max(map(len, words), default=0) > MOST_FACTORS or any(
        token.word and len(token.text) > 1 for token in tokens
    )
    return 0 < len(words) <= MOST_WORDS and not _CHANGING & {*words} and is_long
