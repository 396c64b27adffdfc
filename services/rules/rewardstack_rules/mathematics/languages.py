"""Sentences of any language whose words `lexicon.doubts` has: what they deny, leave open, or join."""

from __future__ import annotations

import re
from collections import deque

from rewardstack_rules.mathematics.lexicon.doubts import LANGUAGES


def _any(kind: str, spaced: bool) -> str:
    rows = [getattr(row, kind).split("|") for row in LANGUAGES.values() if row.spaced is spaced]
    phrases = sorted({phrase for row in rows for phrase in row if phrase}, key=len, reverse=True)
    return "|".join(re.escape(phrase).replace(r"\ ", r"\s+").replace("'", "['\u2019]") for phrase in phrases)


ANSWER_IS = (
    rf"\b(?:{_any('answers', True)})[\s*_]{{0,4}}"
    rf"(?:[:=]|\b(?:{_any('are', True)})\b(?!\s+(?:{_any('denials', True)})\b):?)"
    rf"|(?:{_any('answers', False)})[\s*_]{{0,4}}(?:[:=\uff1a]|{_any('are', False)})"
)
"""A pattern of what announces an answer in languages other than English."""
_VALUE = r"(?:[-+\u2212\d$(]|\\[(a-z])"
_DENIED = re.compile(
    rf"(?:(?<!\w)(?:{_any('denials', True)})(?!\w)[^\S\n]+(?:[^\W\d_]+[^\S\n]+){{0,2}}|(?:{_any('denials', False)})\s*)"
    rf"(?={_VALUE})",
    re.IGNORECASE,
)
_HEDGED = re.compile(rf"(?<!\w)(?:{_any('hedges', True)})(?!\w)|{_any('hedges', False)}", re.IGNORECASE)
_REPLACED = re.compile(r"[\d)$}][^\d$\\]+(?:[-\u2212\d$(]|\\[(a-z])")
"""Another value behind one."""
_NEXT = rf"(?:{_VALUE}|[A-Za-z]\s?=)"
_OR, _AND = (
    re.compile(
        rf"(?<=[\d$)}}])(?:,?[^\S\n]+(?:{_any(kind, True)})[^\S\n]+|\s*(?:{_any(kind, False)})\s*)(?={_NEXT})",
        re.IGNORECASE,
    )
    for kind in ("alternatives", "joints")
)
_BESIDE = re.compile(
    r"(?<=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])(?=[-\u2212\d$\\])"
    r"|(?<=[\d$}])(?=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])"
)


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


def joined_in_english(text: str) -> str:
    """The text with "and" and "or" between values, whatever its language."""
    return _AND.sub(" and ", _OR.sub(" or ", text))


def is_hedged(sentence: str) -> bool:
    """Whether a sentence leaves open whether its value is the answer."""
    return _HEDGED.search(sentence) is not None


def denied_at(sentence: str) -> int | None:
    """Where the denial starts of the last value in a sentence; None where it is not denied."""
    found = deque(_DENIED.finditer(sentence), maxlen=1)
    last = found[0] if found else None
    if last is None or _REPLACED.search(sentence, last.end()):
        return None
    return last.start()
