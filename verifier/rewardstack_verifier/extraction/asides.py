"""What English says beside a value without changing it, "7, not 8", and what it corrects: "it should be 15"."""

from __future__ import annotations

import re

from rewardstack_verifier.extraction.sentences import sentence_start

_VALUE = r"[-\u2212$\\(\[\d√π]|[A-J]\b"
_DENIED = re.compile(
    r"(?:(?<=[\d$)}%\]²³°])|(?<=\b[A-J]))(?:,\s|\s\(|\s)(?:(?:and|but)\s)?(?:(?:definitely|certainly|clearly|surely)\s)?"
    rf"(?:not|rather than|instead of|as opposed to)\s(?={_VALUE})(?![^.]{{0,80}}\bbut\b)"
    r"(?:[^,;.()\n]|\.\d){0,80}\)?(?=[.,;]|\Z)"
)
_CONFIDENT = re.compile(r",\s(?:and\s)?I(?:'m| am) (?:\w+ )?(?:confident|sure|certain|positive)\b[^.\n]*(?=\.|\Z)")
_IN_WORDS = re.compile(r"(?<=\d)\s\((?!(?:or|maybe|about|not)\b)[a-z][a-z -]{2,40}\)(?=[.,;]|\Z)")
"""What a number is in words: "36 (thirty-six)"."""
_WITHIN = re.compile(r"(?<![\w\\$])([A-Za-z]) (?:lies|is) (?:in|within)(?: the interval)? (?=[(\[])")
_OF_ALL = re.compile(
    r"(?:(?<=/\d)|(?<=/\d\d)|(?<=\d%))\sof (?:the|his|her|their|its|all)\b[^\d$\\,.;]{0,60}(?=[.,;]|\Z)"
)
"""What a part is of: "7/15 of the total"."""
_FROM_TO = re.compile(r"(?<=%),\sfrom\s\$?\d[\d.,]{0,20}[a-z]{0,12}\sto\s\$?\d[\d.,]{0,20}[a-z]{0,12}(?=\.?\Z)")
_REMARK = re.compile(
    r"(?<=[\w$)}%\]]);\s(?:[^;.\n]|\.\d){0,80}?\b(?:too|extraneous|not|fails?|rejected|discarded|invalid|impossible)\b"
    r"[^;.\n]{0,80}(?=\.?\Z)"
)
_RESTATED = re.compile(r"(?<=[\w)}$°]),?\sor\s(?:about\s)?\d+(?:\.\d+)?\s?(%|percent|degrees|°)(?=\.?\Z)")
"""What a value is in another unit: "π/6 radians, or 30 degrees"."""
_BASE = re.compile(r"(?<![\w.])([0-9A-F]+) in (?:base (\d{1,2})|(binary|octal|hexadecimal))(?=\.?\Z)")
_BASES = {"binary": "2", "octal": "8", "hexadecimal": "16"}
_BELOW_ZERO = re.compile(r"(?<![\d.-])(\d+(?:\.\d+)?(?: degrees?)?(?: Celsius| Fahrenheit)?) below zero")
_EQUALS = re.compile(rf"(?<![\w\\$])([A-Za-z]) (?:equals|is equal to) (?={_VALUE})")
_CORRECTED = re.compile(
    r"\b(?:(?:it|that|this|the (?:correct |right |actual |true )?(?:answer|value|result|number|total))\s"
    r"(?:(?:should|must)(?: instead| actually| really)? (?:be|have been)|is (?:actually|in fact|really|instead))"
    r"|in (?:fact|reality|truth|actuality),? (?:it|the (?:answer|value|result)) is)[\s:]+"
    rf"(?P<value>(?:{_VALUE})(?:[^?!;,\n]|,(?=\d{{3}}|\s?[-\d(])){{0,60}}?)\.?\s*\Z",
    re.IGNORECASE,
)


def without_asides(text: str) -> str:
    """A text whose last sentence says of its value neither what it is not nor how sure one is of it, and that in signs.

    Args:
        text: the end of a response, in English.
    """
    start = sentence_start(text)
    sentence = text[start:]
    for pattern in (_CONFIDENT, _REMARK, _DENIED, _FROM_TO, _OF_ALL):
        sentence = pattern.sub("", sentence)
    restated = _RESTATED.search(sentence)
    if restated is not None and restated[1] not in sentence[: restated.start()] and "either" not in sentence:
        sentence = sentence[: restated.start()]
    sentence = _WITHIN.sub("\\1 \u2208 ", _IN_WORDS.sub("", sentence))
    sentence = _BELOW_ZERO.sub(r"-\1", _EQUALS.sub(r"\1 = ", sentence))
    return text[:start] + _BASE.sub(lambda found: f"${found[1]}_{{{found[2] or _BASES[found[3]]}}}$", sentence)


def corrected(text: str) -> str | None:
    """The value that the last sentence puts in the place of another; None where it corrects none.

    Args:
        text: the end of a response, in English.
    """
    found = _CORRECTED.search(text, sentence_start(text))
    return found["value"] if found else None
