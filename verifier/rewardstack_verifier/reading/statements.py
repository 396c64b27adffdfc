"""Parse statements: equations that contain a unit, a noun or a name in words."""

from __future__ import annotations

from contextlib import suppress

from rewardstack_verifier.lexicon import phrases
from rewardstack_verifier.reading.lexer import COMMAND, LETTERS, MARK, NUMBER, Token, UnreadableError, parse_first
from rewardstack_verifier.reading.names import FUNCTIONS, JOINING, RELATIONS
from rewardstack_verifier.reading.parser import MAX_FACTORS, parse_formula
from rewardstack_verifier.reading.quantities import SIGNS, parse_quantity, parse_total, parse_worded_value
from rewardstack_verifier.reading.syntax import Node, Quantity, Relation, Total, Words
from rewardstack_verifier.reading.terms import require_expression
from rewardstack_verifier.reading.units import units_by_name

MAX_TOKENS = 120
"""Maximum tokens of a statement."""
MAX_WORDS = 8
"""Maximum words of a name."""
_STATING = ("=", "approx")
_CHANGING_ALL = frozenset(phrases.CHANGING.split())
_CHANGING = _CHANGING_ALL - frozenset(phrases.WITHIN.split())
_PARTING = frozenset((",", ";", ":", "?", "&", "\\\\", "land", "lor", *RELATIONS))
"""Signs that separate statements, or parts of a statement."""


def parse_statement(tokens: list[Token]) -> Relation:
    """Parse a statement: `V = 5 cm`, `21 - 14 = 7 eggs`, `Total = 5`.

    Raises:
        UnreadableError: there is no equals sign, a side cannot be parsed, or no side has a unit or words (a plain
            equation).
    """
    sides: list[list[Token]] = [[]]
    operators: list[str] = []
    for token in tokens[:MAX_TOKENS]:
        if token.text in _STATING and token.kind in (MARK, COMMAND):
            operators.append(RELATIONS[token.text])
            sides.append([])
        else:
            sides[-1].append(token)
    if not operators or not all(sides) or len(tokens) > MAX_TOKENS:
        raise UnreadableError("not a statement")
    *steps, last = sides[1:]
    read_step = _parse_side_or_text if steps else _parse_side
    nodes = (_parse_first_side(sides[0]), *map(read_step, steps), _parse_side(last))
    if not any(isinstance(node, (Quantity, Total, Words)) for node in nodes):
        raise UnreadableError("an equation")
    return Relation(tuple(operators), nodes)


def _parse_side(tokens: list[Token]) -> Node:
    """Parse an expression, a quantity, a sum of quantities, or a computation with amounts of one currency."""
    with suppress(UnreadableError):
        return parse_first((parse_quantity, parse_worded_value, parse_total, _parse_sum_of_amounts), tokens)
    sign = next((token.text for token in tokens if token.text in SIGNS), "")
    if not sign:
        raise UnreadableError("not a value")
    return Quantity(parse_worded_value([token for token in tokens if token.text != sign]), units_by_name(sign))


def _parse_sum_of_amounts(tokens: list[Token]) -> Quantity:
    """Parse a sum of amounts in one unit: `5 cm + 20 cm`."""
    unit = next((token.text for token in tokens if token.kind == LETTERS), "")
    numbers = [token for token in tokens if token.kind != LETTERS or token.text != unit]
    meanings = units_by_name(unit) if unit else ()
    if not meanings or any(token.kind != NUMBER and token.text not in ("+", "-") for token in numbers):
        raise UnreadableError("not a sum of amounts")
    return Quantity(require_expression(parse_formula(numbers)), meanings)


def _parse_side_or_text(tokens: list[Token]) -> Node:
    """Parse a side between two equals signs. An unreadable formula becomes `Words`, which are not compared."""
    with suppress(UnreadableError):
        return _parse_side(tokens)
    if not all(map(_is_of_formula, tokens)):
        raise UnreadableError("a step that may not be a formula")
    return Words(" ".join(token.text for token in tokens).lower())


def _is_of_formula(token: Token) -> bool:
    """Return whether a token can be part of a formula: neither a separator nor a word that joins or changes values."""
    if token.kind != LETTERS:
        return token.text not in _PARTING
    if token.text in _CHANGING_ALL or token.text in JOINING:
        return False
    return len(token.text) <= MAX_FACTORS or token.text in FUNCTIONS or bool(units_by_name(token.text))


def _parse_first_side(tokens: list[Token]) -> Node:
    """Parse the first side of a statement: a name in words, an expression, or a quantity."""
    if any(token.text == "_" for token in tokens[:MAX_WORDS]):
        with suppress(UnreadableError):
            return parse_formula(tokens)  # a name with a subscript in words
        if tokens[0].word and all(token.kind == LETTERS or token.text in "_{}" for token in tokens):
            return Words("".join(token.text for token in tokens if token.kind == LETTERS).lower())
    if all(token.kind == LETTERS or token.text in "'-." for token in tokens) and _is_name(tokens):
        return Words(" ".join(token.text for token in tokens).lower())
    return _parse_side(tokens)


def _is_name(tokens: list[Token]) -> bool:
    words = [token.text for token in tokens if token.kind == LETTERS]
    is_long = max(map(len, words), default=0) > MAX_FACTORS or any(
        token.word and len(token.text) > 1 for token in tokens
    )
    return 0 < len(words) <= MAX_WORDS and not _CHANGING & {*words} and is_long
