"""Answers in words: names, letters of a choice, units."""

from __future__ import annotations

import re

from rewardstack_rules.mathematics.notation import plain

_UNITS = {
    "mm": "mm millimeter millimetre",
    "cm": "cm centimeter centimetre",
    "m": "m meter metre",
    "km": "km kilometer kilometre",
    "in": "in inch inche",
    "ft": "ft foot feet",
    "yd": "yd yard",
    "mi": "mi mile",
    "g": "g gram",
    "kg": "kg kilogram",
    "mg": "mg milligram",
    "lb": "lb pound",
    "oz": "oz ounce",
    "ml": "ml milliliter millilitre",
    "l": "l liter litre",
    "s": "s sec second",
    "min": "min minute",
    "h": "h hr hour",
    "day": "day",
    "week": "week",
    "month": "month",
    "year": "year yr",
    "dollar": "dollar buck usd",
    "cent": "cent",
    "mph": "mph",
}
_SYMBOLS = {name: symbol for symbol, names in _UNITS.items() for name in names.split()}
_SHORT = "|".join(sorted((name for name in _SYMBOLS if len(name) == 2), key=len))

_PHRASE = re.compile(r"[A-Za-z][A-Za-z' -]*")
_CHOICE = re.compile(r"\(?\s*([A-Z])\s*\)?")
_LABELLED = re.compile(r"(?:\(([A-Z])\)|([A-Z])[).:])\s.*")
_IN_TEXT = r"\s*/?\s*\\text\{[^{}]*[A-Za-z][^{}]*\}(?:\s*\^\s*\{?-?\d\}?)?"
_IN_WORDS = (
    rf"(?:\s+(?:[A-Za-z]{{3,}}|{_SHORT})|(?<=\d)(?:{_SHORT}))\b\.?"
    r"(?:[ /-]+(?!(?:and|or)\b)[A-Za-z]+\.?)*(?:\s*\^\s*\{?\d\}?)?"
)
_MEASURE = re.compile(rf"(.*?(?:[\d}})]|\\pi))((?:{_IN_TEXT})+|{_IN_WORDS})")


def phrase(text: str) -> str | None:
    """The words that a tidied text is, lower-cased; None where it is mathematics.

    Two letters can be a product, so only longer words, or those in `\\text{…}`, are words.
    """
    words = plain(text).strip("'\"() ")
    if not _PHRASE.fullmatch(words):
        return None
    if "\\text" not in text and not any(len(word) > 2 for word in words.split()):
        return None
    return " ".join(re.sub(r"\b(?:the|an?)\b|-", " ", words.lower()).split()) or None


def choice(text: str) -> str | None:
    """The letter of a choice, with or without parentheses and what it stands for: `(B)`, `B`, `B. 12`."""
    words = plain(text)
    match = _CHOICE.fullmatch(words) or _LABELLED.fullmatch(words)
    return next((group for group in match.groups() if group), None) if match else None


def measure(text: str) -> tuple[str, str]:
    """A tidied text without its unit, and the unit in one word; empty where there is none."""
    match = _MEASURE.fullmatch(text)
    if match is None:
        return text, ""
    unit = plain(match[2]).strip(" ./").lower()
    unit = unit[:-1] if len(unit) > 3 and unit.endswith("s") else unit
    return match[1].strip(), _SYMBOLS.get(unit, unit)


def units_differ(one: str, other: str) -> bool:
    """Whether two units are known not to be the same; what is unknown, or left out, is not."""
    return one != other and one in _UNITS and other in _UNITS
