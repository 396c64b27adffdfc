"""Words by which a sentence denies, doubts or joins the values in it, and announces an answer: a language is a row."""

from __future__ import annotations

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
    "English": Language(
        "", "i guess|my guess is|is one of|could be|might be|may be|could also be|might also be", "or", "and"
    ),
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
