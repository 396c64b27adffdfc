"""Parse times of day and dates in several languages."""

from __future__ import annotations

import re

from rewardstack_verifier.lexicon import calendar as lexicon
from rewardstack_verifier.reading import numerals
from rewardstack_verifier.reading.lexer import COMMAND, Token, UnreadableError
from rewardstack_verifier.reading.syntax import Date, Time
from rewardstack_verifier.reading.terms import require
from rewardstack_verifier.reading.wording import to_text

MAX_LETTERS = 60
"""Maximum characters, and maximum tokens, of a time or date."""


def _number_by_name(rows: dict[str, str]) -> dict[str, int]:
    """Return the number of each month or weekday by its name, counted from 1."""
    return {
        name: at for row in rows.values() for at, names in enumerate(row.split(), start=1) for name in names.split("|")
    }


def _match_any(names: object) -> str:
    """Return a pattern that matches any of several phrases, the longest first."""
    assert isinstance(names, (str, dict))
    phrases = names.split("|") if isinstance(names, str) else list(names)
    return "|".join(re.escape(name).replace("\\ ", " ?") for name in sorted(phrases, key=len, reverse=True))


_MONTHS, _WEEKDAYS = _number_by_name(lexicon.MONTHS), _number_by_name(lexicon.WEEKDAYS)
_HALF = f"(?:(?P<morning>{_match_any(lexicon.MORNING)})|(?P<afternoon>{_match_any(lexicon.AFTERNOON)}))"
_HALF_FIRST = _HALF.replace("<morning>", "<early>").replace("<afternoon>", "<late>")
"""Matches a word such as "a.m." that is written before the hour; `_HALF` matches one that is written after it."""
_TIME = re.compile(
    rf"(?:{_HALF_FIRST} ?)?(?P<hour>\d{{1,2}}) ?"
    rf"(?:(?P<sign>:|{_match_any(lexicon.HOUR)}) ?(?P<minute>[0-5]\d)?(?::(?P<second>[0-5]\d))?(?P<past>半)?"
    rf" ?(?:分|uhr|h|min)?)? ?{_HALF}?"
)
_JOINING = rf"(?:(?:{'|'.join(lexicon.JOINING.split())}) )?"
_WEEKDAY = rf"(?:(?P<weekday>{_match_any(_WEEKDAYS)})\.?,? ?)?"
_MONTH = rf"(?P<month>{_match_any(_MONTHS)})\.?"
_DAY = r"(?:the )?(?P<day>\d{1,2})(?: ?(?:st|nd|rd|th))?\.?"
_YEAR = rf"(?:,? ?{_JOINING}(?P<year>\d{{4}}))?"
_DATES = tuple(
    re.compile(form)
    for form in (
        rf"{_JOINING}{_WEEKDAY}{_MONTH} ?{_DAY}{_YEAR}",
        rf"{_JOINING}{_WEEKDAY}{_JOINING}{_DAY} ?{_JOINING}{_MONTH}{_YEAR}",
        r"(?P<year>\d{4})[-/](?P<number>0?[1-9]|1[0-2])[-/](?P<day>\d{1,2})",
        r"(?P<day>1[3-9]|2\d|3[01])[./](?P<number>0?[1-9]|1[0-2])[./](?P<year>\d{4})",
        r"(?P<number>0?[1-9]|1[0-2])/(?P<day>1[3-9]|2\d|3[01])/(?P<year>\d{4})",
        r"(?P<day>\d{1,2})\. ?(?P<number>0?[1-9]|1[0-2])\.(?P<year>\d{4})",
        r"(?:(?P<year>\d{4}) ?年 ?)?(?P<number>\d{1,2}) ?月 ?(?P<day>\d{1,2}) ?[日号]?",
    )
)
"""Formats of a date. Digits are a date only if it is clear which number is the day: `13/4/2020`, but not `3/4/2020`."""


def parse_time(tokens: list[Token]) -> Time:
    """Parse a time of day.

    Raises:
        UnreadableError: the tokens are not a time of day.
    """
    text = _to_line(tokens)
    if text in lexicon.NAMED_HOURS:
        return Time(12, 0, lexicon.NAMED_HOURS[text])
    phrase, _, hour = text.rpartition(" ")
    if phrase in lexicon.QUARTERS:
        return _parse_spoken_time(hour, lexicon.QUARTERS[phrase])
    first, _, rest = text.partition(" ")
    value = numerals.parse_number_words([first]) if rest else None
    match = _TIME.fullmatch(text if value is None else f"{value} {rest}")
    if match is None or int(match["hour"]) > 24:
        raise UnreadableError("not a time of day")
    early, late = match["morning"] or match["early"], match["afternoon"] or match["late"]
    require((early or late or match["sign"]) and (match["sign"] != ":" or match["minute"]), "a number")
    require(match["sign"] not in lexicon.DURATION.split() or match["minute"], "hours, which may be a duration")
    minute = 30 if match["past"] else int(match["minute"] or 0)
    half = "a" if early else "p" if late else ""
    return Time(int(match["hour"]), minute, half, int(match["second"] or 0))


def _parse_spoken_time(hour: str, minutes: int) -> Time:
    """Parse the hour of a phrase such as "half past three", and add the minutes, which may be negative."""
    value = int(hour) if hour.isdecimal() else numerals.parse_number_words([hour])
    if value is None or not 0 < value < 25:
        raise UnreadableError("not an hour")
    return Time(int(value) - (minutes < 0), minutes % 60, "")


def parse_date(tokens: list[Token]) -> Date:
    """Parse a date; the year may be omitted.

    Raises:
        UnreadableError: the tokens are not a date.
    """
    text = _to_line(tokens)
    match = next((match for form in _DATES if (match := form.fullmatch(text))), None)
    if match is None or not 0 < int(match["day"]) < 32:
        raise UnreadableError("not a date")
    found = match.groupdict()
    month = _MONTHS[found["month"]] if found.get("month") else int(found["number"])
    weekday = _WEEKDAYS[found["weekday"]] if found.get("weekday") else 0
    require(0 < month < 13, "not a month")
    return Date(month, int(match["day"]), found.get("year") or "", weekday)


def _to_line(tokens: list[Token]) -> str:
    """Return the tokens as text in lower case, without braces.

    Raises:
        UnreadableError: the text is longer than any date, or contains a LaTeX command.
    """
    require(len(tokens) <= MAX_LETTERS and not any(token.kind == COMMAND for token in tokens), "no date or time")
    text = to_text([token for token in tokens if token.text not in ("{", "}")]).lower().strip(" .")
    text = text.replace(" .", ".")
    require(len(text) <= MAX_LETTERS, "too long")
    return text
