"""The value that a sentence states: behind its last "is", its last equals sign, or as its last words."""

from __future__ import annotations

import re

from rewardstack_verifier.extraction.bare import DIGIT, MAX_WORDS, MONTHS, WORD
from rewardstack_verifier.extraction.formulas import (
    FORMULA,
    JOINT,
    NUMBER,
    hedges,
    is_denied,
    joined_formulas,
    unit,
)
from rewardstack_verifier.extraction.languages import IS_SAID

MAX_VALUE = 200
"""Characters of a value in a sentence."""
ASIDE = re.compile(
    r",?\s(?:because|since|i\.\s?e\b|that is(?!,? [\d$\\])|which(?! (?:is|gives|equals|makes|means)\b)|where)\b"
    r"(?:(?!, (?:so|thus|hence|therefore)\b).)*|, as\b.*"
    r"|,? (?:obtained|found|computed|calculated|derived) (?:by|from|via)\b.*"
    r"|, which is (?:[\d.]+ ?(?:%|percent|(?:squared|cubed|times|plus|minus|more|less)\b)).*"
    r"|, which is (?:not|also|the same|what|why|correct|greater|less|even|odd|prime|positive)\b.*"
    r"|\stimes as (?:large|big|much|many|long|fast|old|great|high|far|heavy|tall|likely)\b.*"
    r"|,?\s(?:or |which is |that is,? )?(?:about|approximately|roughly|around)\s\$?\d*\.\d.*"
)
_SAYS = re.compile(
    r"\b(?:is|are|equals?|gives?|get|have|at)[\s:*_`]*"
    r"(?=[-+\u2212(\[{√\\\d.]|[A-Za-z]'*(?:\(|\s?[\^+*/=²³<>≤≥]|\s[-\u2212]\s(?:\d|[a-z]\b))"
    rf"|(?:{MONTHS})\s\d)"
)
_CHANCE = re.compile(
    r"[^\d$]{0,300}\b(?:probability|chances?|odds|likelihood)\b[^\d$]{0,60}?"
    r"\b(\d+|one) (?:in|out of) (?:every )?(\d+)\b"
)
_EXISTING = re.compile(
    r"(?:there (?:are|were|will be|is|exist)|(?:we|they|you) (?:will )?need|it (?:takes|took|will take))"
    r"(?: (?:therefore|thus|hence|then|so|exactly|only|a total of|altogether|in total|now|about))*"
    r" (?P<value>\d[\d,.]*\d|\d) (?!or\b|to\b|and\b)[a-z](?!.*, (?:so|thus|hence|therefore)\b)",
    re.IGNORECASE,
)
_ALSO = re.compile(r"[A-Za-z ]{0,40}\b(?:and|or) \$?[1-9]| to \d")
_MONTH = re.compile(rf"(?:st|nd|rd|th)? (?:of )?(?:{MONTHS})\b")
_VERB = re.compile(r"\b(?:is|are|equals?|gets?|has|have|be)\s*[:*_]*\s*$")
_CIRCUMSTANCE = re.compile(
    r",?\s(?:[a-z]+ )?(?:attained|achieved|obtained|reached|when|where|if|at|with|for|since|because|as|per)\b"
    r"|\s[a-z]+ in\b"
)
_END_OF_VALUE = re.compile(r"\s*(?:\Z|[.,;)])|\s+[A-Za-z(]{2}|/[a-z]")
_NAMED = re.compile(r"(?<![A-Za-z])[A-Za-z]\s?=")
_SAYS_ANOTHER = re.compile(rf"(?:{IS_SAID.pattern})\s*[-\u2212\d]")
_LETTER = re.compile(r"[A-Za-z]")
_PROSE = re.compile(r",\s?(?!(?:and|or)\b)[A-Za-z]{2,}|\b[A-Za-z]{2,}(?:\s+[A-Za-z]+){3,}")


def stated_value(sentence: str) -> str | None:
    """What the last "is" or "are" of a sentence is followed by, if that is a value and not the start of more prose."""
    existing = _EXISTING.match(sentence)
    if existing is not None:
        number = NUMBER.match(sentence, existing.start("value"))
        return number.group() + unit(sentence, [number]) if number else None
    chance = _CHANCE.match(sentence)
    if chance is not None:
        return f"{chance[1].replace('one', '1')}/{chance[2]}"
    position = 0
    says = None
    while (match := _SAYS.search(sentence, position)) is not None:
        says, position = match, match.end()
    value = ASIDE.sub("", sentence[says.end() :]).strip(" *_`,;") if says else ""
    if not 0 < len(value) <= MAX_VALUE or _PROSE.search(value) or len(WORD.findall(value)) > MAX_WORDS:
        return None
    number = NUMBER.match(value)
    amount = quantity(value, number) if number else value
    return result(value) if amount == value else amount


def stated_formulas(sentence: str) -> str | None:
    """The formulas right behind the last "is" or "are" of a sentence: `there are $42$ apples in 3 baskets`."""
    formula = None
    for match in FORMULA.finditer(sentence):
        formula = match if _VERB.search(sentence, max(0, match.start() - 12), match.start()) else None
        if formula and _CIRCUMSTANCE.match(sentence, match.end()):
            break
    return joined_formulas(sentence[formula.start() :]) if formula else None


def value_behind_equals(sentence: str) -> str | None:
    """The number behind the last equals sign, unless several things are given values: `5! = 120 ways`."""
    _, sign, behind = sentence.rpartition("=")
    behind = behind.lstrip(" *")
    number = NUMBER.match(behind) if sign else None
    if number is None or len(_NAMED.findall(sentence)) > 1 or not _END_OF_VALUE.match(behind, number.end()):
        return None
    if is_denied(sentence, len(sentence) - len(behind)) or _SAYS_ANOTHER.search(behind, number.end()):
        return None
    return number.group() + unit(behind, [number])


def quantity(sentence: str, number: re.Match[str]) -> str:
    """The number that a sentence starts with, alone but for its unit where prose follows that holds others."""
    behind = sentence[number.end() :]
    if hedges(behind) or _ALSO.match(behind) or _MONTH.match(behind):
        return sentence
    prose = behind[:1].isspace() and WORD.match(behind.lstrip(" (")) and DIGIT.search(behind)
    return number.group() + unit(sentence, [number]) if prose and not JOINT.match(behind) else sentence


def result(equation: str) -> str:
    """What is computed in `3 - 5 = -2`; an equation for a letter stays whole."""
    before, _, behind = equation.rpartition("=")
    return equation if _LETTER.search(before) else behind.strip()
