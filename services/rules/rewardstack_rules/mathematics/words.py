"""Answers in words: names, letters of a choice, numbers, times of day."""

from __future__ import annotations

import re

from rewardstack_rules.mathematics import numerals
from rewardstack_rules.mathematics.notation import unformatted

_PHRASE = re.compile(r"[A-Za-z][A-Za-z' -]*")
_PLURAL = re.compile(r"(?<=[a-z]{3}[a-rt-z])s\b")
_WORD = re.compile(r"\w{4}|(?=\w*[aeiouAEIOU])\w{3}|[A-Z]\w{2}|^[Nn]o$")
_CHOICE = re.compile(r"(?:(?:[Oo]ption|[Cc]hoice)\s+)?\(?\s*([A-Z])\s*\)?")
_LABELLED = re.compile(r"(?:\(([A-Z])\)|([A-Z])[).:])\s(.*)")
_LABELLED_BEHIND = re.compile(r"([-\d\\].*?) \(([A-J])\)")
_CLOCK = re.compile(r"(\d{1,2})(?::([0-5]\d)(?:\s*([ap])\.?\s?m\.?)?|\s*([ap])\.?\s?m\.?|\s*o'?clock)", re.IGNORECASE)
_NAMED_HOURS = {"noon": "p", "12 noon": "p", "midnight": "a", "12 midnight": "a"}
_TWICE = re.compile(r"([A-Za-z][A-Za-z -]*?) \((\d+)\)")
_SAME = {
    "no real root": "no real solution",
    "no root": "no solution",
    "no such integer": "no solution",
    "no such number": "no solution",
    "dne": "does not exist",
    "no solution exists": "no solution",
    "no solution exist": "no solution",
    "infinite": "infinitely many",
    "infinite solution": "infinitely many",
    "infinitely many solution": "infinitely many",
}
_NOTHING = re.compile(r"\\emptyset|\\text\{\s*(?:the )?empty set\s*\}|(?:the )?empty set")
_NO_SOLUTION = "no solution"
_HAS = re.compile(
    r"(?:\w+ ){0,4}?(?:(?:has|have) (?=(?:no|infinite|infinitely|one|two|exactly|many)\b)|is (?=undefined))"
)
_CLASS = re.compile(r"(?<=\w) (?:function|number|integer|triangle)$")


def phrase(text: str) -> str | None:
    """The words that a tidied text is, lower-cased; None where it is mathematics.

    Two letters can be a product, so only longer words, or those in `\\text{…}`, are words.
    """
    words = unformatted(text).strip("'\"() .")
    if not is_phrase(words, upright="\\text" in text):
        return None
    return in_common_form(singular(words)) or None


def is_phrase(text: str, upright: bool) -> bool:
    """Whether a text is words: upright ones, or longer than two letters, which can be a product."""
    return bool(_PHRASE.fullmatch(text)) and (upright or any(map(_WORD.search, text.split())))


def singular(text: str) -> str:
    """Words in small letters, without articles, plurals, and what introduces them."""
    said = re.sub(r"\b(?:the|an?|there (?:is|are)|it is|on)\b|-", " ", text.lower())
    return _HAS.sub("", " ".join(_PLURAL.sub("", said).split()), count=1)


def in_common_form(words: str) -> str:
    """The one of several phrases that stands for all that say the same.

    Args:
        words: from `singular`.
    """
    return _SAME.get(words) or _CLASS.sub("", words)


def numeral(text: str) -> str | None:
    """The number that a tidied text says in words, such as `twenty-four`."""
    twice = _TWICE.fullmatch(text)
    words = phrase(twice[1] if twice else text)
    value = numerals.number(words) if words else None
    return value if twice is None or value == twice[2] else None


def says_nothing(text: str) -> bool:
    """Whether a tidied text is the empty set, or says that there is no solution."""
    return _NOTHING.fullmatch(text.strip()) is not None or phrase(text) in (_NO_SOLUTION, "no real solution", "empty")


def choice(text: str) -> str | None:
    """The letter of a choice, with or without parentheses and what it stands for: `(B)`, `B`, `B. 12`, `option B`."""
    return labelled(text)[0]


def labelled(text: str) -> tuple[str | None, str]:
    """The letter of a choice, None where there is none, and what it stands for, empty where that is not said."""
    words = unformatted(text)
    match = _CHOICE.fullmatch(words)
    if match is not None:
        return match[1], ""
    match = _LABELLED.fullmatch(words)
    if match is not None:
        return match[1] or match[2], match[3].strip()
    behind = _LABELLED_BEHIND.fullmatch(words)
    return (behind[2], behind[1]) if behind else (None, "")


def clock(text: str) -> tuple[int, int, str] | None:
    """The time of day that a tidied text is: hour, minute, and `a`, `p` or nothing for its half of the day."""
    words = unformatted(text)
    if words.lower() in _NAMED_HOURS:
        return 12, 0, _NAMED_HOURS[words.lower()]
    match = _CLOCK.fullmatch(words)
    if match is None or int(match[1]) > 24:
        return None
    return int(match[1]), int(match[2] or 0), (match[3] or match[4] or "").lower()


def same_time(one: tuple[int, int, str], other: tuple[int, int, str]) -> bool:
    """Whether two times are the same; one may leave out its half of the day."""
    if bool(one[2]) != bool(other[2]):
        one, other = _of_half_day(one), _of_half_day(other)
    return one[:2] == other[:2] and (one[2] == other[2] or not (one[2] and other[2]))


def _of_half_day(time: tuple[int, int, str]) -> tuple[int, int, str]:
    """15:30 as 3:30 p.m."""
    hour, minute, half = time
    return (hour - 12, minute, "p") if 12 < hour < 24 and not half else time
