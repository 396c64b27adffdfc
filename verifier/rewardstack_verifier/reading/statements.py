"""Values and quantities with what they are equal to before them: `V = 5 cm`, `21 - 14 = 7 eggs`, `Total = 5`."""

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
"""Of a statement."""
MOST_WORDS = 8
"""Of a name."""
_STATING = ("=", "approx")
_CHANGING_ALL = frozenset(phrases.CHANGING.split())
_CHANGING = _CHANGING_ALL - frozenset(phrases.WITHIN.split())
_PARTING = frozenset((",", ";", ":", "?", "&", "\\\\", "land", "lor", *RELATIONS))
"""Signs between two statements, or parts of one."""


def stated(tokens: list[Token]) -> Relation:
    """A value or quantity with what it is equal to before it: `V = 5 cm`, `21 - 14 = 7 eggs`, `Total = 5`.

    Raises:
        UnreadError: there is no equals sign, or neither words nor a unit, so that it is an equation in letters.
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
        raise UnreadError("nothing is stated")
    *steps, last = sides[1:]
    read_step = _side_or_text if steps else _side
    nodes = (_name_or_value(sides[0]), *map(read_step, steps), _side(last))
    if not any(isinstance(node, (Quantity, Total, Words)) for node in nodes):
        raise UnreadError("an equation")
    return Relation(tuple(operators), nodes)


def _side(tokens: list[Token]) -> Node:
    """An expression, a quantity, several that add up, or a computation with amounts of one currency."""
    with suppress(UnreadError):
        return first_read((quantity, worded_value, total, _added), tokens)
    sign = next((token.text for token in tokens if token.text in SIGNS), "")
    if not sign:
        raise UnreadError("no value")
    return Quantity(worded_value([token for token in tokens if token.text != sign]), sign, named(sign))


def _added(tokens: list[Token]) -> Quantity:
    """A sum of amounts in one unit: `5 cm + 20 cm`."""
    unit = next((token.text for token in tokens if token.kind == LETTERS), "")
    numbers = [token for token in tokens if token.kind != LETTERS or token.text != unit]
    meanings = named(unit) if unit else ()
    if not meanings or any(token.kind != NUMBER and token.text not in ("+", "-") for token in numbers):
        raise UnreadError("no sum of amounts")
    return Quantity(expression(formula(numbers)), unit, meanings)


def _side_or_text(tokens: list[Token]) -> Node:
    """A step of a chain; as words, which say no value, where it is a formula that is not read."""
    with suppress(UnreadError):
        return _side(tokens)
    if not all(map(_is_of_formula, tokens)):
        raise UnreadError("a step that may be none")
    return Words(" ".join(token.text for token in tokens).lower())


def _is_of_formula(token: Token) -> bool:
    """Whether a token may stand in a formula, and neither joins nor changes anything."""
    if token.kind != LETTERS:
        return token.text not in _PARTING
    if token.text in _CHANGING_ALL or token.text in JOINING:
        return False
    return len(token.text) <= MOST_FACTORS or token.text in FUNCTIONS or bool(named(token.text))


def _name_or_value(tokens: list[Token]) -> Node:
    """What is said of a value: an expression, a quantity, or words."""
    if any(token.text == "_" for token in tokens[:MOST_WORDS]):
        with suppress(UnreadError):
            return formula(tokens)  # a name with words below it
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
