"""What a sentence says in words: a choice, a verdict, a date, that there is no solution, a name in bold."""

from __future__ import annotations

import re

from rewardstack_verifier.extraction.bare import BOLD, CHOSEN, DIGIT, MAX_WORDS, MONTHS, WORD
from rewardstack_verifier.extraction.stated import ASIDE, MAX_VALUE
from rewardstack_verifier.lexicon.phrases import SAME

_RIGHT_ONE = re.compile(
    r"(?:[^\d$]{0,80},? (?:leaving|(?:which )?leaves) |[^\d$]{0,80}, )?"
    r"(?:(?:[Oo]nly|[Ss]tatement|it must be|[Ii]t's|[Ii]t is|[Tt]hat's|[Tt]hat is|must be|is) ){0,2}"
    r"\(?([A-J])\)?"
    r"(?: is (?:the |therefore )?(?:only )?(?:correct|right)(?: (?:option|choice|answer|one|statement))?"
    r"| (?:fits|works|remains|holds|is left))?\W*",
)
_PROPERTY = re.compile(
    r".*\b(?:is|are) (?:(?:an?|always|therefore|thus|neither) )*(?P<said>even|odd|prime|composite|rational|irrational"
    r"|positive|negative)(?: (?:function|number|integer)s?)?\W*"
    r"|(?:The|This) (?:\w+ )?(?:series|sequence|integral|sum) (?P<does>(?:con|di)verges)\W*",
    re.DOTALL,
)
_SEVERAL = re.compile(
    r"(?:[Tt]he )?(?:[Oo]ptions|[Cc]hoices|[Ss]tatements|[Aa]nswers) (?P<letters>[A-J](?:, [A-J])*,? and [A-J])"
    r" are (?:both |all )?(?:the )?(?:correct|right|true)(?: \w+)?\W*"
)
_TIME = re.compile(
    r".*\b(?:at|is|by|until|around) (?P<time>(?:a )?(?:half|quarter|ten|five|twenty|\d{1,2}(?: minutes)?)"
    r" (?:past|to|after|before) (?:\d{1,2}|[a-z]{3,6})(?: [ap]\.?m\.?)?|noon|midnight)\W*",
    re.DOTALL,
)
_OF_VALUE = re.compile(r"\b(?:by|than|with|to) \$?\d+\$?\W*\Z")
"""A value that something is only said of: "yes, it is divisible by 3"."""
_VERDICT = re.compile(r"\**(yes|no|true|false)\**\s*[,;:.]", re.IGNORECASE)
ENDS_WITH_VALUE = re.compile(r"[\d$}%)][\s.!*]*\Z")
_CLOSED = re.compile(
    r"(?:.*\b)?(?P<said>(?:no|infinitely many)(?: \w+){0,2} (?:solutions?|roots?)|undefined|does not exist"
    r"|cannot be determined|not enough information|impossible"
    r"|all real numbers(?: [a-z])? (?:except|other than) (?:[a-z] = )?[-\u2212]?\d+(?: and [-\u2212]?\d+)?)"
    r"(?: exists?| from the (?:given )?information(?: given)?)?\W*",
    re.DOTALL | re.IGNORECASE,
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
DATE = re.compile(
    r"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day,? )?"
    rf"(?:(?:{MONTHS}) {_DAY}|{_DAY} (?:of )?(?:{MONTHS}))(?:,? \d{{4}})?(?!\w)"
)
"""A day of a month, perhaps with its weekday before it and its year behind it."""
_DATE = re.compile(rf".*\b(?:is|was|on|be) (?:the )?(?P<date>{DATE.pattern})\W*", re.DOTALL)
_WEEKDAY = re.compile(
    r".*\b(?:on|be|is|it's|that's|a) ((?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)", re.DOTALL | re.IGNORECASE
)
_DENIES = re.compile(r"\b(?:not|never|wrong|incorrect|or|cannot)\b|n't\b")
_EMPHASIS = re.compile(
    r"(?:therefore|thus|hence|so|note|answer|final|conclusion|step|result|solution|only|each|every|total|all|both|not?)\b",
    re.IGNORECASE,
)
_IN_PARENTHESES = re.compile(r"\([^()]{0,100}\)")
_CLAUSE = re.compile(r", (?:and )?(?:so|thus|hence|therefore|which means(?: that)?)\b,? ?")
_REASON = re.compile(r"(?:since|because|as)\b.*, ", re.IGNORECASE | re.DOTALL)
_MATHEMATICS = re.compile(r"[\d$\\]")
_COLOURS = "|".join(SAME[name] for name in ["red", "blue", "green", "yellow", "black", "white", "gray"]).split("|")
_PHRASES = sorted((one for several in SAME.values() for one in several.split("|")), key=len, reverse=True)
_SPOKEN = "|".join(re.escape(one) for one in _PHRASES if one not in _COLOURS)
_CLOSING = re.compile(rf"(?:(?<=\s)|(?<=[\u4e00-\u9fff])|\A)(?P<said>{_SPOKEN})(?:s|en|es)?[\s.!*\u3002]*\Z")
_NOT = re.compile(r"(?:nicht|not|n't|pas|no|не|不)\s{0,2}\Z")
MAX_PHRASE = 80
"""Characters at the end of a sentence in which a verdict is."""
_LAST_VERB = re.compile(r".*\b(?:is|are|be|has|have|equals?)\b[\s*_]*(?:(?:an?|the)\s+)?(?:\w+ of an? )?", re.DOTALL)


def answer_in_words(sentence: str) -> str | None:
    """What a sentence says in words rather than in its numbers; None where it does not.

    Args:
        sentence: without the connective at its start.
    """
    clause = main_clause(sentence)
    several = _SEVERAL.fullmatch(clause)
    if several is not None:
        return several["letters"]
    choice = CHOSEN.match(ASIDE.sub("", clause)) or _RIGHT_ONE.fullmatch(ASIDE.sub("", clause))
    if choice is not None:
        return choice[1]
    property_ = None if DIGIT.search(sentence) or _DENIES.search(sentence) else _PROPERTY.fullmatch(clause)
    if property_ is not None:
        return property_["said"] or property_["does"]
    time = _TIME.fullmatch(clause)
    if time is not None:
        return time["time"]
    closed, date = _CLOSED.fullmatch(clause), _DATE.fullmatch(clause)
    if closed is not None or date is not None:
        return closed["said"] if closed else date and date["date"]
    values = (ENDS_WITH_VALUE.search(sentence) and not _OF_VALUE.search(sentence)) or "=" in sentence
    verdict = None if values else _VERDICT.match(sentence)
    return verdict[1] if verdict else _weekday(clause)


def main_clause(sentence: str) -> str:
    """The last clause of a sentence, where it concludes without numbers: `3 = 5 is false, so there is none`."""
    reason = _REASON.match(sentence)
    starts = [match.end() for match in _CLAUSE.finditer(sentence)] + ([reason.end()] if reason else [])
    clause = sentence[max(starts, default=0) :]
    return sentence if not clause or _MATHEMATICS.search(clause) else clause


def in_bold(sentence: str) -> str | None:
    """What is in bold, where that is one value, or one name in a clause without numbers: `so **Alice** is older`."""
    stressed = list(BOLD.finditer(sentence))
    if len(stressed) != 1 or stressed[0][1].endswith(":"):
        return None
    bold = stressed[0]
    if DIGIT.search(bold[1]):
        return bold[1]
    start, end = sentence.rfind(", ", 0, bold.start()) + 1, sentence.find(", ", bold.end())
    clause = _IN_PARENTHESES.sub("", sentence[start : end if end >= 0 else len(sentence)])
    plain = not (_MATHEMATICS.search(clause) or _EMPHASIS.match(bold[1]) or _DENIES.search(clause))
    return bold[1] if plain and (bold[1][0].isupper() or not _MATHEMATICS.search(sentence)) else None


def said_in_closing(sentence: str) -> str | None:
    """A verdict with which a sentence of any language ends, "keine Lösung"; None where it denies that, or asks."""
    closing = sentence[-MAX_PHRASE:].lower()
    said = _CLOSING.search(closing)
    denied = said is not None and _NOT.search(closing, 0, said.start())
    return said["said"] if said and not denied else None


def last_words(sentence: str) -> str | None:
    """The words that a sentence ends with in `The day is Monday` and `The equation has no solution`."""
    verb = _LAST_VERB.match(sentence)
    words = sentence[verb.end() :].strip(" *_`,;") if verb else ""
    if not 0 < len(words) <= MAX_VALUE or DIGIT.search(words):
        return None
    return words if len(WORD.findall(words)) <= MAX_WORDS else None


def _weekday(clause: str) -> str | None:
    """The day that a clause ends with."""
    day = _WEEKDAY.fullmatch(clause)
    return None if day is None or _DENIES.search(clause) else day[1]
