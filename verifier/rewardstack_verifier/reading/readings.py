"""Parse an answer with all readers (functions that parse tokens).

Each result is a reading: a tree for one possible meaning of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

from rewardstack_verifier.numbers.tree import Symbol
from rewardstack_verifier.reading import (
    brackets,
    calendar,
    digits,
    operators,
    parameters,
    parser,
    quantities,
    remarks,
    set_formulas,
    statements,
    wording,
)
from rewardstack_verifier.reading.lexer import LETTERS, Token, UnreadableError, tokenize
from rewardstack_verifier.reading.syntax import Node, Relation, Remark, Time, is_expression
from rewardstack_verifier.stack import with_fresh_stack

Read = Callable[[list[Token]], Node]
READERS: tuple[Read, ...] = (
    wording.parse_remainder,
    wording.parse_choice,
    calendar.parse_time,
    calendar.parse_date,
    parameters.parse_family,
    statements.parse_named_value,
    parser.parse_formula,
    operators.parse_result,
    digits.parse_sexagesimal,
    digits.parse_bracketed_period,
)
"""Readers for any text, in order; each may add a reading."""
LETTERED: tuple[Read, ...] = (
    set_formulas.parse_set_formula,
    digits.parse_lettered_digits,
    quantities.parse_quantity,
    statements.parse_statement,
    quantities.parse_total,
    wording.parse_quantity_list,
    wording.parse_phrase_list,
    wording.parse_labeled_answers,
)
"""Additional readers for texts with letters or the sign of a unit."""
WORDED: tuple[Read, ...] = (
    wording.parse_numeral,
    quantities.parse_mixed_number,
    wording.parse_spoken_formula,
    wording.parse_verdict,
    wording.parse_choices,
    wording.parse_permutations,
    wording.parse_phrase,
)
"""Additional readers for texts with words: several adjacent letters, or a letter that is not ASCII."""

_IN_BRACKETS = re.compile(r"[\[({]\s*-?\d{1,3},\d{3}(?!\d)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
"""A comma before three digits. In brackets, the comma may separate two numbers: `[45,103)`."""
_EULER = re.compile(r"(?<![\d.])(\d{1,9})e(?=[+-]\d(?!\d))")
"""A number before Euler's number: `2e-1` may be a difference, or a number in scientific notation."""
_OF = r"_(\{[\da-z+-]{1,4}\}|\d{1,4}|[a-z])\^(\{[\da-z+-]{1,4}\}|\d{1,4}|[a-z])"
_COMBINATIONS = re.compile(rf"(?<![A-Za-z\\])(?:\\mathrm\{{C\}}|C){_OF}")
_PERMUTATIONS = re.compile(rf"(?<![A-Za-z\\])(?:\\mathrm\{{[PA]\}}|[PA]){_OF}")
"""The number of permutations of 2 among 5 things, `A_5^2` or `P_5^2`; `_COMBINATIONS` matches `C_5^2`."""
_BASE = re.compile(
    r"\s*(?:\\text\{\s*\(?(?:in )?base (\d{1,2})\)?\s*\}|\\text\{\s*(?:in )?base\s*\}\s*(\d{1,2})"
    r"|\(?\b(?:in )?base (\d{1,2})\)?)"
)
"""The base of a number in words, with or without parentheses: `1101 \\text{ (base 2)}`."""
_DOTTED = re.compile(r"(?<=[.\d])\\dot\s?\{?(\d)\}?(?:(\d*)\\dot\s?\{?(\d)\}?)?")
"""The repeating digits of a decimal, with a dot above the first and last of them."""
_BARE_POINT = re.compile(r"(?<!\d)\.(?=\\overline\{\d)")
"""A point without a digit before it: `.\\overline{3}`."""
_FACTOR = re.compile(r"(?<![A-Za-z\\])([A-Za-z]?[ghGH])(?=\s*(?:\\left\s*)?\()(?!.*=)")
"""A letter that may name a function or be a factor: `g(M - m)`."""
_OTHER_SPELLINGS = (
    (_IN_BRACKETS, _THOUSANDS, ", "),
    (_EULER, _EULER, r"\1 e "),
    (_COMBINATIONS, _COMBINATIONS, r"\\binom{\1}{\2}"),
    (_PERMUTATIONS, _PERMUTATIONS, r"\\frac{\1!}{(\1-\2)!}"),
    (_FACTOR, _FACTOR, r"\1*"),
    (_BASE, _BASE, r"_{\1\2\3}"),
    (_DOTTED, _DOTTED, r"\\overline{\1\2\3}"),
    (_BARE_POINT, _BARE_POINT, "0."),
)
"""Alternative notations: a text that matches the first pattern is also parsed with the second pattern replaced."""
CACHED_TEXTS = 1024
"""Number of texts whose readings are cached. Several responses share a reference, so a cache saves time."""
UNNAMED = Symbol("")
"""The symbol for the missing left side of `\\approx 3.5`."""


@lru_cache(maxsize=CACHED_TEXTS)
@with_fresh_stack
def parse_readings(text: str) -> tuple[Node, ...]:
    """Return all readings of a text; empty if it cannot be parsed."""
    try:
        lexed = tokenize(text)
        tokens = brackets.normalize_notations(remarks.drop_remarks(lexed))
    except UnreadableError:
        return ()
    found = _read(tokens)
    if lexed and lexed[0].text == "approx":
        found = [Relation(("~",), (UNNAMED, node)) if is_expression(node) else node for node in found]
    for found_in, replaced, replacement in _OTHER_SPELLINGS:
        if found_in.search(text):
            with suppress(UnreadableError):
                found += _read(remarks.drop_remarks(tokenize(replaced.sub(replacement, text))))
    if not found:
        with suppress(UnreadableError):
            found.append(wording.parse_remark(tokens))
    return tuple(found)


def is_readable(reference: str) -> bool:
    """Return whether a reference can be parsed; `bounds.refusal` must accept it."""
    return any(not isinstance(reading, Remark) for reading in parse_readings(reference))


@lru_cache(maxsize=CACHED_TEXTS)
@with_fresh_stack
def parse_with_decimal_comma(text: str, must_be_certain: bool = False) -> tuple[Node, ...]:
    """Return all readings of a text whose only comma is taken as a decimal comma; empty if that is not possible.

    Args:
        text: text of an answer or a reference.
        must_be_certain: whether only a comma that is certainly decimal is accepted. The comma in `3,5` is not accepted,
            because it may separate two numbers.
    """
    if "," not in text and "\uff0c" not in text and "\u066b" not in text:
        return ()
    with suppress(UnreadableError):
        tokens = remarks.drop_remarks(tokenize(text))
        if not must_be_certain or digits.is_certainly_decimal(tokens):
            return tuple(_read(digits.replace_decimal_comma(tokens)))
    return ()


def _read(tokens: list[Token]) -> list[Node]:
    found: list[Node] = []
    letters = [token for token in tokens if token.kind == LETTERS]
    has_words = any(len(token.text) > 1 or not token.text.isascii() for token in letters)
    has_letters = letters or not quantities.UNIT_SIGNS.isdisjoint(token.text for token in tokens)
    for reader in (*READERS, *(LETTERED if has_letters else ()), *(WORDED if has_words else ())):
        with suppress(UnreadableError):
            found.append(reader(tokens))
            if isinstance(found[-1], Time) and found[-1].minute < 10:
                break  # `10:05` is only a time; a ratio would be `10:5`
            if reader is wording.parse_remainder:
                break  # in `5 R 2`, R is not a unit
    return found
