"""What a text may say: every reading that an answer has, as a tree each."""

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
from rewardstack_verifier.reading.series import labelled, several_phrases, several_quantities
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
"""What a text may be read as, in order; a text of two meanings has a reading of each."""
LETTERED: tuple[Read, ...] = (
    *(lettered_digits, quantity, stated, total),
    *(several_quantities, several_phrases, labelled),
)
"""What it may be as well where letters or the sign of a unit stand in it."""
WORDED: tuple[Read, ...] = (numeral, mixed_number, spoken, verdict, choices, phrase)
"""What it may be as well where there are letters side by side."""

_IN_BRACKETS = re.compile(r"[\[({]\s*-?\d{1,3},\d{3}(?!\d)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
"""A comma of thousands, which in brackets may be between two numbers: `[45,103)`."""
REMEMBERED = 1024
"""Texts whose readings are remembered: several responses are compared with one reference."""
UNNAMED = Symbol("")
"""What is about a decimal where only that is said: `\\approx 3.5`."""


@lru_cache(maxsize=REMEMBERED)
@on_any_stack
def readings(text: str) -> tuple[Node, ...]:
    """What a text may say; nothing where it is not read."""
    try:
        said = lex(text)
        tokens = turned_inwards(divided(chosen(with_commas(without_braces(without_remarks(said))))))
    except UnreadError:
        return ()
    found = _read(tokens)
    if said and said[0].text == "approx":
        found = [Relation(("~",), (UNNAMED, node)) if is_expression(node) else node for node in found]
    if _IN_BRACKETS.search(text):
        with suppress(UnreadError):
            found += _read(without_remarks(lex(_THOUSANDS.sub(", ", text))))
    if not found:
        with suppress(UnreadError):
            found.append(remark(tokens))
    return tuple(found)


def is_readable(reference: str) -> bool:
    """Return whether a reference, within the bounds, says anything that an answer could equal."""
    return any(not isinstance(reading, Remark) for reading in readings(reference))


@lru_cache(maxsize=REMEMBERED)
@on_any_stack
def readings_by_comma(text: str, certain: bool = False) -> tuple[Node, ...]:
    """What a text may say if its comma is a decimal one; nothing where it has none.

    Args:
        text: of an answer, where one number is asked for; `3,5` in a reference asks for two.
        certain: only where the comma can be nothing else.
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
                break  # `10:05` is no ratio
            if reader is remainder:
                break  # R is no unit
    return found
