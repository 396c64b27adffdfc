"""Two answers, compared by their types."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from itertools import product

from rewardstack_verifier.comparison.table import LETTERED, READERS, WORDED, equal_nodes
from rewardstack_verifier.numbers.tree import Symbol
from rewardstack_verifier.reading.brackets import chosen, divided, turned_inwards, with_commas
from rewardstack_verifier.reading.commas import is_certain, with_decimal_comma
from rewardstack_verifier.reading.lexer import LETTERS, Token, UnreadError, lex
from rewardstack_verifier.reading.quantities import UNIT_SIGNS
from rewardstack_verifier.reading.remarks import without_remarks
from rewardstack_verifier.reading.syntax import Choice, Date, Node, Relation, Remark, Time, is_expression
from rewardstack_verifier.reading.undone import undone
from rewardstack_verifier.reading.wording import remainder, remark
from rewardstack_verifier.stack import on_any_stack
from rewardstack_verifier.trail import tell

_IN_BRACKETS = re.compile(r"[\[({]\s*-?\d{1,3},\d{3}(?!\d)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
"""A comma of thousands, which in brackets may be between two numbers: `[45,103)`."""
REMEMBERED = 1024
"""Texts whose readings are remembered: several responses are compared with one reference."""
UNNAMED = Symbol("")
"""What is about a decimal where only that is said: `\\approx 3.5`."""
DECIDING = (Choice, Time, Date)
"""What both texts may be, they are."""


@on_any_stack
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
    is_compared = is_equal = False
    for one, other in product(found, expected):
        verdict = equal_nodes(one, other)
        is_compared |= verdict is not None
        if verdict:
            is_equal = True
            break
    if is_compared:
        tell("values")
    return is_equal if is_compared else None


@lru_cache(maxsize=REMEMBERED)
@on_any_stack
def readings(text: str) -> tuple[Node, ...]:
    """What a text may say; nothing where it is not read."""
    try:
        said = lex(text)
        tokens = turned_inwards(divided(chosen(with_commas(without_remarks(said)))))
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
