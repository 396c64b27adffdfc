"""Parse formulas of sets or statements, `\\overline{A \\cup B}`: equal formulas have the same truth table."""

from __future__ import annotations

import re
from collections.abc import Callable

from rewardstack_verifier.reading.lexer import Token, UnreadableError
from rewardstack_verifier.reading.syntax import SetFormula

MAX_LETTERS = 6
"""Maximum number of different letters in a formula."""
MAX_TOKENS = 60
"""Maximum tokens of a formula, which limits the depth of its brackets."""
_OPERATORS: dict[str, Callable[[int, int], int]] = {
    **dict.fromkeys(("cup", "lor"), int.__or__),
    **dict.fromkeys(("cap", "land"), int.__and__),
    **dict.fromkeys(("setminus", "-"), lambda one, other: one & ~other),
}
_BEHIND = re.compile(r"\^ (?:\{ )?(?:[cC]|complement)(?: \})?")
_BEFORE = re.compile(r"(?:lnot|complement(?: _ U)?)(?= )")


def parse_set_formula(tokens: list[Token]) -> SetFormula:
    """Parse a formula of letters, such as `A \\cap \\overline{B}` or `(A \\cup B)^c`.

    Raises:
        UnreadableError: the tokens have no operation of sets, or are not a formula of single letters.
    """
    if len(tokens) > MAX_TOKENS or not {"cup", "cap", "setminus", "land", "lor"} & {token.text for token in tokens}:
        raise UnreadableError("no operation of sets")
    rest = _BEFORE.sub("neg", _BEHIND.sub("'", " ".join(token.text for token in tokens))).split()
    letters = sorted({text for text in rest if len(text) == 1 and text.isalpha()})
    if not 0 < len(letters) <= MAX_LETTERS:
        raise UnreadableError("no letters")
    rows = range(1 << len(letters))
    tables = {letter: sum(1 << row for row in rows if row >> at & 1) for at, letter in enumerate(letters)}
    return SetFormula(tuple(letters), _formula([*rest, ""], "", tables, (1 << len(rows)) - 1))


def _formula(rest: list[str], closing: str, tables: dict[str, int], everything: int) -> int:
    """Consume operands with one operation between them, and the closing bracket; return their table."""
    value, operator = _operand(rest, tables, everything), rest[0]
    while rest[0] == operator and operator in _OPERATORS:  # different operations need brackets
        rest.pop(0)
        value = _OPERATORS[operator](value, _operand(rest, tables, everything))
    if rest.pop(0) != closing:
        raise UnreadableError("not a formula of sets")
    return value


def _operand(rest: list[str], tables: dict[str, int], everything: int) -> int:
    text = rest.pop(0)
    if text in ("neg", "bar"):
        value = everything ^ _operand(rest, tables, everything)
    elif text in ("(", "{"):
        value = _formula(rest, {"(": ")", "{": "}"}[text], tables, everything)
    elif text in tables:
        value = tables[text]
    else:
        raise UnreadableError(f"{text!r} in a formula of sets")
    while rest[0] == "'":
        value ^= everything
        rest.pop(0)
    return value
