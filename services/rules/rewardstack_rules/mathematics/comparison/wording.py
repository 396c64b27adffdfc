"""Choices, times of day, dates and words."""

from __future__ import annotations

from collections.abc import Callable

from rewardstack_rules.mathematics import words
from rewardstack_rules.mathematics.reading.syntax import Choice, Date, NamedSet, Node, Time, Words

_NOTHING = (Words("no solution"), Words("no real solution"), NamedSet("empty"))


def equal_choices(answer: Choice, reference: Choice) -> bool:
    """Whether two letters are the same; what they stand for does not count."""
    return answer.letter == reference.letter


def equal_choice_and_value(choice: Choice, value: Node, equal: Callable[[Node, Node], bool | None]) -> bool | None:
    """Whether what a letter stands for is a value; None where that is not said."""
    return None if choice.value is None else equal(choice.value, value)


def equal_times(answer: Time, reference: Time) -> bool:
    """Whether two times are the same; one may leave out its half of the day."""
    return words.same_time(*((time.hour, time.minute, time.half) for time in (answer, reference)))


def equal_dates(answer: Date, reference: Date) -> bool:
    """Whether two dates are the same, as far as both say."""
    same = (answer.month, answer.day) == (reference.month, reference.day)
    details = ((answer.year, reference.year), (answer.weekday, reference.weekday))
    return same and all(one == other for one, other in details if one and other)


def equal_words(answer: Node, reference: Node) -> bool | None:
    """Whether words say the same; that there is no solution is the empty set."""
    if answer in _NOTHING and reference in _NOTHING:
        return True
    return False if isinstance(answer, Words) and isinstance(reference, Words) else None
