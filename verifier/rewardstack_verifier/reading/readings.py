"""Parse an answer with all readers (functions that parse tokens).

Each result is a reading: a tree for one possible meaning of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

from rewardstack_verifier.numbers.tree import Symbol
from rewardstack_verifier.reading.answer_lists import parse_labeled_answers, parse_phrase_list, parse_quantity_list
from rewardstack_verifier.reading.brackets import (
    drop_function_braces,
    replace_binomials,
    replace_point_bars,
    replace_tex_fractions,
    turn_brackets_inwards,
)
from rewardstack_verifier.reading.calendar import parse_date, parse_time
from rewardstack_verifier.reading.digits import (
    is_certainly_decimal,
    parse_bracketed_period,
    parse_lettered_digits,
    parse_sexagesimal,
    replace_decimal_comma,
)
from rewardstack_verifier.reading.lexer import LETTERS, Token, UnreadableError, tokenize
from rewardstack_verifier.reading.named_values import parse_named_value
from rewardstack_verifier.reading.operators import parse_result
from rewardstack_verifier.reading.parameters import parse_family
from rewardstack_verifier.reading.parser import parse_formula
from rewardstack_verifier.reading.quantities import UNIT_SIGNS, parse_mixed_number, parse_quantity, parse_total
from rewardstack_verifier.reading.remarks import drop_remarks
from rewardstack_verifier.reading.set_formulas import parse_set_formula
from rewardstack_verifier.reading.statements import parse_statement
from rewardstack_verifier.reading.syntax import Node, Relation, Remark, Time, is_expression
from rewardstack_verifier.reading.wording import (
    parse_choice,
    parse_choices,
    parse_numeral,
    parse_permutations,
    parse_phrase,
    parse_remainder,
    parse_remark,
    parse_spoken_formula,
    parse_verdict,
)
from rewardstack_verifier.stack import with_fresh_stack

Read = Callable[[list[Token]], Node]
READERS: tuple[Read, ...] = (
    *(
        parse_remainder,
        parse_choice,
        parse_time,
        parse_date,
        parse_family,
        parse_named_value,
        parse_formula,
        parse_result,
    ),
    *(parse_sexagesimal, parse_bracketed_period),
)
"""Readers for any text, in order; each may add a reading."""
LETTERED: tuple[Read, ...] = (
    *(parse_set_formula, parse_lettered_digits, parse_quantity, parse_statement, parse_total),
    *(parse_quantity_list, parse_phrase_list, parse_labeled_answers),
)
"""Additional readers for texts with letters or the sign of a unit."""
WORDED: tuple[Read, ...] = (
    parse_numeral,
    parse_mixed_number,
    parse_spoken_formula,
    parse_verdict,
    parse_choices,
    parse_permutations,
    parse_phrase,
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
        tokens = turn_brackets_inwards(
            replace_tex_fractions(replace_binomials(replace_point_bars(drop_function_braces(drop_remarks(lexed)))))
        )
    except UnreadableError:
        return ()
    found = _read(tokens)
    if lexed and lexed[0].text == "approx":
        found = [Relation(("~",), (UNNAMED, node)) if is_expression(node) else node for node in found]
    for found_in, replaced, replacement in _OTHER_SPELLINGS:
        if found_in.search(text):
            with suppress(UnreadableError):
                found += _read(drop_remarks(tokenize(replaced.sub(replacement, text))))
    if not found:
        with suppress(UnreadableError):
            found.append(parse_remark(tokens))
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
        tokens = drop_remarks(tokenize(text))
        return (
            () if must_be_certain and not is_certainly_decimal(tokens) else tuple(_read(replace_decimal_comma(tokens)))
        )
    return ()


def _read(tokens: list[Token]) -> list[Node]:
    found: list[Node] = []
    letters = [token for token in tokens if token.kind == LETTERS]
    has_words = any(len(token.text) > 1 or not token.text.isascii() for token in letters)
    has_letters = letters or not UNIT_SIGNS.isdisjoint(token.text for token in tokens)
    for reader in (*READERS, *(LETTERED if has_letters else ()), *(WORDED if has_words else ())):
        with suppress(UnreadableError):
            found.append(reader(tokens))
            if isinstance(found[-1], Time) and found[-1].minute < 10:
                break  # `10:05` is only a time; a ratio would be `10:5`
            if reader is parse_remainder:
                break  # in `5 R 2`, R is not a unit
    return found
