"""Two answers, compared by their types."""

from __future__ import annotations

from itertools import product

from rewardstack_verifier.comparison.table import equal_nodes
from rewardstack_verifier.reading.readings import readings, readings_by_comma
from rewardstack_verifier.reading.syntax import Choice, Date, Time
from rewardstack_verifier.reading.undone import undone
from rewardstack_verifier.stack import on_any_stack
from rewardstack_verifier.trail import tell

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
