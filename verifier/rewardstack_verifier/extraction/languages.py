"""The rows of `lexicon.doubts` as patterns: which language a text is in, what it denies, leaves open, or joins."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from rewardstack_verifier.extraction.sentences import sentence_start, without_closing
from rewardstack_verifier.lexicon.doubts import LANGUAGES

ENGLISH = "en"
NEAR = 400
"""Characters at the end of a response by which its language is known."""
WEIGHT = 3
"""How much more the last sentence counts for it."""
_BY_SCRIPT = ("ja", "ko", "zh", "ar", "hi", "ru")
"""Languages that are known by their letters, in the order in which these are looked for."""
_WORD = re.compile(r"[^\W\d_]+")


def _any(kind: str, spaced: bool) -> str:
    rows = [getattr(row, kind).split("|") for row in LANGUAGES.values() if row.spaced is spaced]
    return _either({phrase for row in rows for phrase in row if phrase})


def _either(phrases: Iterable[str]) -> str:
    """A pattern of any of several phrases, the longest first, whatever spaces and apostrophes they are written with."""
    ordered = sorted(phrases, key=len, reverse=True)
    return "|".join(re.escape(phrase).replace(r"\ ", r"\s+").replace("'", "['\u2019]") for phrase in ordered)


ANSWER_IS = (
    rf"\b(?:{_any('answers', True)})[\s*_]{{0,4}}"
    rf"(?:[:=]|\b(?:{_any('are', True)})\b(?!\s+(?:{_any('denials', True)})\b):?)"
    rf"|(?:{_any('answers', False)})[\s*_]{{0,4}}(?:[:=\uff1a]|{_any('are', False)})"
)
"""A pattern of what announces an answer in languages other than English."""
ANNOUNCED = re.compile(ANSWER_IS, re.IGNORECASE)
IS_SAID = re.compile(rf"\w\s*(?<!\w)(?:{_any('are', True)})(?!\w)|\w(?:{_any('are', False)})")
"""The verb of a sentence that says an answer, in languages other than English."""
_VALUE = r"(?:[-+\u2212\d$(]|\\[(a-z])"
_NEXT = rf"(?:{_VALUE}|[A-Za-z][₀-₉]?\s?[=<>≤≥])"
_BESIDE = re.compile(
    r"(?<=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])(?=[-\u2212\d$\\])"
    r"|(?<=[\d$}])(?=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])"
)


_LETTER_BEHIND = r"(?:\s?[:\uff1a]\s?|\s)?(?:l[aeo]\s)?\(?(?P<letter>(?-i:[A-J]))\)?(?![A-Za-z0-9])"
"""The letter of an option behind its name."""
_COPULAS = re.compile(r"(?<=[\d$)}%])\s*(?:です|である|だ|となる|になる|입니다|이다|이에요)(?=\W|\Z)")
"""Verbs behind a value that belong to no unit."""
_MARKS = str.maketrans(
    {
        "\u3002": ". ",
        "\uff0e": ". ",
        "\uff0c": ", ",
        "\u3001": ", ",
        "\uff1a": ": ",
        "\uff1b": "; ",
        "\uff01": "! ",
        "\uff1f": "? ",
    }
)


def with_spaces(text: str) -> str:
    """The text with values set apart from letters that have no spaces around words, and with western punctuation."""
    return text if text.isascii() else _BESIDE.sub(" ", _COPULAS.sub("", text.translate(_MARKS))).strip()


def joined_in_english(text: str, language: str) -> str:
    """The text with "and" and "or" between values.

    Args:
        text: with spaces around values, as `with_spaces` sets them.
        language: of its words.
    """
    tongue = tongue_of(language)
    return tongue.joint.sub(" and ", tongue.alternative.sub(" or ", text))


class Tongue(NamedTuple):
    """A row of `LANGUAGES` as patterns, named as its fields are."""

    alternative: re.Pattern[str]
    joint: re.Pattern[str]
    denial: re.Pattern[str]
    hedge: re.Pattern[str]
    given: re.Pattern[str]
    given_behind: re.Pattern[str]
    said_to_be: re.Pattern[str]
    condition: re.Pattern[str]
    others: re.Pattern[str]
    bound: re.Pattern[str]
    about: re.Pattern[str]
    answer: re.Pattern[str]
    option: re.Pattern[str]
    wrong: re.Pattern[str]
    existing: re.Pattern[str]
    concluding: re.Pattern[str]
    solutions: re.Pattern[str]
    aside: re.Pattern[str]
    connective: re.Pattern[str]
    denied_behind: bool


def language_of(text: str) -> str:
    """The language of a text's last sentence, as `LANGUAGES` names it; English where nothing tells.

    Args:
        text: of a response.
    """
    text = without_closing(text[-NEAR:])
    last = text[sentence_start(text) :]
    for part in (last, text):
        for name in _BY_SCRIPT:
            if not part.isascii() and _script(name, 2).search(part):
                return name
    counts = _counted(text)
    for name, count in _counted(last).items():
        counts[name] += WEIGHT * count
    best = max(counts, key=lambda name: counts[name], default=ENGLISH)
    if not counts and not text.isascii():
        return next((name for name in _BY_SCRIPT if _script(name, 1).search(text)), ENGLISH)
    return best if counts[best] > counts[ENGLISH] else ENGLISH


def _counted(text: str) -> Counter[str]:
    """How many words and letters of each language a text has that tell it from others."""
    by_word, by_letter = _languages_of()
    words = (word for word in _WORD.findall(text.lower()) if len(word) > 1 or not word.isascii())
    counts = Counter(name for word in words for name in by_word.get(word, ()))
    if not text.isascii():
        counts.update(name for letter in text for name in by_letter.get(letter, ()))
    return counts


@cache
def _languages_of() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The languages that a word tells, and those that a letter does."""
    by_word, by_letter = dict[str, list[str]](), dict[str, list[str]]()
    for name, row in LANGUAGES.items():
        known = f"{row.words}|{row.denials}|{row.hedges}|{row.answers}" if row.words else ""
        for word in frozenset(known.lower().split("|")):
            by_word.setdefault(word, []).append(name)
        for letter in row.letters:
            by_letter.setdefault(letter, []).append(name)
    return by_word, by_letter


@cache
def _script(name: str, least: int) -> re.Pattern[str]:
    """At least so many letters of a language's own, side by side."""
    return re.compile(f"[{LANGUAGES[name].scripts}]{{{least}}}")


def tells_language(word: str) -> bool:
    """Whether a language is known by a word, so that it names nothing.

    Args:
        word: in small letters.
    """
    return word in _languages_of()[0]


@cache
def tongue_of(name: str) -> Tongue:
    """A language as patterns.

    Args:
        name: as `LANGUAGES` has it.
    """
    row = LANGUAGES[name]

    def pattern(phrases: str, before: str = "", behind: str = "") -> re.Pattern[str]:
        if not phrases:
            return re.compile(r"(?!)")
        edges = (r"(?<![^\W_])", r"(?![^\W_])") if row.spaced and name != "ko" else ("", "")
        return re.compile(f"{before}{edges[0]}(?:{_either(phrases.split('|'))}){edges[1]}{behind}", re.IGNORECASE)

    return Tongue(
        alternative=_between(row.alternatives, name),
        joint=_between(row.joints, name),
        denial=pattern(row.denials),
        hedge=pattern(row.hedges),
        given=pattern(row.given, behind=r"\s*\Z"),
        said_to_be=pattern(row.are, behind=r"\s+\w{1,3}\s*\Z"),
        given_behind=pattern(row.given_behind, before=r"\s?(?:[^\s,\d]{1,12}?\s?)?"),
        condition=pattern(row.conditions),
        wrong=pattern(row.wrong),
        concluding=pattern(f"{row.are}|{row.connectives}"),
        existing=pattern(row.existing, behind=rf"(?:\s?(?:{row.connectives})|\s?,)*\s*\Z"),
        solutions=pattern(row.solutions),
        aside=pattern(row.connectives, before=r"\s?,\s", behind=r"\s?,\s"),
        connective=pattern(row.connectives, behind=r"[\s,]*"),
        others=pattern(row.others),
        bound=pattern(row.bounds, r"\A\s*") if row.denied_behind else pattern(row.bounds, behind=r"\s*\Z"),
        about=pattern(row.about, behind=r"\s*\Z"),
        answer=pattern(row.answers),
        option=pattern(row.options, behind=_LETTER_BEHIND),
        denied_behind=row.denied_behind,
    )


def _between(phrases: str, name: str) -> re.Pattern[str]:
    """Words between two values: with spaces around them, or, where they are a letter, before them alone."""
    either = "|".join(map(re.escape, phrases.split("|")))
    behind = r"[^\S\n]*" if name == "ar" else r"[^\S\n]+"
    spaces = (r",?[^\S\n]+", behind) if LANGUAGES[name].spaced else (r"\s*", r"\s*")
    return re.compile(rf"(?<=[\d$)}}%π²³kn]){spaces[0]}(?:{either}){spaces[1]}(?={_NEXT})", re.IGNORECASE)
