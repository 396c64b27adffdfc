"""Answers in words: names, letters of a choice, numbers, times of day."""

from __future__ import annotations

import re

from rewardstack_rules.mathematics.notation import plain

_PHRASE = re.compile(r"[A-Za-z][A-Za-z' -]*")
_CHOICE = re.compile(r"(?:(?:[Oo]ption|[Cc]hoice)\s+)?\(?\s*([A-Z])\s*\)?")
_LABELLED = re.compile(r"(?:\(([A-Z])\)|([A-Z])[).:])\s(.*)")
_CLOCK = re.compile(r"(\d{1,2}):([0-5]\d)(?:\s*([ap])\.?m\.?)?", re.IGNORECASE)
_ONES = [
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
]
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NUMERALS = {name: value for value, name in enumerate(_ONES)} | {
    " ".join((ten, one)).strip(): 20 + 10 * index + value
    for index, ten in enumerate(_TENS)
    for value, one in enumerate(["", *_ONES[1:10]])
}


def phrase(text: str) -> str | None:
    """The words that a tidied text is, lower-cased; None where it is mathematics.

    Two letters can be a product, so only longer words, or those in `\\text{…}`, are words.
    """
    words = plain(text).strip("'\"() .")
    if not _PHRASE.fullmatch(words):
        return None
    if "\\text" not in text and not any(len(word) > 2 for word in words.split()):
        return None
    return " ".join(re.sub(r"\b(?:the|an?)\b|-", " ", words.lower()).split()) or None


def numeral(text: str) -> str | None:
    """The digits of a number below a hundred in words, such as `twenty-four`."""
    words = phrase(text)
    value = _NUMERALS.get(words) if words else None
    return None if value is None else str(value)


def choice(text: str) -> str | None:
    """The letter of a choice, with or without parentheses and what it stands for: `(B)`, `B`, `B. 12`, `option B`."""
    return labelled(text)[0]


def labelled(text: str) -> tuple[str | None, str]:
    """The letter of a choice, None where there is none, and what it stands for, empty where that is not said."""
    words = plain(text)
    match = _CHOICE.fullmatch(words)
    if match is not None:
        return match[1], ""
    match = _LABELLED.fullmatch(words)
    return (match[1] or match[2], match[3].strip()) if match else (None, "")


def clock(text: str) -> tuple[int, int, str] | None:
    """The time of day that a tidied text is: hour, minute, and `a`, `p` or nothing for its half of the day."""
    match = _CLOCK.fullmatch(plain(text))
    return (int(match[1]), int(match[2]), (match[3] or "").lower()) if match and int(match[1]) < 25 else None


def same_time(one: tuple[int, int, str], other: tuple[int, int, str]) -> bool:
    """Whether two times are the same; one may leave out its half of the day."""
    return one[:2] == other[:2] and (one[2] == other[2] or not (one[2] and other[2]))
