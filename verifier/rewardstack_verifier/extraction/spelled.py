"""Numbers that a sentence spells, "dreihundertzwei", "3만 2천", "三分之二", or sets in thousands: `in_digits`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

from rewardstack_verifier.lexicon import doubts
from rewardstack_verifier.lexicon.numerals import (
    CHINESE_DIGITS,
    CHINESE_LARGE,
    CHINESE_TENS,
    KOREAN_DIGITS,
    KOREAN_NATIVE,
    KOREAN_TENS,
    LANGUAGES,
)
from rewardstack_verifier.reading import numerals
from rewardstack_verifier.reading.characters import MARKS_ON_LETTERS

MOST = 600
"""Characters of a sentence whose words are read."""
MOST_DIGITS = 30
"""Of a number that a word makes larger, or characters that spell one."""
MOST_TOGETHER = 8
"""Words of one number."""
LEAST = 13
"""Numbers from which on words beside digits are taken for values: smaller ones count what a sentence speaks of."""
_POINTS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:\.\d{3})+(?!\d|\.\d)")
_SPACES = re.compile(r"(?<![\d.,])(?<!\d )[1-9]\d{0,2}(?:[ \u00a0\u202f]\d{3})+(?! ?\d)")
_APOSTROPHES = re.compile(r"(?<!\d)[1-9]\d{0,2}(?:['\u2019]\d{3})+(?!\d)")
_INDIAN = re.compile(r"(?<![\d,])\d{1,2}(?:,\d{2})+,\d{3}(?![\d,])")
_NO_DIGIT = re.compile(r"\D")
_SYMBOLIC = re.compile(r"[\d\\=]")
_WORD = re.compile(rf"(?:[^\W\d_]|{MARKS_ON_LETTERS})+")
_BETWEEN = re.compile(r"[ \u00a0-]")
_ARTICLES = (
    "one a an second half quarter third once ein eine einen einer einem eines un une uno una um uma o"
    " e sei demi demie moitié medio media mitad meio meia metade mezzo mezza metà halb halbe hälfte"
    " один одна одно одной одного одному одну половина половине половину четверть четверти треть"
    " трети एक آدھا आधा आधी واحد واحدة أحد إحدى نصف ربع ثلث خمس واحدا"
)
_PERCENT = re.compile(r"(?:por|per|pour)\s(?:ciento|cento|cent)(?!\w)", re.IGNORECASE)
_BOUNDS = frozenset(("least", "most"))
_ENGLISH_VERBS = "is|are|equals"
_COUNTED = frozenset(
    ["cases", "possibilities", "steps", "things", "conditions", "equations", "unknowns", "parts", "options", "of"]
)
"""Words behind a number that only counts what is looked at."""
_SHORT = frozenset(("mil",))
"""Words for large numbers that are not looked for behind digits."""
_NO_NUMERALS = frozenset(_ARTICLES.split())
"""Articles, and other words that are numbers only by their looks."""

_CHINESE = f"[{''.join([*CHINESE_DIGITS, *CHINESE_TENS, *CHINESE_LARGE])}]"
_KOREAN = f"[{''.join([*KOREAN_DIGITS, *KOREAN_TENS])}]"
_TO_CHINESE = str.maketrans(KOREAN_DIGITS | KOREAN_TENS)
_EASTERN = (
    rf"(?:\d{{1,{MOST_DIGITS}}}(?:\.\d{{1,{MOST_DIGITS}}})?|{_CHINESE}{{1,{MOST_DIGITS}}}"
    rf"|{_KOREAN}{{1,{MOST_DIGITS}}}?(?![십백천만])(?=이다|입|이에|이며|이고|분의|[^\uac00-\ud7af]|\Z))"
)
_PART_OF = re.compile(
    rf"(?:(?P<whole>{_EASTERN})\s?又\s?)?(?P<under>{_EASTERN})\s?(?:分之|分の|분의)\s?(?P<over>{_EASTERN})"
)
_SCALE = "[万萬億亿千百만억천백]"
_SCALED_STEP = rf"\d[\d,]{{0,{MOST_DIGITS}}}(?:\.\d{{1,{MOST_DIGITS}}})?\s?{_SCALE}{{1,2}}"
_SCALED = re.compile(rf"(?<![\d.,]){_SCALED_STEP}(?![米克瓦卡焦帕赫])(?:\s?{_SCALED_STEP})*(?:\s?\d{{1,4}}(?!\d))?")
_STEP = re.compile(rf"(\d[\d,]*(?:\.\d+)?)\s?({_SCALE}*)")
_SCALES = {
    **dict.fromkeys("百백", 100),
    **dict.fromkeys("千천", 1000),
    **dict.fromkeys("万萬만", 10**4),
    **dict.fromkeys("億亿억", 10**8),
}
_AND_A_HALF = re.compile(rf"({_CHINESE}{{1,{MOST_DIGITS}}}|\d+)\s?([个個]|時間|小时|시간)半")
_NO_COUNT = "(?!角形|边形|邊形|面体|次[方函元项式]|元[一二]?次|倍角|十分|分之|定|样|樣|般|直|起|旦|致|些)"
_CHINESE_RUN = re.compile(
    rf"(?<!第)[负負]?{_CHINESE}{{1,{MOST_DIGITS}}}(?:[点點]{_CHINESE}{{1,{MOST_DIGITS}}})?{_NO_COUNT}"
)
_KOREAN_RUN = re.compile(
    rf"(?<![\uac00-\ud7af])(?:[负負]\s?{_KOREAN}{{1,{MOST_DIGITS}}}?|{_KOREAN}{{0,{MOST_DIGITS}}}?[십백천만]{_KOREAN}{{0,{MOST_DIGITS}}}?)"
    r"(?=이다|입|이에|이며|이고|이므|[^\uac00-\ud7af]|\Z|개|명|가지|번|원|이\s|[을를은는]\s)"
)
_KOREAN_COUNTS = "개|명|가지|번|시간|살|마리|장|권|대|그루|송이|병|잔|팀|배|쌍|곳|달|사람|입니다|이다|이에요"
_TENS, _ONES = KOREAN_NATIVE
_KOREAN_WORD = re.compile(
    rf"(?<![\uac00-\ud7af])(?P<tens>{'|'.join(_TENS)})?(?P<ones>{'|'.join(_ONES)})?(?=\s?(?:{_KOREAN_COUNTS}))"
)
_ZERO = re.compile("零下|マイナス|마이너스")
_HALF_HOUR = re.compile(r"(\d+)\s?(시간|년|개월|달)\s반(?=이|입|[^\uac00-\ud7af]|\Z)")
_HALF_A = re.compile(r"\bhalf an? (?=[a-z])")
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")
_MARKS = str.maketrans({"\u066b": ".", "\u066c": ",", "\u066a": "%"})


def in_digits(sentence: str, language: str) -> str:
    """A sentence with its numbers in digits: those of words where it has no digits, thousands without their marks.

    Args:
        sentence: of a response.
        language: as `lexicon.doubts` names it.
    """
    if not sentence.isascii():
        sentence = _OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), sentence.translate(_MARKS))
    sentence = _with_halves(_without_thousands(sentence, language), language)
    if language in ("zh", "ja", "ko"):
        sentence = _mixed(_ZERO.sub("负", sentence))
    elif language in LANGUAGES:
        sentence = _with_large_words(sentence, language)
    if language == "en" and not _SYMBOLIC.search(sentence):
        sentence = _HALF_A.sub("1/2 ", sentence)
    if len(sentence) <= MOST:
        sentence = _from_words(sentence, language, least=LEAST if _SYMBOLIC.search(sentence) else 0)
    if language == "ko":
        return _HALF_HOUR.sub(r"\1.5 \2", sentence)
    return _with_halves(sentence, language)


def _from_words(sentence: str, language: str, least: int) -> str:
    """A sentence with its words that are numbers, from the `least` on, in digits."""
    if language in LANGUAGES:
        return _words_in_digits(sentence, language, least)
    if least:
        return sentence
    if language in ("zh", "ja"):
        return _CHINESE_RUN.sub(lambda run: _shown(_eastern(run[0]), run[0]), sentence)
    if language == "ko":
        sentence = _KOREAN_RUN.sub(lambda run: _shown(_eastern(run[0].replace(" ", "")), run[0]), sentence)
        return _KOREAN_WORD.sub(_native, sentence)
    return sentence


def _with_halves(sentence: str, language: str) -> str:
    """A half behind a number, or "a", and its noun added to it: "2 heures et demie", "an hour and a half"."""
    pattern = _half_behind(language)
    if pattern is None:
        return sentence
    point = "." if language == "en" else ","
    return pattern.sub(lambda found: f"{found[1] if found[1].isdecimal() else 1}{point}5{found[2]}", sentence)


@cache
def _half_behind(language: str) -> re.Pattern[str] | None:
    behind = LANGUAGES[language].half_behind if language in LANGUAGES else ""
    return re.compile(rf"(?<![\w.,])(\d+|an?|une?|una|uma?)(\s[^\W\d_]+)\s{behind}(?!\w)") if behind else None


def _without_thousands(sentence: str, language: str) -> str:
    patterns = (_APOSTROPHES, _SPACES, _INDIAN, *((_POINTS,) if doubts.LANGUAGES[language].decimal_comma else ()))
    for pattern in patterns:
        sentence = pattern.sub(lambda number: _NO_DIGIT.sub("", number[0]), sentence)
    return sentence


def _mixed(sentence: str) -> str:
    """Parts of a whole, digits with large numbers behind them, and halves more."""
    sentence = _SCALED.sub(lambda number: str(_scaled(number[0])), sentence)
    sentence = _PART_OF.sub(_part, sentence)
    return _AND_A_HALF.sub(lambda found: f"{_eastern(found[1])}.5 {found[2]}", sentence)


def _scaled(text: str) -> int | Fraction:
    """The value of "3万2千", "1억 2천만"."""
    total, group = Fraction(0), Fraction(0)
    for digits, scales in _STEP.findall(text):
        value = Fraction(digits.replace(",", ""))
        for scale in scales:
            if _SCALES[scale] < 10**4:
                value *= _SCALES[scale]
            else:
                total, group, value = total + (group + value) * _SCALES[scale], Fraction(0), Fraction(0)
        group += value
    found = total + group
    return int(found) if found.denominator == 1 else found


def _part(found: re.Match[str]) -> str:
    under, over = _eastern(found["under"]), _eastern(found["over"])
    whole = _eastern(found["whole"]) if found["whole"] else Fraction(0)
    if under is None or over is None or whole is None or not under:
        return found[0]
    if under == 100 and not whole:
        return f"{over}%"
    return str(whole + over / under)


def _eastern(text: str) -> Fraction | None:
    return Fraction(text) if text[0].isdecimal() else numerals.number([text.translate(_TO_CHINESE)])


def _shown(value: Fraction | None, text: str) -> str:
    return text if value is None or text in ("一", "일") else f" {value} "


def _native(found: re.Match[str]) -> str:
    value = _TENS.get(found["tens"] or "", 0) + _ONES.get(found["ones"] or "", 0)
    return str(value) if value > 1 else found[0]


def _with_large_words(sentence: str, language: str) -> str:
    """Digits with words for large numbers behind them as one number: "3 लाख 20 हज़ार", "2,4 миллиона"."""
    large = _large(language)
    pattern, step = _large_patterns(language)

    def value(found: re.Match[str]) -> str:
        steps = step.findall(found[0])
        total = sum(
            (Fraction(digits.replace(",", ".")) * 10 ** large.get(name, 0) for digits, name in steps), Fraction(0)
        )
        return f"{total} "

    return pattern.sub(value, sentence)


@cache
def _large(language: str) -> dict[str, int]:
    """Exponents of a language's words for a thousand and more."""
    row = LANGUAGES[language]
    named = zip(row.large.split(), row.powers, strict=False)
    return {name: power for names, power in named if power > 2 for name in names.split("|") if name not in _SHORT}


@cache
def _large_patterns(language: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Of digits with such words behind them, and of one such pair."""
    names = "|".join(sorted(_large(language), key=len, reverse=True))
    step = rf"\d{{1,{MOST_DIGITS}}}(?:[.,]\d{{1,2}})?\s(?:{names})(?!\w)"
    return (
        re.compile(rf"(?<![\d.,])(?:{step}\s?)+(?:(?<=\s)\d{{1,3}}(?![\d,.]))?"),
        re.compile(rf"(\d+(?:[.,]\d+)?)(?:\s({names}))?"),
    )


def _words_in_digits(sentence: str, language: str, least: int) -> str:
    words = list(_WORD.finditer(sentence))
    parts, at = list[str](), 0
    halves = LANGUAGES[language].parts.split()[0].split("|")
    found = [
        one
        for one in _numerals(sentence, words, language)
        if _is_value(words, *one, 0 if _is_said_last(sentence, words, *one[:2], language) else least, sentence)
    ]
    if not found and not least and words and words[-1][0].lower() in halves:
        found = [(len(words) - 1, len(words), "1/2")]
    for start, end, value in found:
        parts += [sentence[at : words[start].start()], value]
        at = words[end - 1].end()
    return "".join([*parts, sentence[at:]])


def _is_said_last(sentence: str, words: list[re.Match[str]], start: int, end: int, language: str) -> bool:
    """Whether a number is the last word of a sentence, right behind the verb by which an answer is said."""
    verbs = doubts.LANGUAGES[language].are or _ENGLISH_VERBS
    if end < len(words) or not start or words[start - 1][0].lower() not in verbs.split("|"):
        return False
    between, rest = sentence[words[start - 1].end() : words[start].start()], sentence[words[end - 1].end() :]
    return between.isspace() and not any(map(str.isdigit, rest))


def _is_value(words: list[re.Match[str]], start: int, end: int, value: str, least: int, sentence: str) -> bool:
    """Whether a number in words may be what its sentence says, and is no bound and no count of cases."""
    before = words[start - 1][0].lower() if start else ""
    behind = words[end][0].lower() if end < len(words) else ""
    if before in _BOUNDS or (behind in _COUNTED and value.isdecimal()):
        return False
    return not least or (value.isdecimal() and int(value) >= least and value not in sentence)


def _numerals(sentence: str, words: list[re.Match[str]], language: str) -> Iterator[tuple[int, int, str]]:
    """Where numbers start and end in the words of a sentence, each as long as it can be, and what they are."""
    at = 0
    while at < len(words):
        if not _may_be(words[at], language) or _PERCENT.match(sentence, words[at - 1].start() if at else 0):
            at += 1
            continue
        last = at + 1
        while (
            last < min(len(words), at + MOST_TOGETHER)
            and _may_be(words[last], language)
            and _BETWEEN.fullmatch(sentence, words[last - 1].end(), words[last].start())
        ):
            last += 1
        numbers = ((end, _number(words[at:end], language)) for end in range(last, at, -1))
        end, value = next((found for found in numbers if found[1]), (at + 1, ""))
        if value:
            yield at, end, value
        at = end


def _may_be(word: re.Match[str], language: str) -> bool:
    return numerals.is_part(word[0].lower(), language)


def _number(words: list[re.Match[str]], language: str) -> str:
    """The number of some words; nothing where they say none."""
    texts = [word[0].lower() for word in words]
    if (len(texts) == 1 and texts[0] in _NO_NUMERALS) or numerals.is_ordinal(texts, language):
        return ""
    value = numerals.number(texts, language)
    if value is None:
        return ""
    if value.denominator == 2 and value > 1 and language != "en":
        return f"{int(value)},5"
    return f"{float(value)}" if value.denominator == 2 and value > 1 else str(value)
