"""Quantities: a value and what stands behind it, or before it, to say of what: a unit, a currency, a noun."""

from __future__ import annotations

from collections.abc import Iterator

from rewardstack_rules.mathematics.numbers.tree import Expression
from rewardstack_rules.mathematics.reading.lexer import COMMAND, LETTERS, MARK, NUMBER, Token, UnreadError
from rewardstack_rules.mathematics.reading.names import UNIT_LETTERS, UNITS, names
from rewardstack_rules.mathematics.reading.parser import MOST_FACTORS, Parser
from rewardstack_rules.mathematics.reading.syntax import Quantity, Total
from rewardstack_rules.mathematics.reading.terms import expression

MOST_WORDS = 4
"""Words behind a value that are a unit or a noun; more are a sentence."""
CURRENCIES = {"$": "dollar", "€": "euro", "£": "gbp", "¥": "yen", "¢": "cent"}
TEMPERATURES = {"C": "celsius", "F": "fahrenheit"}
NO_UNIT = names(
    "or and is are not no if when where at least most than about between to wrong incorrect remainder R percent am pm"
    " AM PM a p noon midnight hundred thousand million billion trillion dozen half third quarter radians rad mod modulo"
    " base st nd rd th of the"
)
"""Words that change what a value is, or that begin something else than a unit."""
POWERS = names("squared cubed")
"""Words that are a part of a unit only behind its name."""
_JOINING = names("^ / * { } .")


def quantity(tokens: list[Token]) -> Quantity:
    """A value with its unit, from the tokens of an answer.

    Raises:
        UnreadError: there is no unit, or what stands there is none.
    """
    if tokens and tokens[0].text in CURRENCIES:
        return Quantity(_value(tokens[1:]), CURRENCIES[tokens[0].text])
    if len(tokens) > 1 and tokens[-1].text in CURRENCIES:
        return Quantity(_value(tokens[:-1]), CURRENCIES[tokens[-1].text])
    if tokens and tokens[-1].text == ".":
        tokens = tokens[:-1]
    if len(tokens) > 2 and tokens[-1].text in TEMPERATURES and any(token.text == "degree" for token in tokens[-3:-1]):
        return Quantity(_value([*_before_degree(tokens)]), TEMPERATURES[tokens[-1].text])
    start = len(tokens)
    while start > 0 and _continues_unit(tokens, start - 1):
        start -= 1
    while start < len(tokens) and tokens[start].kind != LETTERS:
        start += 1
    words = [token.text for token in tokens[start:] if token.kind == LETTERS]
    if not words or len(words) > MOST_WORDS or NO_UNIT.intersection(words) or words[0] in POWERS:
        raise UnreadError("no unit")
    if not all(_names_unit(token, tokens[start:]) for token in tokens[start:] if token.kind == LETTERS):
        raise UnreadError("letters that are factors")
    unit = "".join(f" {token.text}" if token.kind == LETTERS else token.text for token in tokens[start:])
    return Quantity(_value(tokens[:start]), unit.replace("{", "").replace("}", "").strip())


def total(tokens: list[Token]) -> Total:
    """Several quantities, side by side or joined by commas and "and".

    Raises:
        UnreadError: there is one at most, or one of them is not read.
    """
    groups: list[list[Token]] = [[]]
    for token in tokens:
        joins = token.text in (",", "and")
        if joins or (token.kind == NUMBER and groups[-1] and groups[-1][-1].kind == LETTERS):
            groups.append([])
        if not joins:
            groups[-1].append(token)
    groups = [group for group in groups if group]
    if not 2 <= len(groups) <= MOST_WORDS:
        raise UnreadError("no sum of quantities")
    return Total(tuple(map(quantity, groups)))


def _continues_unit(tokens: list[Token], at: int) -> bool:
    """Whether a token can stand in a unit: a word, a small power, a slash between two units."""
    token = tokens[at]
    if token.kind == LETTERS:
        return True
    if token.kind == NUMBER:
        return at > 1 and token.text in ("2", "3") and "^" in (tokens[at - 1].text, tokens[at - 2].text)
    return token.kind in (MARK, COMMAND) and token.text in _JOINING


def _names_unit(token: Token, unit: list[Token]) -> bool:
    """Whether letters are a word, or the sign of a unit; letters that are not upright may be factors."""
    if len(token.text) == 1:
        return token.text in UNIT_LETTERS and (token.word or any(one.text == "/" for one in unit))
    return token.word or len(token.text) > MOST_FACTORS or token.text in UNITS


def _before_degree(tokens: list[Token]) -> Iterator[Token]:
    """The tokens before the sign of degrees, and before the power that it may be written as."""
    end = max(at for at, token in enumerate(tokens) if token.text == "degree")
    while end > 0 and tokens[end - 1].text in ("^", "{"):
        end -= 1
    yield from tokens[:end]


def _value(tokens: list[Token]) -> Expression:
    if tokens and tokens[-1].text == ",":
        raise UnreadError("a comma before the unit")
    return expression(Parser(tokens).whole())
