"""Parse an answer with all readers: each possible meaning of the text, a reading, is a tree."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

from rewardstack_verifier.numbers.tree import Symbol
from rewardstack_verifier.reading.brackets import chosen, divided, turned_inwards, with_commas, without_braces
from rewardstack_verifier.reading.calendar import date, time_of_day
from rewardstack_verifier.reading.digits import (
    bracketed_period,
    is_certain,
    lettered_digits,
    sexagesimal,
    with_decimal_comma,
)
from rewardstack_verifier.reading.lexer import LETTERS, Token, UnreadError, lex
from rewardstack_verifier.reading.named import named
from rewardstack_verifier.reading.parameters import family
from rewardstack_verifier.reading.parser import formula
from rewardstack_verifier.reading.quantities import UNIT_SIGNS, mixed_number, quantity, total
from rewardstack_verifier.reading.remarks import without_remarks
from rewardstack_verifier.reading.series import labeled, several_phrases, several_quantities
from rewardstack_verifier.reading.statements import stated
from rewardstack_verifier.reading.syntax import Node, Relation, Remark, Time, is_expression
from rewardstack_verifier.reading.undone import result
from rewardstack_verifier.reading.wording import (
    choice,
    choices,
    numeral,
    phrase,
    remainder,
    remark,
    spoken,
    verdict,
)
from rewardstack_verifier.stack import on_any_stack

Read = Callable[[list[Token]], Node]
READERS: tuple[Read, ...] = (
    *(remainder, choice, time_of_day, date, family, named, formula, result),
    *(sexagesimal, bracketed_period),
)
"""Readers that are tried for any text, in order. Each may add a reading."""
LETTERED: tuple[Read, ...] = (
    *(lettered_digits, quantity, stated, total),
    *(several_quantities, several_phrases, labeled),
)
"""Readers that are also tried if the text has letters or the sign of a unit."""
WORDED: tuple[Read, ...] = (numeral, mixed_number, spoken, verdict, choices, phrase)
"""Readers that are also tried if the text has adjacent letters."""

_IN_BRACKETS = re.compile(r"[\[({]\s*-?\d{1,3},\d{3}(?!\d)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
"""A comma before three digits, which in brackets may separate two numbers: `[45,103)`."""
CACHED_TEXTS = 1024
"""Number of texts whose readings are cached, because several responses share a reference."""
UNNAMED = Symbol("")
"""The left side of an approximation that has none: `\\approx 3.5`."""


@lru_cache(maxsize=CACHED_TEXTS)
@on_any_stack
def readings(text: str) -> tuple[Node, ...]:
    """Return all readings of a text; empty if it cannot be parsed."""
    try:
        lexed = lex(text)
        tokens = turned_inwards(divided(chosen(with_commas(without_braces(without_remarks(lexed))))))
    except UnreadError:
        return ()
    found = _read(tokens)
    if lexed and lexed[0].text == "approx":
        found = [Relation(("~",), (UNNAMED, node)) if is_expression(node) else node for node in found]
    if _IN_BRACKETS.search(text):
        with suppress(UnreadError):
            found += _read(without_remarks(lex(_THOUSANDS.sub(", ", text))))
    if not found:
        with suppress(UnreadError):
            found.append(remark(tokens))
    return tuple(found)


def is_readable(reference: str) -> bool:
    """Return whether a reference can be parsed, so that an answer can equal it; `bounds.refusal` must accept it."""
    return any(not isinstance(reading, Remark) for reading in readings(reference))


@lru_cache(maxsize=CACHED_TEXTS)
@on_any_stack
def readings_by_comma(text: str, certain: bool = False) -> tuple[Node, ...]:
    """Return all readings of a text with its comma as a decimal comma; empty if it has no such comma.

    Args:
        text: text of an answer or a reference.
        certain: whether the comma must certainly be decimal: set it for references, in which `3,5` is two numbers.
    """
    if "," not in text and "\uff0c" not in text and "\u066b" not in text:
        return ()
    with suppress(UnreadError):
        tokens = without_remarks(lex(text))
        return () if certain and not is_certain(tokens) else tuple(_read(with_decimal_comma(tokens)))
    return ()


def _read(tokens: list[Token]) -> list[Node]:
    found: list[Node] = []
    letters = [token for token in tokens if token.kind == LETTERS]
    worded = any(len(token.text) > 1 or not token.text.isascii() for token in letters)
    lettered = letters or not UNIT_SIGNS.isdisjoint(token.text for token in tokens)
    for reader in (*READERS, *(LETTERED if lettered else ()), *(WORDED if worded else ())):
        with suppress(UnreadError):
            found.append(reader(tokens))
            if isinstance(found[-1], Time) and found[-1].minute < 10:
                break  # `10:05` is not a ratio
            if reader is remainder:
                break  # R is not a unit
    return found
