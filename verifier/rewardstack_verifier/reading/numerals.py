"""Parse numbers in words, in the languages of `lexicon.numerals`: "twenty-four", "zwei Drittel", "2.5 million"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from rewardstack_verifier.lexicon import numerals as lexicon
from rewardstack_verifier.lexicon.numerals import Row
from rewardstack_verifier.reading.characters import MARKS_ON_LETTERS

MAX_WORDS = 20
"""Maximum words of a number."""
MIN_LETTERS, MAX_LETTERS = 6, 60
"""Minimum and maximum length of a word to split into number words."""
_DECIMAL = re.compile(r"\d+(?:\.\d+)?")
_MARKS = re.compile(MARKS_ON_LETTERS)
_INTEGER = f"[{''.join([*lexicon.CHINESE_DIGITS, *lexicon.CHINESE_TENS, *lexicon.CHINESE_LARGE])}]{{1,30}}"
_CHINESE = re.compile(rf"[负負]?(?:{_INTEGER}又)?(?:{_INTEGER}(?:(?:分之|[点點]){_INTEGER})?|一?半)")
_DIGITS = str.maketrans({digit: str(value) for digit, value in lexicon.CHINESE_DIGITS.items()})


_WORD_SETS = ("joining", "negative", "below", "articles", "teens", "half_more")
"""Fields of `_Language` that are sets of the words in a `Row`."""


@dataclass(frozen=True, slots=True)
class _Language:
    """The number words of a language (a `Row` of the lexicon), indexed by word."""

    small: dict[str, int]
    tens: frozenset[str]
    large: dict[str, int]
    parts: dict[str, int]
    ordinals: dict[str, int]
    joining: frozenset[str]
    negative: frozenset[str]
    below: frozenset[str]
    articles: frozenset[str]
    fixed: dict[str, Fraction]
    teens: frozenset[str]
    half_more: frozenset[str]
    and_a_half: str


def parse_number_words(words: list[str], language: str = "") -> Fraction | None:
    """Parse a number in words; return None if the words are not a number, or are only digits.

    Args:
        words: words in lower case; the first may be digits, as in "2.5 million".
        language: language of the words, a key of `LANGUAGES`; empty for any language.
    """
    if not 0 < len(words) <= MAX_WORDS or all(map(_DECIMAL.fullmatch, words)):
        return None
    if not all(word.isalpha() or _DECIMAL.fullmatch(word) for word in map(_strip_marks, words)):
        return None
    if words[-1] in lexicon.MONEY and len(words) > 1 and _DECIMAL.fullmatch(words[-2]):
        return None
    chinese = _parse_chinese("".join(words))
    if chinese is not None:
        return chinese
    rows = (row for name, row in _languages().items() if language in ("", name))
    return next((value for row in rows if (value := _parse_signed(words, row)) is not None), None)


@lru_cache(maxsize=8192)
def _strip_marks(word: str) -> str:
    """Return a word without vowel signs and accents that are separate characters."""
    return _MARKS.sub("", word)


def split_chinese(word: str, behind_number: bool) -> list[str]:
    """Split a Chinese word into a number and the counted noun; return a list with only the word if that fails.

    Args:
        word: the word.
        behind_number: whether digits are before the word. Then only a large number such as 万 is split off.
    """
    match = re.match("[万萬亿億千百]+", word) if behind_number else _CHINESE.match(word)
    if match is None or (word[match.end() :] and word[match.end()] not in lexicon.CHINESE_COUNTERS):
        return [word]
    return [part for part in (match[0], word[match.end() :]) if part]


def _parse_signed(words: list[str], language: _Language) -> Fraction | None:
    if words[0] in language.negative:
        value = _parse_mixed(words[1:], language)
        return None if value is None else -value
    return _parse_mixed(words, language)


def _parse_mixed(words: list[str], language: _Language) -> Fraction | None:
    """Return the value of a whole number, a fraction or a mixed number; None for other words."""
    if words and words[0] in language.half_more:
        whole = _parse_whole(words[1:], language)
        return None if whole is None else whole + Fraction(1, 2)
    words = _split_compounds(words, language)
    if words and words[0] in language.articles and words[1:]:
        words = ["1", *words[1:]] if words[1] in language.large or words[1] in language.parts else words
    value = _parse_part(words, language)
    if value is not None:
        return value
    for at in range(1, len(words) - 1):
        if words[at] in language.joining:
            whole, part = _parse_whole(words[:at], language), _parse_part(words[at + 1 :], language)
            if whole is not None and part is not None and part < 1:
                return whole + part * max(1, language.large.get(words[at - 1], 0) // 100 * 100)
    if len(words) == 1 and (words[0] in language.fixed or language.small.get(words[0]) == 0):
        return language.fixed.get(words[0], Fraction(0))
    return _parse_whole(words, language) or _parse_ordinal(words, language)


def _parse_part(words: list[str], language: _Language) -> Fraction | None:
    """Return the value of a fraction such as "two thirds"; without a numerator, only a half is a fraction."""
    if not words:
        return None
    name = words[-1]
    under = language.parts.get(name) or language.parts.get(name[:-1] if name[-1:] in "sn" else "")
    if under is None:
        ordinals = _parse_ordinal([*words[1:-1], name[:-1]], language) if name.endswith("ths") else None
        ones = language.small.get(words[0])
        return Fraction(ones, ordinals) if ordinals and ones else None
    if len(words) == 1:
        return Fraction(1, 2) if under == 2 else None
    above = Fraction(1) if words[:-1] in ([one] for one in language.articles) else _parse_whole(words[:-1], language)
    if above is None or above <= 0 or (above >= under and name[-1] != "s"):
        return None
    return above / under


def _parse_ordinal(words: list[str], language: _Language) -> Fraction | None:
    """Return the value of an ordinal: 23 for "twenty-third"."""
    if not words:
        return None
    *before, last = words
    place = language.ordinals.get(last)
    if place is not None:
        above = _parse_whole(before, language) if before else Fraction(0)
        return above + place if above is not None and (not before or above % 10 == 0) else None
    cardinal = f"{last[:-4]}y" if last.endswith("ieth") else last.removesuffix("th")
    return _parse_whole([*before, cardinal], language) if cardinal != last and language.ordinals else None


def _parse_whole(words: list[str], language: _Language) -> Fraction | None:
    """Return the value of a whole number: the sum of its groups, such as "two hundred thousand" and "five"."""
    total, group, limit = Fraction(0), Fraction(0), 10**18
    last = ""
    for at, word in enumerate(words):
        large = language.large.get(word)
        if _DECIMAL.fullmatch(word) and not last:
            group = Fraction(word)
        elif large == 100 and group < 20 and last not in language.joining:
            group = (group or Fraction(1)) * 100
        elif large and large != 100 and large < limit and last not in language.joining:
            total, group, limit = total + (group or Fraction(1)) * large, Fraction(0), large
        elif word in language.teens and 0 < language.small.get(last, 0) < 10:
            group += 10
        elif word in language.small and _follows(word, last, words[at - 2] if at > 1 else "", group, language):
            group += 76 if _is_eighty(word, last, group) else language.small[word]
        elif word not in language.joining or not last or last in language.joining:
            return None
        last = word
    return total + group if last and last not in language.joining and total + group else None


def _follows(word: str, last: str, before: str, group: Fraction, language: _Language) -> bool:
    """Return whether a word for a number below 1000 may follow the last word, as ones follow tens."""
    value = language.small[word]
    if last in language.below and word in language.tens:
        return 0 < language.small.get(before, 0) < 10
    if last in language.joining:
        last = before
    if _is_eighty(word, last, group):
        return True
    if last == "dix":
        return 7 <= value < 10
    if last in language.tens or (group % 100 and group % 20 == 0):
        return 0 < value < (20 if language.small.get("soixante") else 10)
    return not last or last in language.large or (value > 0 and group % 100 == 0 and not _DECIMAL.fullmatch(last))


def _is_eighty(word: str, last: str, group: Fraction) -> bool:
    """Return whether a word is the second word of French "quatre-vingt"."""
    return word in ("vingt", "vingts") and last == "quatre" and group % 100 == 4


def _split_compounds(words: list[str], language: _Language) -> list[str]:
    """Split unknown words into known number words: "fünfundzwanzig"."""
    known = language.small.keys() | language.large.keys() | language.joining
    parts: list[str] = []
    for word in words:
        if language.and_a_half and word.endswith(language.and_a_half) and word not in language.fixed:
            parts += [*_split_compounds([word.removesuffix(language.and_a_half)], language), "und", "halb"]
        elif word not in known and word[:1] in language.joining and (word[1:] in known or word[1:] in language.parts):
            parts += [word[:1], word[1:]]
        else:
            parts += _split_word(word, known) or [word]
    return parts


def _split_word(word: str, known: set[str]) -> list[str] | None:
    return _split_into_known(word, known) if word not in known and MIN_LETTERS <= len(word) <= MAX_LETTERS else None


def _split_into_known(word: str, known: set[str]) -> list[str] | None:
    """Split a word into known words, the last one as long as possible; None if the word cannot be split."""
    best: list[list[str] | None] = [[], *[None] * len(word)]
    for end in range(1, len(word) + 1):
        for start in range(max(0, end - 16), end):
            before = best[start]
            if before is not None and word[start:end] in known:
                best[end] = [*before, word[start:end]]
                break
    return best[-1]


def _parse_chinese(text: str) -> Fraction | None:
    """Return the value of a Chinese numeral, or of digits before a large number (2.5万); None for other texts."""
    scaled = re.fullmatch(r"(\d+(?:\.\d+)?)([万萬亿億千百]{1,3})", text)
    if scaled:
        size = 1
        for character in scaled[2]:
            size *= lexicon.CHINESE_LARGE.get(character) or lexicon.CHINESE_TENS[character]
        return Fraction(scaled[1]) * size
    if not _CHINESE.fullmatch(text):
        return None
    sign, text = (-1, text[1:]) if text[0] in "负負" else (1, text)
    whole, _, rest = text.rpartition("又")
    if rest in ("半", "一半"):
        return sign * (Fraction(_parse_chinese_integer(whole) if whole else 0) + Fraction(1, 2))
    under, part, over = rest.partition("分之")
    if part:
        below = _parse_chinese_integer(under)
        return sign * (_parse_chinese_integer(whole) + Fraction(_parse_chinese_integer(over), below)) if below else None
    digits, point, decimals = rest.replace("點", "点").partition("点")
    value = Fraction(_parse_chinese_integer(digits))
    if point:
        value += Fraction(f"0.{decimals.translate(_DIGITS)}") if decimals.translate(_DIGITS).isdecimal() else 0
    return sign * value


def _parse_chinese_integer(text: str) -> int:
    """Return the value of Chinese digits in place-value notation, or of digits with tens and larger numbers."""
    if text and all(character in lexicon.CHINESE_DIGITS for character in text):
        return int(text.translate(_DIGITS))
    total = group = digit = 0
    for character in text:
        if character in lexicon.CHINESE_DIGITS:
            digit = lexicon.CHINESE_DIGITS[character]
        elif character in lexicon.CHINESE_TENS:
            group, digit = group + (digit or 1) * lexicon.CHINESE_TENS[character], 0
        else:
            total, group, digit = (total + group + digit) * lexicon.CHINESE_LARGE[character], 0, 0
    return total + group + digit


@lru_cache(maxsize=1)
def _languages() -> dict[str, _Language]:
    return {name: _language(row) for name, row in lexicon.LANGUAGES.items()}


def _language(row: Row) -> _Language:
    ones, tens = _by_word(row.ones, range(200)), _by_word(row.tens, range(20, 100, 10))
    return _Language(
        small=ones | tens | _by_word(row.hundreds, range(200, 1000, 100)),
        tens=frozenset(tens),
        large={word: 10**power for word, power in _by_word(row.large, row.powers).items()},
        parts=_by_word(row.parts, range(2, 200)),
        ordinals=_by_word(row.ordinals, range(1, 200)),
        fixed={name: Fraction(value) for name, value in _fixed_values(row)},
        and_a_half=row.and_a_half,
        **{name: frozenset(getattr(row, name).split()) for name in _WORD_SETS},
    )


def _fixed_values(row: Row) -> Iterator[tuple[str, str]]:
    words = row.fixed.split()
    return ((name, value) for names, value in zip(words[::2], words[1::2], strict=True) for name in names.split("|"))


def _by_word(words: str, values: range | tuple[int, ...]) -> dict[str, int]:
    """Return the values by word; `|` separates several words for one value."""
    return {name: value for names, value in zip(words.split(), values, strict=False) for name in names.split("|")}
