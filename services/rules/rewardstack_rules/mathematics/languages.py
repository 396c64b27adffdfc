"""Words by which a sentence denies, doubts or joins the values in it, by language: a language is a row."""

from __future__ import annotations

import re
from collections import deque
from typing import NamedTuple


class Language(NamedTuple):
    """Phrases of a language, separated by `|`.

    Args:
        denials: before a value that is not the answer.
        hedges: anywhere in a sentence that leaves its value open.
        alternatives: between two values of which one may be the answer.
        joints: between two values that are both the answer.
        answers: names of an answer, behind which it stands.
        are: verbs between such a name and the answer, where no colon does.
        spaced: whether words have spaces around them.
    """

    denials: str
    hedges: str
    alternatives: str
    joints: str
    answers: str = ""
    are: str = ""
    spaced: bool = True


LANGUAGES = {
    "English": Language("", "i guess|my guess is|could be|might be|may be|could also be|might also be", "or", "and"),
    "German": Language(
        "nicht|kein|keine|nicht gleich|weder",
        "vielleicht|möglicherweise|vermutlich|eventuell|könnte|dürfte",
        "oder|beziehungsweise|bzw.",
        "und|sowie",
        "Antwort|Lösung|Ergebnis|Endergebnis",
        "ist|lautet|beträgt",
    ),
    "French": Language(
        "n'est pas|ne vaut pas|n'est pas égal à|ne sont pas|pas|et non|et pas",
        "peut-être|possiblement|pourrait|il se peut",
        "ou|ou bien",
        "et",
        "réponse|résultat|solution",
        "est|vaut",
    ),
    "Spanish": Language(
        "no es|no son|no vale|no es igual a|no puede ser|y no",
        "quizás|quizá|tal vez|puede que|podría|a lo mejor",
        "o|u|o bien",
        "y|e",
        "respuesta|resultado|solución",
        "es",
    ),
    "Portuguese": Language(
        "não é|não são|não vale|não pode ser",
        "talvez|pode ser que|poderia|quiçá",
        "ou",
        "e",
        "resposta|resultado|solução",
        "é",
    ),
    "Italian": Language(
        "non è|non sono|non vale|non può essere",
        "forse|può darsi|potrebbe",
        "o|oppure",
        "e|ed",
        "risposta|risultato|soluzione",
        "è",
    ),
    "Russian": Language(
        "не|а не|не равен|не равно|не равна|не является",
        "возможно|наверное|вероятно|может быть|пожалуй",
        "или|либо",
        "и",
        "ответ|результат",
        "равен|есть",
    ),
    "Chinese": Language(
        "不是|并不是|不等于|不为|并非|而不是|不應該是|不应该是",
        "可能是|可能为|可能等于|也许|也許|大概是|或许|或許|我猜",
        "或者|或|还是",
        "和|与|及|以及",
        "答案|结果|結果|解",
        "是|为|為",
        spaced=False,
    ),
    "Japanese": Language(
        "", "たぶん|多分|おそらく|かもしれ", "または|あるいは", "と|および", "答え|解答", "は", spaced=False
    ),
    "Korean": Language("", "아마|일지도|일 수도", "또는|혹은", "와|과|그리고", "정답|답", "은|는", spaced=False),
    "Arabic": Language("ليس|ليست|لا يساوي", "ربما|قد يكون|لعل", "أو", "و", "الجواب|الإجابة", "هو|هي"),
    "Hindi": Language("नहीं", "शायद|हो सकता है", "या", "और", "उत्तर", "है"),
}


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
