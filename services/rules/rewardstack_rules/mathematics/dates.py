"""Dates: `March 5th`, `5 March 2024`, `Saturday, May 4`."""

from __future__ import annotations

import re
from typing import NamedTuple

from rewardstack_rules.mathematics.notation import unformatted

_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"(?:the )?(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_WEEKDAY = r"(?:(?P<weekday>mon|tues|wednes|thurs|fri|satur|sun)day,? )?"
_YEAR = r"(?:,? ?(?P<year>\d{4}))?"
_FORMS = tuple(
    re.compile(f"(?:on )?{_WEEKDAY}{form}{_YEAR}") for form in (rf"{_MONTH} {_DAY}", rf"{_DAY} (?:of )?{_MONTH}")
)


class Date(NamedTuple):
    """A day of a year; the year and the day of the week are empty where they are not said."""

    month: str
    day: int
    year: str
    weekday: str


def read(text: str) -> Date | None:
    """The date that a tidied text is; None for anything else."""
    words = unformatted(text).lower().replace(" ,", ",").strip(" .")
    match = next((match for form in _FORMS if (match := form.fullmatch(words))), None)
    if match is None or not 0 < int(match["day"]) < 32:
        return None
    return Date(match["month"][:3], int(match["day"]), match["year"] or "", match["weekday"] or "")


def same(one: Date, other: Date) -> bool:
    """Whether two dates are the same, as far as both say."""
    return one[:2] == other[:2] and all(a == b for a, b in zip(one[2:], other[2:], strict=True) if a and b)
