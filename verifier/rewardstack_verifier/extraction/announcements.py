"""Find answers that a response announces: "the answer is 5", "Answer: 5", "5 is the correct answer", "答案是5"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rewardstack_verifier.extraction.bare_answers import bare_answer
from rewardstack_verifier.extraction.denials import is_denied_before, is_denied_later, is_withdrawn
from rewardstack_verifier.extraction.expressions import (
    FORMULA,
    NUMBER,
    find_last_expression,
    last_match,
    read_formulas,
    read_unit,
)
from rewardstack_verifier.lexicon.announcements import ANNOUNCEMENTS, CHOOSING_WORDS, CONNECTIVES
from rewardstack_verifier.lexicon.calendar import MONTHS

MAX_VALUE = 200
"""Maximum characters of an announced answer that is not a formula."""

_SPACED = "|".join(
    rf"\b(?:{one.nouns})[\s*_\]\u3011]{{0,4}}(?:[:=\uff1a]|[-\u2013\u2014](?=\s)|\b(?:{one.verbs})\b[\s:]{{0,2}})"
    for one in ANNOUNCEMENTS.values()
    if one.spaced and one.nouns
)
_UNSPACED = "|".join(
    rf"(?:{one.nouns})(?:[\]\u3011][:\uff1a]?|[\s*_]{{0,4}}(?:[:=\uff1a]|(?:{one.verbs})[:\uff1a]?)"
    r"|(?:(?<=答案|正解|정답)|(?<=उत्तर))(?=\s?\(?[A-J](?![A-Za-z'=])))"
    for one in ANNOUNCEMENTS.values()
    if not one.spaced
)
_NOUN = r"answers?|verdict|ans(?=:)|(?:correct|right|best|final)\s(?:option|choice|selection)(?:\sletter)?"
_VERB = (
    r"(?:(?:is|was)\s(?:found|computed|calculated|determined)\s(?:as|to\sbe)|is|are|was|equals|(?:comes?|works?)\s(?:out\s)?(?:to|as)|turns\sout\sto\sbe"
    r"|(?:will|would|must|should|has\sto)\sbe)\b(?!\s?n[o']t\b)"
)
_QUESTION_PART = r"(?:\$[^$\n]{1,60}\$|\\\([^()\n]{1,60}\\\)|[^.:=\n$\\]|\.(?=\d))"
"""A pattern for one character or formula of a question that a phrase contains: "the answer to $2 + 3$ is"."""
ENGLISH = (
    rf"(?<![^\W_])(?:{_NOUN})(?![^\W_])(?:\s?\([^()\n]{{1,40}}\)|,\s[^,.\n]{{1,40}},)?"
    rf"(?:(?:\s(?:to|for|of)\s{_QUESTION_PART}{{1,80}}?)?[\s*_\"']{{0,4}}"
    rf"(?:\b{_VERB}|[:\uff1a\u2192]|=(?!=)|[-\u2013\u2014](?=\s))"
    r"|[\s*_\"']{0,4}(?=\$|\\[\[(]))"
    rf"|\b(?:final\s)?(?:result|solution)s?(?:\s{_VERB}|:)|\b(?:option|choice|selection)[*_]{{0,2}}:"
    r"|\bans\.\s?(?=[-$\\(\d]|[A-J]\b)"
    r"|(?:\A|(?<=\n))[#*_ ]{0,6}(?:(?:final )?answer[*_ ]{0,4}\n(?:[=-]{3,20}\n)?|final:)"
)
"""A pattern for phrases that announce an answer in English: "the answer to part b (Yes or No) is"."""
FOREIGN = f"{_SPACED}|{_UNSPACED}|{CHOOSING_WORDS}"
"""A pattern for phrases that announce an answer in other languages."""
PHRASE = re.compile(rf"(?:{ENGLISH}|{FOREIGN})[\s*_:\uff1a}}\"'`>]*", re.IGNORECASE)
"""A phrase that announces an answer, with the signs after it."""
_NOUNS = sorted(
    {
        *("answer", "ans.", "ans:", "final:", "verdict", "option", "choice", "selection", "result", "solution"),
        *(noun.lower() for one in ANNOUNCEMENTS.values() for noun in one.nouns.split("|") if noun),
        *CHOOSING_WORDS.split("|"),
    }
)
_PHRASE_WORDS = tuple(noun for noun in _NOUNS if not any(noun.startswith(one) for one in _NOUNS if one != noun))
"""Lower-case words. Each phrase that announces an answer contains at least one of them."""
_BEFORE_WORD = re.compile(r"(?:(?:correct|right|best|final)\s|(?:\A|(?<=\n))[#*_ ]{0,6}(?:final )?)\Z")
"""The beginning of a phrase before one of `_PHRASE_WORDS`: "correct " in "correct option"."""
_MAX_BEFORE_WORD = 13
"""Maximum number of characters before a word to search for `_BEFORE_WORD`."""
HEDGED = re.compile(
    r"[\s$,;(]{0,6}(?:\\text\{\s?)?\b(?:or(?! so\b)|alternatively|possibly|perhaps|maybe|and maybe|as well as)\b",
    re.IGNORECASE,
)
"""Text right after an answer, if it shows that another answer follows: "or", "alternatively"."""
_DESCRIPTION = re.compile(
    r"(?:indeed|also|thus|therefore|then)?\s?(?:correct|clear|reasonable|sensible|plausible|consistent|obvious"
    r"|(?:double[ -])?checked|verified|confirmed|obtained|derived|found|computed|calculated)\b"
    r"(?!\s(?:wrong|incorrect)|:)",
    re.IGNORECASE,
)
"""Text after a phrase, if it only describes an earlier answer: "checked twice" in "the answer was checked twice"."""
_IS_THE_ANSWER = re.compile(
    r"\s(?:is|are)\s(?:the|our|my)\s(?:(?:final|correct|right|only)\s){0,2}(?:answers?|solutions?|option|choice)\b"
)
"""A phrase that announces the answer before it: "is the final answer"."""
_VALUE_BEFORE = re.compile(rf"(?:(?:{NUMBER.pattern})(?:\s[a-z]{{1,20}})?|{FORMULA.pattern}|(?<![\w\\])\(?[A-J]\)?)\Z")
"""A value right before "is the answer"."""
_VALUE_AHEAD = re.compile(
    rf"{NUMBER.pattern}|\$|\\[\[(]|\(?(?:[B-HJ]\b|A(?=[).,;]|\s(?:or|and)\b))|(?i:yes|no|true|false)\b"
)
"""A value at the start of the text between two phrases."""
_NEXT_VALUE = re.compile(rf"\s{{0,4}}\n\s{{0,4}}(?:{NUMBER.pattern})\s*\Z")
"""The rest of a text, if it is another number on a line of its own."""
_CONCLUSION = re.compile(
    r"\b(?:so|thus|hence|therefore|then|but|no|actually|rather|i\.e\.|that is|namely)\b[^.]{0,20}\Z"
)
_ANOTHER = re.compile(r"\b(?:alternatively|another|second|other|or|oder|ou)\b[^.]{0,20}\Z|或", re.IGNORECASE)
"""The end of the text between two phrases, if the second phrase replaces the first one, or adds another answer."""
MAX_BEFORE = 80
"""Maximum characters of a value before "is the answer"."""
_SENTENCE_END = re.compile(r"[.!?](?<!\bi\.e\.)(?=\s|\*|$)|[。\n]|<\||$")
_ASIDE = re.compile(
    r",?\s(?:because|since|as|so|thus|hence|therefore|where|which)\b.*|,?\si\.e\..*"
    r"|,?\s\(?(?:and\s)?(?:definitely\s)?(?:not|rather than|instead of)\s.*|;\s(?=[^;]*[A-Za-z]{3}).*"
    r"|\s\([a-z][a-z -]{2,40}\)$|\s\((?:approximately|approx\.|about|roughly|\u2248|~)[^()\n]{1,40}\)$"
    r"|(?<=\d)\sof\s(?:the|his|her|their|its|all)\b.*|\s[-\u2013\u2014]\s(?=[a-z]{2}).*"
    r"|,\sand\s(?:it|this|that)\s.*|,\s(?:in total|altogether|that is|obtained|found|computed|I'm|I am)\b.*",
    re.DOTALL,
)
"""Remarks after a value, which are removed: "because ...", "(approximately ...)"."""
_LEAD_IN = re.compile(
    rf"(?:(?:{CONNECTIVES}|just|exactly|approximately|about|equal to|given by|that"
    r"|the (?:number|value|integer|fraction|sum|total|product)(?: of)?|option|choice|letter)\b[\s,:*_]*)+",
    re.IGNORECASE,
)
"""Words between a phrase and the answer: "therefore", "the number of"."""
_SUBJECT = re.compile(r"the\s[^.\n]{1,80}?\s(?:is|are|equals)\s+", re.IGNORECASE)
"""The subject and verb of a sentence after a phrase: "the area is" in "Answer: the area is 5"."""
_BOLD = re.compile(r"\*\*([^*\n]{1,80})\*\*")
_STRESS = re.compile(r"\*\*|__|`")
_LETTER = re.compile(r"\(?[A-J]\)(?=\s)|[A-J](?=[.:,]\s)")
_TO_NEXT_NUMBER = re.compile(r"(?P<between>[^\d]*)\d")
_WORD = re.compile(r"\s\(?[A-Za-z]{2,}")
_HEDGE = (
    r"or|also|else|otherwise|may|might|could|possibl[ey]|if|maybe|perhaps|alternatively|as well|unless|vs|versus"
    r"|oder|ou|o|или|或"
)
_HEDGES = re.compile(rf"\b(?:{_HEDGE})\b", re.IGNORECASE)
_JOINS = rf"{_HEDGE}|and|of(?=\s\Z)|to|but|by|times|plus|minus|more|less|than|out|und|et|y|e|и"
_MONTHS = "|".join(row.replace(" ", "|") for row in MONTHS.values())
_JOINER = re.compile(rf"\b(?:{_JOINS}|{_MONTHS})\b", re.IGNORECASE)
"""Words that join a value to another value, and months, which join a day to a year."""
_CONTINUES = re.compile(rf"[\d$\\=+*/|&<>%^~-]|\b(?:{_JOINS}|doubled|halved|squared|cubed)\b", re.IGNORECASE)
"""Text after a formula, if it shows that the formula is only a part of the answer: "+ 3", "squared"."""
_NOT_THE_ANSWER = re.compile(
    r"\b(?:than|at\s(?:most|least)|no|not|other|depends|but|near|far|unknown|undefined|between|hard|impossible|cannot|never"
    r"|neither|nicht|keine?|pas|non|nunca|jamais|não|не)\b|n['\u2019]t\b|[不没無无]",
    re.IGNORECASE,
)
"""Words in a sentence whose formula or number is not the answer: "not", "more than"."""
_WORD_BEFORE_NUMBER = re.compile(r"(?<![\w\\])(?![A-Z])[^\W\d_]{2,}[^\d]*\d")
"""A word before a number, unless the word is a name, as in "Apollo 11"."""
MAX_WORDS_BEFORE = 6
"""Maximum number of words before a formula in an announced answer."""
_COPULA = re.compile(r"\s?(?:です|である|だ|となる|になる|입니다|이다|이에요|है)\s*\Z")
"""The word "is" after an answer, in Japanese, Korean and Hindi."""
_UNSPACED_AFTER = re.compile(
    r"[\d$)}%]\s?(?:[\u3040-\u30ff\uac00-\ud7af]\s?|[\u3400-\u9fff]+[\u3040-\u30ff\uac00-\ud7af]){3,}"
)
"""Japanese or Korean text after a value, if the text is longer than a unit: for example a denial."""


def extract_announced(text: str) -> str | None:
    """Return the last announced answer of a text; None if there is none, or if the text right after withdraws it."""
    previous, before = None, None
    for phrase in find_announcements(text):
        if before is None or not _DESCRIPTION.match(text, phrase.end()):
            previous, before = before, phrase
    after = last_match(_IS_THE_ANSWER.finditer(text))
    if after is not None and (before is None or after.start() > before.start()):
        match = _VALUE_BEFORE.search(text, max(0, after.start() - MAX_BEFORE), after.start())
        is_denied = match is None or is_denied_before(text, match.start()) or is_withdrawn(text, after.end())
        return None if match is None or is_denied else read_value(match.group())
    value = read_value(text[before.end() :]) if before is not None else None
    if before is None or value is None or is_value_withdrawn(text, value, before.end()):
        return None
    return None if previous is not None and are_joined(text, previous, before, value) else value


def is_value_withdrawn(text: str, value: str, start: int) -> bool:
    """Return whether a text denies or withdraws the value that it announces after a position."""
    position = text.find(value, start)
    end = position + len(value) if position >= 0 else start
    sentence_end = _SENTENCE_END.search(text, end)
    return (
        is_withdrawn(text, end)
        or (sentence_end is not None and is_withdrawn(text, sentence_end.start()))
        or is_denied_later(text, value, end)
        or _NEXT_VALUE.match(text, end) is not None
    )


def are_joined(text: str, previous: re.Match[str], phrase: re.Match[str], value: str) -> bool:
    """Return whether two phrases announce different answers together: "the answer is 5 or the answer is 6"."""
    between = text[previous.end() : phrase.start()].lstrip("$*_ ")
    if between.startswith(value) or not _VALUE_AHEAD.match(between) or _CONCLUSION.search(between):
        return False
    end = _SENTENCE_END.search(text, previous.end())
    is_one_sentence = end is None or end.start() >= phrase.start()
    return is_one_sentence or bool(_ANOTHER.search(between)) or text.startswith("also", phrase.end())


def find_announcements(text: str) -> Iterator[re.Match[str]]:
    """Yield the phrases that announce an answer, except those of an answer that is denied or supposed."""
    end = 0
    for start in _phrase_starts(text):
        phrase = PHRASE.match(text, start) if start >= end else None
        if phrase is None:
            continue
        end = phrase.end()
        if not is_denied_before(text, start):
            yield phrase


def _phrase_starts(text: str) -> list[int]:
    """Return the positions where a phrase may start; trying the pattern everywhere is about 100 times slower."""
    lowered = text.lower()
    if len(lowered) != len(text):
        return [*range(len(text))]
    starts = set()
    for word in _PHRASE_WORDS:
        position = lowered.find(word)
        while position >= 0:
            before = _BEFORE_WORD.search(lowered, max(0, position - _MAX_BEFORE_WORD), position)
            starts |= {position, before.start() if before else position}
            position = lowered.find(word, position + 1)
    return sorted(starts)


def read_value(rest: str) -> str | None:
    """Return the answer at the start of a text; None if there is none.

    Args:
        rest: the response after a phrase that announces an answer.
    """
    lead_in = _LEAD_IN.match(rest) or _SUBJECT.match(rest)
    rest = rest[lead_in.end() :] if lead_in else rest
    rest = rest.lstrip("*_ ")
    if (formulas := read_formulas(rest)) is not None:
        return formulas[0] if _ends_answer(rest, formulas[1]) else None
    end = _SENTENCE_END.search(rest)
    if end is not None and end.group() == "?":
        return None
    sentence = rest[: end.start() if end else None]
    bold = _BOLD.findall(sentence)
    if len(bold) == 1 and any(map(str.isdigit, bold[0])):
        return bold[0]
    sentence = _STRESS.sub("", sentence).strip(" *_\"',;:“”「」")
    return _read_sentence(sentence if "{" in sentence else sentence.rstrip("}\"'"))


def _read_sentence(sentence: str) -> str | None:
    """Return the answer at the start of a sentence that does not begin with a formula."""
    if _LETTER.match(sentence):
        return sentence[:MAX_VALUE]
    aside = _ASIDE.search(sentence)
    if aside is not None and _HEDGES.search(aside.group()):
        return None
    sentence = _COPULA.sub("", sentence[: aside.start()] if aside else sentence).strip(" ,;")
    if _UNSPACED_AFTER.search(sentence):
        return None
    inner = FORMULA.search(sentence)
    if inner is not None:
        return _read_inner_formula(sentence, inner.start())
    number = NUMBER.match(sentence)
    if number is not None and _is_followed_by_prose(sentence, number.end()):
        return number.group() + read_unit(sentence, number)
    return sentence[:MAX_VALUE] or None


def find_number_in_sentence(sentence: str) -> str | None:
    """Return the last number of an announced answer that is a sentence.

    Returns:
        The number. The result is None if the text is only an answer, has no number after a word, or contains a LaTeX
        command, a negation, or a hedging word.
    """
    if "\\" in sentence or bare_answer(sentence) is not None or not _WORD_BEFORE_NUMBER.search(sentence):
        return None
    return None if _NOT_THE_ANSWER.search(sentence) or _HEDGES.search(sentence) else find_last_expression(sentence)


def _read_inner_formula(sentence: str, start: int) -> str | None:
    """Return the formulas at a position of a sentence; None if they are not the answer that the sentence gives."""
    before, formulas = sentence[:start], read_formulas(sentence[start:])
    if _NOT_THE_ANSWER.search(before) or len(before.split()) > MAX_WORDS_BEFORE or formulas is None:
        return None
    return formulas[0] if _ends_answer(sentence, start + formulas[1]) else None


def _ends_answer(text: str, start: int) -> bool:
    """Return whether the rest of a sentence, after a formula, neither changes the formula nor adds another answer."""
    end = _SENTENCE_END.search(text, start)
    if end is not None and end.group() == "?":
        return False
    rest = text[start : end.start() if end else None]
    aside = _ASIDE.search(rest)
    if aside is not None and _HEDGES.search(aside.group()):
        return False
    return _CONTINUES.search(rest[: aside.start()] if aside else rest) is None


def _is_followed_by_prose(sentence: str, end: int) -> bool:
    """Return whether prose with another number follows a number: "5 (see above for 6)"."""
    after = _TO_NEXT_NUMBER.match(sentence, end)
    if after is None:
        return False
    return _WORD.search(after["between"]) is not None and _JOINER.search(after["between"]) is None
