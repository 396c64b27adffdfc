"""Answers in words: letters of a choice, times of day, dates, numbers in words, names and verdicts."""

from __future__ import annotations

import re
from fractions import Fraction

from rewardstack_rules.mathematics import numerals, words
from rewardstack_rules.mathematics.numbers.tree import Number
from rewardstack_rules.mathematics.reading.lexer import LETTERS, NUMBER, Token, UnreadError
from rewardstack_rules.mathematics.reading.parser import formula
from rewardstack_rules.mathematics.reading.syntax import Choice, Date, NamedSet, Time, Words

_CHOICE = re.compile(r"(?:(?:option|choice|Option|Choice) )?\(?([A-J])\)?[.:]?")
_TIME = re.compile(r"(\d{1,2})(?::([0-5]\d)(?: ?([ap])\.? ?m\.?)?| ?([ap])\.? ?m\.?| o'? ?clock)", re.IGNORECASE)
_NAMED_HOURS = {"noon": "p", "12 noon": "p", "midnight": "a", "12 midnight": "a"}
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"(?:the )?(?P<day>\d{1,2})(?: ?(?:st|nd|rd|th))?"
_WEEKDAY = r"(?:(?P<weekday>mon|tues|wednes|thurs|fri|satur|sun)day,? ?)?"
_YEAR = r"(?:,? ?(?P<year>\d{4}))?"
_DATES = tuple(
    re.compile(f"(?:on )?{_WEEKDAY}{form}{_YEAR}") for form in (rf"{_MONTH} {_DAY}", rf"{_DAY} (?:of )?{_MONTH}")
)
_JOINED = re.compile(r"\b(?:and|or)\b")
_SETS = {
    "empty set": "empty",
    "empty": "empty",
    "all real number": "R",
    "all real": "R",
    "all integer": "Z",
}
"""Phrases that name a set."""


def choice(tokens: list[Token]) -> Choice:
    """A letter of multiple choice, and what it stands for.

    Raises:
        UnreadError: it is none.
    """
    alone = _CHOICE.fullmatch(said(tokens))
    if alone:
        return Choice(alone[1])
    if len(tokens) > 3 and tokens[0].text == "(" and tokens[2].text == ")" and _CHOICE.fullmatch(tokens[1].text):
        return Choice(tokens[1].text, formula(tokens[3:]))
    if len(tokens) > 2 and tokens[1].text in (".", ":", ")") and _CHOICE.fullmatch(tokens[0].text):
        return Choice(tokens[0].text, formula(tokens[2:]))
    if len(tokens) > 3 and tokens[-3].text == "(" and tokens[-1].text == ")" and _CHOICE.fullmatch(tokens[-2].text):
        return Choice(tokens[-2].text, formula(tokens[:-3]))
    raise UnreadError("no choice")


def time_of_day(tokens: list[Token]) -> Time:
    """A time of day.

    Raises:
        UnreadError: it is none.
    """
    text = said(tokens).removesuffix(".")
    if text.lower() in _NAMED_HOURS:
        return Time(12, 0, _NAMED_HOURS[text.lower()])
    match = _TIME.fullmatch(text)
    if match is None or int(match[1]) > 24:
        raise UnreadError("no time of day")
    return Time(int(match[1]), int(match[2] or 0), (match[3] or match[4] or "").lower())


def date(tokens: list[Token]) -> Date:
    """A day of a year.

    Raises:
        UnreadError: it is none.
    """
    text = said(tokens).lower().strip(" .")
    match = next((match for form in _DATES if (match := form.fullmatch(text))), None)
    if match is None or not 0 < int(match["day"]) < 32:
        raise UnreadError("no date")
    return Date(match["month"][:3], int(match["day"]), match["year"] or "", match["weekday"] or "")


def phrase(tokens: list[Token]) -> Words | NamedSet | Number:
    """Words, without articles and plurals; a number or a set where they name one.

    Raises:
        UnreadError: it is mathematics: two letters can be a product, so only longer words, or upright ones, are words.
    """
    text = said(tokens).strip("'\"() .")
    upright = all(token.word for token in tokens if token.kind == LETTERS)
    if _JOINED.search(text):
        raise UnreadError("several")
    if not words.is_phrase(text, upright):
        raise UnreadError("no words")
    singular = words.singular(text)
    common = words.in_common_form(singular)
    value = numerals.number(singular)
    if value is not None:
        return Number(_fraction(value))
    if singular in _SETS:
        return NamedSet(_SETS[singular])
    if not common:
        raise UnreadError("no words")
    return Words(common)


def said(tokens: list[Token]) -> str:
    """The tokens as a line of text, with a space before each word or number that follows one, and behind commas."""
    line = ""
    for token in tokens:
        spaced = token.kind in (LETTERS, NUMBER) and line[-1:].isalnum()
        line += f" {token.text}" if spaced or line.endswith(",") else token.text
    return line


def _fraction(numeral: str) -> Fraction:
    """Of a number as `numerals` writes it: `-7`, `\\frac{1}{2}`."""
    over, _, under = numeral.replace("\\frac{", "").rstrip("}").partition("}{")
    return Fraction(int(over), int(under or 1))
