"""Two answers, compared by their types."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache

from rewardstack_rules.mathematics.comparison.structures import equal_nodes
from rewardstack_rules.mathematics.reading.brackets import turned_inwards
from rewardstack_rules.mathematics.reading.calendar import date, time_of_day
from rewardstack_rules.mathematics.reading.commas import is_certain, with_decimal_comma
from rewardstack_rules.mathematics.reading.lexer import LETTERS, Token, UnreadError, lex
from rewardstack_rules.mathematics.reading.named import named
from rewardstack_rules.mathematics.reading.parameters import family
from rewardstack_rules.mathematics.reading.parser import formula
from rewardstack_rules.mathematics.reading.quantities import UNIT_SIGNS, quantity, total
from rewardstack_rules.mathematics.reading.remarks import without_remarks
from rewardstack_rules.mathematics.reading.series import several_phrases, several_quantities
from rewardstack_rules.mathematics.reading.sexagesimal import sexagesimal
from rewardstack_rules.mathematics.reading.statements import stated
from rewardstack_rules.mathematics.reading.syntax import Choice, Date, Node, Time
from rewardstack_rules.mathematics.reading.undone import result, undone
from rewardstack_rules.mathematics.reading.wording import (
    choice,
    choices,
    mixed_number,
    numeral,
    phrase,
    remainder,
    remark,
    spoken,
    verdict,
)
from rewardstack_rules.mathematics.trail import tell

_IN_BRACKETS = re.compile(r"[\[({]\s*-?\d{1,3},\d{3}(?!\d)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
"""A comma of thousands, which in brackets may be between two numbers: `[45,103)`."""
REMEMBERED = 1024
"""Texts whose readings are remembered: several responses are compared with one reference."""
READERS = (remainder, choice, time_of_day, date, family, named, formula, result, sexagesimal)
"""What a text may be read as, in order; a text of two meanings has a reading of each."""
LETTERED = (quantity, stated, total, several_quantities, several_phrases)
"""What it may be as well where letters or the sign of a unit stand in it."""
WORDED = (numeral, mixed_number, spoken, verdict, choices, phrase)
"""What it may be as well where there are letters side by side."""

DECIDING = (Choice, Time, Date)
"""What both texts may be, they are."""


def compare(answer: str, reference: str) -> bool | None:
    """Whether an answer is the reference, by their values.

    Args:
        answer: within the bounds.
        reference: within the bounds.

    Returns:
        Whether any reading of one equals one of the other; None where no two are compared. Work that the reference does
        not leave undone is none that an answer may.
    """
    if undone(answer) - undone(reference):
        tell("values")
        return False
    found = readings(answer) + readings_by_comma(answer)
    expected = readings(reference) + readings_by_comma(reference, certain=True)
    if found and expected and type(found[0]) is type(expected[0]) in DECIDING:
        found, expected = found[:1], expected[:1]
    verdicts = [equal_nodes(one, other) for one in found for other in expected]
    if True in verdicts or False in verdicts:
        tell("values")
        return True in verdicts
    return None


@lru_cache(maxsize=REMEMBERED)
def readings(text: str) -> tuple[Node, ...]:
    """What a text may say; nothing where it is not read."""
    try:
        tokens = turned_inwards(without_remarks(lex(text)))
    except UnreadError:
        return ()
    found = _read(tokens)
    if _IN_BRACKETS.search(text):
        with suppress(UnreadError):
            found += _read(without_remarks(lex(_THOUSANDS.sub(", ", text))))
    if not found:
        with suppress(UnreadError):
            found.append(remark(tokens))
    return tuple(found)


@lru_cache(maxsize=REMEMBERED)
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
