"""Parse statements, `V = 5 cm`, and values with names that are not expressions: `P(A) = 1/3`, `f(5) = 25`."""

from __future__ import annotations

from contextlib import suppress

from rewardstack_verifier.lexicon import phrases
from rewardstack_verifier.numbers.tree import Symbol
from rewardstack_verifier.reading.digits import parse_sexagesimal
from rewardstack_verifier.reading.lexer import COMMAND, LETTERS, MARK, NUMBER, Token, UnreadableError, parse_first
from rewardstack_verifier.reading.names import FUNCTIONS, GREEK, JOINING, RELATIONS, word_set
from rewardstack_verifier.reading.parser import MAX_FACTORS, parse_formula
from rewardstack_verifier.reading.quantities import SIGNS, parse_quantity, parse_total, parse_worded_value
from rewardstack_verifier.reading.syntax import Node, Quantity, Relation, Sequence, Total, Words
from rewardstack_verifier.reading.terms import require, require_expression
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
_NAMING = word_set(
    "angle triangle # nabla mathbb det dim rank ker tr max min sup inf Var var Cov Pr Area area vol perimeter"
)
"""Tokens with which a name can begin."""
_FUNCTIONS = word_set("sin cos tan cot sec csc log ln")
_SETS = word_set("cup cap setminus | ( ) { } , ' ^ c")
"""Tokens that can be beside the letters of sets."""
_BRACES = word_set("{ }")
MAX_NAME_TOKENS = 16
"""Maximum tokens of a name."""


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
    require(operators and all(sides) and len(tokens) <= MAX_TOKENS, "not a statement")
    *steps, last = sides[1:]
    read_step = _parse_side_or_text if steps else _parse_side
    nodes = (_parse_first_side(sides[0]), *map(read_step, steps), _parse_side(last))
    require(any(isinstance(node, (Quantity, Total, Words)) for node in nodes), "an equation")
    return Relation(tuple(operators), nodes)


def _parse_side(tokens: list[Token]) -> Node:
    """Parse an expression, a quantity, a sum of quantities, or a computation with amounts of one currency."""
    with suppress(UnreadableError):
        return parse_first((parse_quantity, parse_worded_value, parse_total, _parse_sum_of_amounts), tokens)
    sign = next((token.text for token in tokens if token.text in SIGNS), "")
    require(sign, "not a value")
    return Quantity(parse_worded_value([token for token in tokens if token.text != sign]), units_by_name(sign))


def _parse_sum_of_amounts(tokens: list[Token]) -> Quantity:
    """Parse a sum of amounts in one unit: `5 cm + 20 cm`."""
    unit = next((token.text for token in tokens if token.kind == LETTERS), "")
    numbers = [token for token in tokens if token.kind != LETTERS or token.text != unit]
    meanings = units_by_name(unit) if unit else ()
    require(meanings and all(token.kind == NUMBER or token.text in ("+", "-") for token in numbers), "not a sum")
    return Quantity(require_expression(parse_formula(numbers)), meanings)


def _parse_side_or_text(tokens: list[Token]) -> Node:
    """Parse a side between two equals signs. An unreadable formula becomes `Words`, which are not compared."""
    with suppress(UnreadableError):
        return _parse_side(tokens)
    require(all(map(_is_of_formula, tokens)), "a step that may not be a formula")
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
    if all(token.kind == LETTERS or token.text in "'-." for token in tokens) and _is_name_in_words(tokens):
        return Words(" ".join(token.text for token in tokens).lower())
    return _parse_side(tokens)


def _is_name_in_words(tokens: list[Token]) -> bool:
    words = [token.text for token in tokens if token.kind == LETTERS]
    is_long = max(map(len, words), default=0) > MAX_FACTORS or any(
        token.word and len(token.text) > 1 for token in tokens
    )
    return 0 < len(words) <= MAX_WORDS and not _CHANGING & {*words} and is_long


def parse_named_value(tokens: list[Token]) -> Relation:
    """Parse a name, an equals sign and a value; the name becomes a symbol and is not evaluated.

    A point with its letter, `A(3, 4)`, needs no equals sign.

    Raises:
        UnreadableError: the tokens do not begin with a name, or the value cannot be parsed.
    """
    if (point := _point(tokens)) is not None:
        return point
    at = _equals_sign(tokens[: MAX_NAME_TOKENS + 1])
    name = [token for token in tokens[:at] if token.text not in _BRACES]
    require(name and _is_name(name), "no name")
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
