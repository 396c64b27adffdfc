"""Parse lists of answers that are not formulas: names, letters of choices, quantities."""

from __future__ import annotations

from collections.abc import Callable

from rewardstack_verifier.reading.lexer import LETTERS, Token, UnreadableError, parse_first
from rewardstack_verifier.reading.names import JOINING
from rewardstack_verifier.reading.parser import parse_formula
from rewardstack_verifier.reading.quantities import parse_quantity, parse_worded_value
from rewardstack_verifier.reading.syntax import Node, Quantity, Sequence
from rewardstack_verifier.reading.wording import parse_choice, parse_phrase

MAX_ITEMS = 20
"""Maximum number of answers in a list."""
LABELS = "abcdefgh"
"""Labels of the parts of a question."""


def parse_phrase_list(tokens: list[Token]) -> Sequence:
    """Parse a list of names, letters of choices, or words such as "yes", joined by commas and words such as "and".

    Raises:
        UnreadableError: there are fewer than two or too many items, or an item is neither a phrase nor a choice.
    """
    return _parse_list(tokens, (parse_choice, parse_phrase))


def parse_quantity_list(tokens: list[Token]) -> Sequence:
    """Parse a list of quantities, joined by commas and words such as "and"; some units may be omitted.

    Raises:
        UnreadableError: there are fewer than two or too many items, an item cannot be parsed, or no item has a unit.
    """
    found = _parse_list(tokens, (parse_quantity, parse_worded_value))
    if not any(isinstance(item, Quantity) for item in found.items):
        raise UnreadableError("no quantities")
    return found


def parse_labeled_answers(tokens: list[Token]) -> Sequence:
    """Parse the answers to the parts of a question: `(a) 3 (b) 4`.

    Raises:
        UnreadableError: the text does not begin with a label or has no second label, or an answer cannot be parsed.
    """
    parts: list[list[Token]] = []
    at = 0
    while at < len(tokens):
        label = "".join(token.text for token in tokens[at : at + 3])
        if len(parts) < len(LABELS) and label == f"({LABELS[len(parts)]})":
            parts.append([])
            at += 3
            continue
        if not parts:
            raise UnreadableError("no label")
        parts[-1].append(tokens[at])
        at += 1
    answers = [
        parse_first((parse_formula, parse_worded_value, parse_quantity, parse_phrase), _drop_joiner(part))
        for part in parts
    ]
    if len(answers) < 2:
        raise UnreadableError("not several")
    return Sequence("", tuple(answers), "", (",",) * (len(answers) - 1))


def _drop_joiner(tokens: list[Token]) -> list[Token]:
    """Remove the commas and words at the end of an answer that join it to the next answer."""
    end = len(tokens)
    while end and (tokens[end - 1].text in (",", ";") or JOINING.get(tokens[end - 1].text) == "and"):
        end -= 1
    return tokens[:end]


def _parse_list(tokens: list[Token], readers: tuple[Callable[[list[Token]], Node], ...]) -> Sequence:
    groups: list[list[Token]] = [[]]
    joined: list[str] = []
    for token in tokens:
        joiner = "," if token.text == "," else JOINING.get(token.text, "") if token.kind == LETTERS else ""
        if joiner not in (",", "and", "or"):
            groups[-1].append(token)
        elif groups[-1]:
            groups.append([])
            joined.append(joiner)
        elif joined:
            joined[-1] = joiner
    if not 2 <= len(groups) <= MAX_ITEMS or not all(groups):
        raise UnreadableError("not several")
    return Sequence("", tuple(parse_first(readers, group) for group in groups), "", tuple(joined))
