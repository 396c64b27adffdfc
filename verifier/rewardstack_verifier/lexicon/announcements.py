"""Phrases that announce an answer or choose an option, one row for each language."""

from __future__ import annotations

from typing import NamedTuple


class Announcement(NamedTuple):
    """The words with which a language announces an answer. Each text is a list of patterns, separated by `|`.

    Args:
        nouns: nouns that mean "answer". These are words, not patterns.
        verbs: words that can be between the noun and the answer instead of a colon.
        spaced: whether the language separates words by spaces.
        choosing: words before the letter of an option that choose it: "I choose".
        options: words between one of these phrases and the letter: "option".
        right: words after a letter that call it right: "is correct".
    """

    nouns: str
    verbs: str
    spaced: bool = True
    choosing: str = ""
    options: str = ""
    right: str = ""


ANNOUNCEMENTS = {
    "en": Announcement(
        nouns="",
        verbs="",
        choosing=r"I(?:['’](?:d|ll)| would| will)? (?:choose|chose|pick|select|go with|say)",
        options=r"(?:the )?(?:correct |right )?(?:option|choice|letter|answer)"
        r"|I (?:think|believe|suppose)(?: that)? it(?: i|['’])s",
        right=r"(?:is|must be|would be) (?:therefore |thus )?(?:the )?(?:only )?(?:correct|right|best|answer)\b",
    ),
    "de": Announcement(
        "Antwort|Lösung|Lösungen|Ergebnis|Endergebnis|gesuchte Zahl|gesuchte Wert|gesuchte Größe"
        "|richtige Option|korrekte Option|richtige Wahl|richtige Alternative|richtige Buchstabe",
        "ist|sind|lautet|lauten|beträgt",
        choosing="(?:ich )?wähle(?: ich)?|ich nehme|(?:richtig|korrekt) (?:ist|sind)",
        options="(?:die )?(?:Option|Antwort|Buchstabe|Möglichkeit|Alternative)",
        right="(?:ist (?:also |somit |daher )?(?:die )?)?(?:richtig|korrekt)",
    ),
    "fr": Announcement(
        "réponse|réponse finale|réponse correcte|résultat|solution|solutions|bonne option|option correcte|bon choix",
        "est|sont|vaut",
        choosing="je choisis|je sélectionne|c['’]est(?: donc)?(?= (?:la réponse|l['’]option|la lettre))",
        options="(?:l['’]option|l['’]|la réponse|la lettre|option|réponse|choix|le choix|l[ae])",
        right="est (?:donc )?(?:la )?(?:bonne|correcte?|juste|exacte)",
    ),
    "es": Announcement(
        "respuesta|respuesta final|respuesta correcta|resultado|solución|soluciones"
        "|opción correcta|alternativa correcta|letra correcta",
        "es|son",
        choosing="(?:yo )?(?:elijo|escojo|selecciono)|(?:es|son) (?:correct|verdader)[ao]s?",
        options="(?:la )?(?:opción|letra|respuesta|alternativa)|la",
        right="es (?:la )?(?:opción |respuesta )?(?:correcta|correcto)",
    ),
    "pt": Announcement(
        "resposta|resposta final|resposta correta|resposta certa|resultado|solução|soluções"
        "|opção correta|opção certa|alternativa correta|alternativa certa|letra correta",
        "é|são",
        choosing="(?:eu )?escolho",
        options=r"(?:a )?(?:opção|letra|resposta|alternativa)|(?-i:a(?= [(]?[A-J][).]{0,2}(?:\s{0,3}\Z|\n)))",
        right="(?:é|está) (?:a )?(?:opção |resposta |alternativa )?(?:correta|certa)",
    ),
    "it": Announcement(
        "risposta|risposta finale|risposta corretta|risultato|soluzione|soluzioni"
        "|opzione corretta|alternativa corretta|lettera corretta",
        "è|sono",
        choosing="scelgo",
        options="(?:l['’]opzione|la lettera|la risposta|opzione|lettera|risposta)|la",
        right="è (?:la )?(?:risposta |opzione )?(?:corretta|giusta|esatta)",
    ),
    "ru": Announcement(
        "ответ|результат|правильный вариант|верный вариант",
        "равен|равна|равно|равны|есть|составляет",
        choosing="(?:я )?выбираю",
        options="вариант(?: ответа)?|буква|под буквой|ответ",
        right="(?:[–—-] )?(?:это )?(?:является )?(?:правил|верный|верно|верен)",
    ),
    "zh": Announcement(
        "最终答案|答案|结果|結果|正确选项|正確選項|选项|選項|正确的选项|正確的選項|符合题意的|符合題意的|正确的|解",
        "应该是|應該是|应为|應為|应是|就是|是|为|為|选|選",
        spaced=False,
        choosing="(?:应|應|本题|本題|故|因此|所以|综上|綜上)?(?:选|選)(?:择|擇)?(?![项項])"
        "|(?:所以|因此|故|综上|我认为|我觉得|我認為)(?:应该|應該)?是",
        options="(?:选|選)?[项項]",
        right="(?:选|選)?[项項]?(?:就|才)?(?:是|为)?(?:正确|正確|对的|對的|符合)(?!吗|嗎)",
    ),
    "ja": Announcement(
        "最終的な答え|答え|解答|正解",
        "は",
        spaced=False,
        options="選択肢|記号",
        right="(?:が|は)(?:正解|正しい|答え|適切)",
    ),
    "ko": Announcement(
        "정답|답",
        "은|는",
        spaced=False,
        options="선택지|보기",
        right="번?(?:이|가|은|는)? ?(?:정답|답이|답입|맞|옳)",
    ),
    "ar": Announcement("الجواب|الإجابة", "هو|هي", spaced=False, options="الخيار", right="(?:هو|هي) (?:الجواب|الإجابة)"),
    "hi": Announcement("उत्तर", "है", spaced=False, options="विकल्प", right="सही"),
    "vi": Announcement("đáp án|đáp số|câu trả lời", "là", right="là đáp án", options="phương án"),
    "th": Announcement("คำตอบ", "คือ", spaced=False, options="ข้อ"),
    "nl": Announcement(
        "antwoord|oplossing|uitkomst", "is|zijn", options="optie", right="is (?:juist|correct|het juiste)"
    ),
    "sv": Announcement("svaret|svar", "är|blir"),
    "pl": Announcement("odpowiedź|odpowiedzią|wynik", "to|jest|wynosi", right="jest poprawna"),
    "tr": Announcement("cevap|yanıt|sonuç", "şıkkı"),
    "id": Announcement("jawaban|jawabannya", "adalah"),
}
CONNECTIVES = (
    "therefore|thus|then|hence|indeed|simply|clearly|donc|ainsi|also|somit|daher|folglich|por tanto|por lo tanto"
    "|entonces|portanto|logo|então|quindi|dunque|значит|следовательно|итак"
)
"""Words between a phrase that announces an answer and the answer."""
CHOOSING_WORDS = "本题选|本題選|故选择|故选|故選|应选|應選|因此选|所以选|选择|選擇"
"""Chinese words for "choose", separated by `|`. The letter of an option, or a value, follows right after them."""
