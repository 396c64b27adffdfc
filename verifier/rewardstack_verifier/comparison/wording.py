"""Compare choices, times of day, dates and words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import get_args

from rewardstack_verifier.numbers.tree import Expression, Number
from rewardstack_verifier.reading.syntax import Choice, Date, NamedSet, Node, Quantity, Remark, Time, Total, Words

_VALUES = (*get_args(Expression), Quantity, Total, Words, Choice, Time, Date)
_NO_SOLUTION = (Words("no solution"), Words("no real solution"), NamedSet("empty"))


def equal_choices(answer: Choice, reference: Choice) -> bool:
    """Return whether two choices have the same letter; the texts of their options are not compared."""
    return answer.letter == reference.letter


def equal_choice_and_value(choice: Choice, value: Node, equal: Callable[[Node, Node], bool | None]) -> bool | None:
    """Return whether the option text of a choice equals a value; False if the choice is only a letter."""
    return False if choice.value is None else equal(choice.value, value)


def equal_times(answer: Time, reference: Time) -> bool:
    """Return whether two times are equal; either may omit a.m. or p.m."""
    if bool(answer.half) != bool(reference.half):
        answer, reference = _to_half_day(answer), _to_half_day(reference)
    one, other = ((time.hour, time.minute, time.second) for time in (answer, reference))
    return one == other and (answer.half == reference.half or not (answer.half and reference.half))


def _to_half_day(time: Time) -> Time:
    """Return 15:30 as 3:30 p.m.; other times unchanged."""
    return replace(time, hour=time.hour - 12, half="p") if 12 < time.hour < 24 and not time.half else time


def equal_dates(answer: Date, reference: Date) -> bool:
    """Return whether two dates are equal; year and weekday are compared only if both dates have them."""
    same = (answer.month, answer.day) == (reference.month, reference.day)
    details = ((answer.year, reference.year), (answer.weekday, reference.weekday))
    return same and all(one == other for one, other in details if one and other)


def equal_in_words(answer: Node, reference: Node) -> bool | None:
    """Compare two answers, at least one of which is words, a remark, a time, or a date.

    "No solution" equals the empty set. A full hour may be given as a number: 3 for 3:00.
    """
    if isinstance(answer, Time) and isinstance(reference, Time):
        return equal_times(answer, reference)
    if isinstance(answer, Date) and isinstance(reference, Date):
        return equal_dates(answer, reference)
    if isinstance(answer, Time) or isinstance(reference, Time):
        time, other = (answer, reference) if isinstance(answer, Time) else (reference, answer)
        if not (isinstance(other, Number) and isinstance(time, Time)):
            return False
        return (other.value, 0, 0) == (time.hour, time.minute, time.second)
    if isinstance(answer, Remark) or isinstance(reference, Remark):
        other = reference if isinstance(answer, Remark) else answer
        return False if isinstance(other, _VALUES) else None
    return answer in _NO_SOLUTION and reference in _NO_SOLUTION
