"""Parse lists of answers that are not formulas: names, letters of choices, quantities."""

from __future__ import annotations

from collections.abc import Callable

from rewardstack_verifier.reading.lexer import LETTERS, Token, UnreadError, first_read
from rewardstack_verifier.reading.names import JOINING
from rewardstack_verifier.reading.parser import formula
from rewardstack_verifier.reading.quantities import quantity, worded_value
from rewardstack_verifier.reading.syntax import Node, Quantity, Sequence
from rewardstack_verifier.reading.wording import choice, phrase

MOST_ITEMS = 20
"""Maximum number of answers in a list."""
LABELS = "abcdefgh"
"""Labels of the parts of a question."""


def several_phrases(tokens: list[Token]) -> Sequence:
    """Parse names, verdicts or letters that are joined by commas and words such as "and".

    Raises:
        UnreadError: there are fewer than two, or an item is neither a phrase nor a choice.
    """
    return _several(tokens, (choice, phrase))


def several_quantities(tokens: list[Token]) -> Sequence:
    """Parse quantities that are joined by commas and words such as "and"; some units may be omitted.

    Raises:
        UnreadError: there are fewer than two, an item cannot be parsed, or no item has a unit.
    """
    found = _several(tokens, (worded_value, quantity))
    if not any(isinstance(item, Quantity) for item in found.items):
        raise UnreadError("no quantities")
    return found


def labeled(tokens: list[Token]) -> Sequence:
    """Parse the answers to the parts of a question: `(a) 3 (b) 4`.

    Raises:
        UnreadError: the text does not begin with a label, has no second label, or an answer cannot be parsed.
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
            raise UnreadError("no label")
        parts[-1].append(tokens[at])
        at += 1
    answers = [first_read((formula, worded_value, quantity, phrase), _without_joint(part)) for part in parts]
    if len(answers) < 2:
        raise UnreadError("not several")
    return Sequence("", tuple(answers), "", (",",) * (len(answers) - 1))


def _without_joint(tokens: list[Token]) -> list[Token]:
    """Remove the commas and words that join the answer to a part to the next answer."""
    end = len(tokens)
    while end and (tokens[end - 1].text in (",", ";") or JOINING.get(tokens[end - 1].text) == "and"):
        end -= 1
    return tokens[:end]


def _several(tokens: list[Token], readers: tuple[Callable[[list[Token]], Node], ...]) -> Sequence:
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
    if not 2 <= len(groups) <= MOST_ITEMS or not all(groups):
        raise UnreadError("not several")
    return Sequence("", tuple(first_read(readers, group) for group in groups), "", tuple(joined))
