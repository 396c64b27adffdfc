"""Phrases that announce an answer, one row for each language."""

from __future__ import annotations

from typing import NamedTuple


class Announcement(NamedTuple):
    """The words with which a language announces an answer.

    Args:
        nouns: nouns that mean "answer", separated by `|`.
        verbs: words that can be between the noun and the answer instead of a colon, separated by `|`.
        spaced: whether the language separates words by spaces.
    """

    nouns: str
    verbs: str
    spaced: bool = True


ANNOUNCEMENTS = {
    "de": Announcement("Antwort|Lösung|Lösungen|Ergebnis|Endergebnis", "ist|sind|lautet|lauten|beträgt"),
    "fr": Announcement("réponse|réponse finale|résultat|solution|solutions", "est|sont|vaut"),
    "es": Announcement("respuesta|respuesta final|respuesta correcta|resultado|solución|soluciones", "es|son"),
    "pt": Announcement("resposta|resposta final|resposta correta|resultado|solução|soluções", "é|são"),
    "it": Announcement("risposta|risposta finale|risposta corretta|risultato|soluzione|soluzioni", "è|sono"),
    "ru": Announcement("ответ|результат", "равен|равна|равно|равны|есть|составляет"),
    "zh": Announcement(
        "最终答案|答案|结果|結果|正确选项|正確選項|选项|選項|解", "应该是|應該是|应为|應為|应是|是|为|為", spaced=False
    ),
    "ja": Announcement("最終的な答え|答え|解答|正解", "は", spaced=False),
    "ko": Announcement("정답|답", "은|는", spaced=False),
    "ar": Announcement("الجواب|الإجابة", "هو|هي", spaced=False),
    "hi": Announcement("उत्तर", "है", spaced=False),
}
CHOOSING_WORDS = "本题选|本題選|故选择|故选|故選|应选|應選|因此选|所以选|选择|選擇"
"""Chinese words for "choose", separated by `|`. The letter of an option, or a value, follows right after them."""
