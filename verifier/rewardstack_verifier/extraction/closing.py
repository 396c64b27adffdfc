"""What a response closes with in a language other than English, by the words of `lexicon.doubts`: `closing_answer`.

The last value of the closing sentence counts that is not denied, nor only says of what the sentence speaks; what a
sentence leaves open has none. Remarks behind it are passed over unless they take it back.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rewardstack_verifier.extraction.formulas import (
    FORMULA,
    JOINT,
    MAX_TOGETHER,
    NUMBER,
    content,
    is_label,
    kind,
    offered,
    together,
)
from rewardstack_verifier.extraction.languages import (
    ANNOUNCED,
    Tongue,
    joined_in_english,
    tells_language,
    tongue_of,
    with_spaces,
)
from rewardstack_verifier.extraction.plain import marked
from rewardstack_verifier.extraction.said import MONTH, said_in_words
from rewardstack_verifier.extraction.spelled import in_digits
from rewardstack_verifier.extraction.totals import with_totals
from rewardstack_verifier.lexicon.phrases import PERCENT
from rewardstack_verifier.reading.lexer import UnreadError, lex
from rewardstack_verifier.reading.units import unit

MOST_REMARKS = 3
"""Sentences behind the closing one that may be remarks."""
MOST_SENTENCES = 6
"""Sentences at the end of a response in which an answer may be announced."""
MOST_VALUES = 40
"""In one sentence, the last ones."""
LONGEST = 2_000
"""Characters of a sentence, the last ones."""
MOST_BESIDE = 12
"""Characters between a value and another one that is denied beside it: "12, nicht 13"."""
MOST_LETTERS = 12
"""Characters of a unit without spaces around it, with what is joined to it."""
_LETTER_CHOSEN = re.compile(r"(?<![A-Za-z])\(?([A-J])\)?(?:です|である|だ|입니다|이다|。)?[.!*\s\u3002]*\Z")
"""The letter of an option at the end of a sentence."""
_LETTER = re.compile(r"[^\W\d_]")
_DISPLAYED = re.compile(r"\\\[(?:[^\\]|\\[^\[\]])*\\\]|\$\$[^$]+\$\$")
_SENTENCE_END = re.compile(
    r"(?<!\d)[.!?][*_)\"'\u201d\u00bb]{0,3}\s+|(?<=\d)[!?]\s+"
    rf"|(?<=\d)\.\s+(?=[^\W\d_a-z])(?!(?i:{MONTH})(?!\w))|[\u3002\uff01\uff1f\u0964\u061f]\s*|\n+"
)
_CLAUSE = re.compile(r"[,;:\u060c\uff0c\uff1b\uff1a]\s|\s[-\u2013\u2014]+\s")
_QUESTION = re.compile(r"[?\uff1f\u061f]\W*\Z|(?:吗|呢|까요|ですか|でしょうか|だろうか)\W*\Z")
_CLOSED = re.compile(r"[.!?)\]}*$\"'\u201d\u00bb\u3002\uff01\uff1f\u0964\u2026✓✔✅]\s*\Z")
_COUNT = re.compile(
    r"(?<=[\d)$\]}])\s?(?:の\s?|\s)(?:\d|[两二三四五두세네])\s?(?:つ|個|点|組|개|个|個)(?:です|である|だ)?"
)
_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")
_LATEX = re.compile(
    r"(?:\\(?:text|mathrm|mathbf)\s?\{[^{}]{0,60}\}|\\[A-Za-z]+\*?|\\[^A-Za-z\s]|\{[A-Za-z]{2,}\}"
    r"|[-+*/=<>^_{}()\[\]|.,!&;: \d\u2212]|(?<![A-Za-z])[A-Za-z](?![A-Za-z]))+"
)
"""A run of what formulas are made of."""
_MEMBER = re.compile(r"\u2208|\\in(?![a-z])")
_STRESS = re.compile(r"\*\*([^*\n]*(?:\d[^*\n]*|:))\*\*")
"""Bold face of a value, or of what announces one."""
_ARTICLE = re.compile(r"((?:,|\b(?:y|e|et|und|and))\s+)(?:el|la|le|il|lo|o|die|der|das)\s+(?=[-\u2212\d$])")
"""The article of a value in a list: "el 2, el 3 y el 5"."""
_PERCENT = sorted(PERCENT.split("|"), key=len, reverse=True)


class _Group(NamedTuple):
    """Values that are joined, and the bounds of the clause around them."""

    values: tuple[re.Match[str], ...]
    before: str
    behind: str

    @property
    def start(self) -> int:
        return self.values[0].start()

    @property
    def end(self) -> int:
        return self.values[-1].end()


def closing_answer(text: str, language: str) -> str | None:
    """The answer that a response closes with.

    Args:
        text: its end.
        language: as `language_of` names it, other than English.

    Returns:
        The answer; empty where there is none, for it is denied, left open or asked; None where nothing tells.
    """
    tongue = tongue_of(language)
    sentences = _sentences(text)[-MOST_SENTENCES:]
    if not sentences:
        return None
    announced = next((at for at in range(len(sentences) - 1, -1, -1) if ANNOUNCED.search(sentences[at])), None)
    for at in range(len(sentences) - 1, max(-1, len(sentences) - 2 - MOST_REMARKS), -1):
        sentence = _prepared(sentences[at], language)
        if announced is not None and announced < at and not _takes_back(sentence, tongue):
            continue
        found = _in_sentence(sentence, " ".join(sentences[:at]), tongue)
        if found is not None:
            return found
        if at == len(sentences) - 1 and not _CLOSED.search(text):
            return ""
    return None


def _takes_back(sentence: str, tongue: Tongue) -> bool:
    denied = tongue.denial.search(sentence) and not tongue.others.search(sentence)
    return bool(denied or tongue.hedge.search(sentence))


def _in_sentence(sentence: str, before: str, tongue: Tongue) -> str | None:
    """What one sentence says; None where it says nothing.

    Args:
        sentence: as `_prepared` has it.
        before: what stands before it.
        tongue: of its language.
    """
    sentence = tongue.aside.sub(" ", sentence)
    groups = _groups(sentence, tongue)
    if _QUESTION.search(sentence) or tongue.hedge.search(sentence):
        return ""
    said = said_in_words(sentence, tongue, bool(groups))
    if said is not None:
        return said
    if groups:
        return "" if tongue.wrong.search(sentence) else _chosen(sentence, before, groups, tongue)
    letter = _letter(_CLAUSE.split(sentence)[-1], tongue)
    return letter or ("" if _takes_back(sentence, tongue) else None)


def _letter(clause: str, tongue: Tongue) -> str | None:
    """The letter of the only option that a clause names, or ends with where it names an answer, and does not deny."""
    letters = {found["letter"] for found in tongue.option.finditer(clause)}
    last = _LETTER_CHOSEN.search(clause) if tongue.answer.search(clause) else None
    if _takes_back(clause, tongue) or len(letters) > 1:
        return None
    return letters.pop() if letters else last and last[1]


def _chosen(sentence: str, before: str, groups: list[_Group], tongue: Tongue) -> str:
    """The value that is said of something, the only one that is new or else the last; empty where it is denied."""
    said = [group for group in groups if not _is_condition(group, tongue)] or groups
    own = [group for group in said if not _is_given(sentence, group, tongue)] or said
    own = [group for group in own if not tongue.about.search(group.before)] or own
    known = set(_DIGITS.findall(before))
    plain = all(kind(group.values[0]) == "value" and not FORMULA.match(group.values[0][0]) for group in own)
    new = [group for group in own if plain and not known.issuperset(_DIGITS.findall(sentence[group.start : group.end]))]
    exist = own if plain and not tongue.concluding.search(own[-1].before) else []
    exist = [group for group in exist if tongue.existing.search(group.before)]
    last = new[0] if len(new) == 1 else (exist or own[-1:])[0]
    if not _is_denied(last, tongue):
        return _text(sentence, last)
    beside = [group for group in own if group.end <= last.start and not _is_denied(group, tongue)]
    denied_at_once = len(last.before.strip()) <= MOST_BESIDE and tongue.denial.search(last.before) is not None
    return _text(sentence, beside[-1]) if beside and denied_at_once and not tongue.denied_behind else ""


def _is_denied(group: _Group, tongue: Tongue) -> bool:
    if tongue.denial.search(group.behind) or tongue.bound.search(
        group.behind if tongue.denied_behind else group.before
    ):
        return True
    if tongue.denied_behind or tongue.others.search(group.before):
        return False
    return tongue.denial.search(group.before) is not None


def _is_condition(group: _Group, tongue: Tongue) -> bool:
    return tongue.condition.match(group.before.lstrip()) is not None


def _is_given(sentence: str, group: _Group, tongue: Tongue) -> bool:
    """Whether a value only says of what the sentence speaks."""
    before = sentence[max(0, group.start - 24) : group.start]
    if tongue.given.search(before):
        return not tongue.said_to_be.search(before)
    return tongue.given_behind.match(group.behind) is not None


def _text(sentence: str, group: _Group) -> str:
    """What values say, with their unit and what is offered beside them."""
    behind = sentence[group.end :]
    *values, last = group.values
    if values and _MEMBER.search(last[0]):
        return f"{together(sentence, values)}, {content(last)}"
    return together(sentence, group.values) + _unit(behind) + offered(behind)


def _unit(behind: str) -> str:
    """The known unit, currency or percent that stands behind a value; empty where none does."""
    behind = behind.lstrip(" *$")
    lower = behind.lower()
    percent = next((word for word in _PERCENT if lower.startswith(word)), "")
    if percent:
        return " \\%"
    words = re.split(r"[\s,;:.!?*]+", behind, maxsplit=4)[:4]
    for count in range(min(3, len(words)), 0, -1):
        name = " ".join(words[:count])
        if name and _is_unit(name):
            return f" {name}"
    first = words[0] if words else ""
    if first and first[0] >= "\u3000":
        return next(
            (f" {first[:end]}" for end in range(min(len(first), MOST_LETTERS), 0, -1) if _is_unit(first[:end])), ""
        )
    return ""


def _is_unit(name: str) -> bool:
    if tells_language(name.lower()):
        return False
    try:
        tokens = lex(name)
    except UnreadError:
        return False
    return bool(tokens) and tokens[0].text.lower() != "a" and unit(tokens)[1] == len(tokens)


def _groups(sentence: str, tongue: Tongue) -> list[_Group]:
    """The values of a sentence in order, those that are joined together."""
    runs: list[list[re.Match[str]]] = []
    for value in _values(sentence):
        joint = JOINT.fullmatch(sentence, runs[-1][-1].end(), value.start()) if runs else None
        alike = joint and len(runs[-1]) < MAX_TOGETHER
        alike = alike and (kind(runs[-1][-1]) == kind(value) or _MEMBER.search(value[0]) is not None)
        if alike:
            runs[-1].append(value)
        else:
            runs.append([value])
    bounds = [0, *sorted(_bounds(sentence, runs, tongue)), len(sentence)]
    groups = []
    for at, run in enumerate(runs):
        start, end = run[0].start(), run[-1].end()
        opened = max([*(bound for bound in bounds if bound <= start), *(one[-1].end() for one in runs[:at])])
        closed = min([*(bound for bound in bounds if bound >= end), *(one[0].start() for one in runs[at + 1 : at + 2])])
        following = at + 1 < len(runs) and closed == runs[at + 1][0].start()
        behind = "" if following and not tongue.denied_behind else sentence[end:closed]
        groups.append(_Group(tuple(run), sentence[opened:start], behind))
    return groups


def _bounds(sentence: str, runs: list[list[re.Match[str]]], tongue: Tongue) -> list[int]:
    """Where clauses begin, outside of values."""
    inside = [(run[0].start(), run[-1].end()) for run in runs]
    found = [match.end() for match in _CLAUSE.finditer(sentence)] + [
        match.start() for match in tongue.condition.finditer(sentence)
    ]
    return [at for at in found if not any(start < at < end for start, end in inside)]


def _values(sentence: str) -> list[re.Match[str]]:
    """Formulas, and numbers outside of them, that are no labels."""
    formulas = list(FORMULA.finditer(sentence))
    spans = [formula.span() for formula in formulas]
    numbers = [
        number
        for number in NUMBER.finditer(sentence)
        if not any(start <= number.start() < end for start, end in spans) and not is_label(sentence, number)
    ]
    return sorted([*formulas, *numbers], key=lambda match: match.start())[-MOST_VALUES:]


def _prepared(sentence: str, language: str) -> str:
    """A sentence with numbers in digits, formulas between dollars, western punctuation and English joints."""
    sentence = with_totals(in_digits(_STRESS.sub(r"\1", sentence), language))
    sentence = _ARTICLE.sub(r"\1", with_spaces(sentence))
    sentence = _COUNT.sub("", joined_in_english(sentence, language))
    return marked(sentence) if "\\" not in sentence or "$" in sentence else _LATEX.sub(_between_dollars, sentence)


def _between_dollars(run: re.Match[str]) -> str:
    """LaTeX that stands in a sentence without delimiters, between them; anything else as it is."""
    formula = run[0].strip(" ,.;:")
    is_bare = "\\" in formula and not ("\\(" in formula or "\\[" in formula)
    return run[0].replace(formula, f"${formula}$") if is_bare else run[0]


def _sentences(text: str) -> list[str]:
    text = _DISPLAYED.sub(lambda formula: formula[0].replace("\n", " "), text)
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    parts = (
        text[max(start, end - LONGEST) : end].strip() for start, end in zip([0, *ends], [*ends, len(text)], strict=True)
    )
    return [part for part in parts if part and (_LETTER.search(part) or any(char.isdigit() for char in part))]
