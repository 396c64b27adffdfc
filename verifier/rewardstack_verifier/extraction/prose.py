"""The answer in prose: what follows "the answer is", the value in the last sentence, the last formula or number."""

from __future__ import annotations

import re

from rewardstack_verifier.extraction.bare import BOLD, DIGIT, IS_IT, LEAD_IN, MAX_WORDS, SUBJECT, WORD, is_bare
from rewardstack_verifier.extraction.formulas import (
    FORMULA,
    GIVEN,
    NUMBER,
    joined_formulas,
    last_expression,
    last_line,
)
from rewardstack_verifier.extraction.plain import marked
from rewardstack_verifier.extraction.sentences import sentence_start, without_closing
from rewardstack_verifier.extraction.settled import ENDS, breaks_off
from rewardstack_verifier.extraction.stated import (
    ASIDE,
    MAX_VALUE,
    quantity,
    result,
    stated_formulas,
    stated_value,
    value_behind_equals,
)
from rewardstack_verifier.extraction.words import (
    DATE,
    answer_in_words,
    in_bold,
    last_words,
    main_clause,
    said_in_closing,
)

_SENTENCE_END = re.compile(r"[.!?](?=\s|\*|$)|[。\n]|<\||$")
_ATTAINED = re.compile(
    r"(?<=[\w$)}%\]]),?\s\(?(?:(?:attained|achieved|obtained|reached|occurring)\b|(?:when|if)\s)"
    r"(?![^.]{0,200}?,? (?:but|so|yet|hence|thus|therefore)\b)[^.]*\Z"
    r"|(?<=[\w$)}%\]]),?\s(?:after|before) [a-z]+ing\b"
    r"(?![^.]{0,200}?(?:[,=]|\b(?:is|are|was|were|has|have|equals?|gives?|gets?|got)\b))[^.]*(?:\.\d[^.]*)*\Z"
    r"|(?<=[\d$)}%\]]),?\s\(?at\s(?=[A-Za-z]\s?=|[$(\\\d])[^.]*\Z"
)
_WHICH = re.compile(r"([^,]{1,80}?),? which (?:is|equals|gives|makes) (?=[-\u2212$\\(]?\d)")
_CALCULATION = re.compile(r"<<[^<>\n]{0,100}>>")
_DENIAL = re.compile(r"not\s+(?:[-\u2212$\\(\d]|[A-J]\b)")
_CONNECTIVE = re.compile(
    r"(?:(?:thus|therefore|hence|so|then|finally|consequently|we (?:get|have|find|obtain|conclude)|this (?:gives|means)"
    r"|it follows|that|in (?:\w+ ){1,4}form(?=,)|=>|\u2234|\u21d2)(?:[,:]\s*|\s+))+",
    re.IGNORECASE,
)
_LAST_BOLD = re.compile(BOLD.pattern + r"[\s.!]*\Z")
_GIVES_UP = re.compile(
    r"\b(?:can(?:not|'t| not)|unable to|not able to|impossible to|(?:do|did|does)(?: not|n't)) (?:\w+ ){0,2}"
    r"(?:know|determine|solve|answer|find|figure|say|tell|compute|calculate|decide|go on|state"
    r"|give an?y? (?:definite|final))"
)
_SO = re.compile(r"\b(?:so|thus|hence|therefore)\b[^.]*[\d$\\]")
_BOUND = re.compile(
    r"\b(?:not|never|least|most|more|less|fewer|greater|than|between|n?either|unknown|tried|wrong|impossible|if|or"
    r"|root|twice|half|double|triple|square|cube|reciprocal|opposite|inverse|logarithm)\b"
)
_DENIED = re.compile(r",? (?:and |but )?not [-\u2212$\\(\d](?:(?! but )[^,;.\n]|\.\d){0,80}\Z")
_SAYS_SOMETHING = re.compile(r"[\d$\\]")
_CALLED_OPTION = re.compile(r"(?:option|choice)\s+(?=\([A-J]\)\s)", re.IGNORECASE)
_LABEL = re.compile(r"\([A-Z]\)(?=\s)")
_VERDICT = re.compile(r"(?:yes|no|true|false)(?=[\s*]*[,;:])", re.IGNORECASE)
_REJECTED = re.compile(
    r"(?:[\d$}]\W{0,4}(?:is|are|would be|must be|seems)"
    r"(?:(?: not|n't) (?:the|an?|our|correct|right|possible|valid)| wrong| incorrect| impossible)\b"
    r"|\b(?:does|do)(?: not|n't) work\b|\bor (?:something|another|some other|any other)\b"
    r"|\btoo (?:large|small|big|many|few|high|low|long|short)\b)[^\d$\\]*\Z|\b(?:could|might|may) also be\b"
    r"|\bor (?:maybe|perhaps|possibly)\b"
)
_STRESS = re.compile(r"\*\*(?=[\s.,;:!?]|\Z)|(?<![\w)])\*\*(?=[\w$\\])")
_CLOSES = re.compile(r"\\(?:[\])]|end\b)")
_DONE = re.compile(r",? (?:and we are done|as (?:desired|required|claimed|needed))\.?\Z")
_TITLE = re.compile(r"(?:[-*•] )?[A-Z][a-z]+(?: (?!(?:is|are)\b)[a-z]{2,}){0,5} ?[=:] ?(?=[-+\u2212\d$.])")


def answer_after_phrase(rest: str) -> str | None:
    """The answer at the start of what follows "the answer is".

    Args:
        rest: of the response.

    Returns:
        The answer; empty where it is only said what it is not; None where there is none.
    """
    end = _SENTENCE_END.search(rest)
    assert end is not None
    rest = marked(rest[: end.start()]) + rest[end.start() :]
    formula = joined_formulas(rest)
    if formula is not None:
        return formula
    end = _SENTENCE_END.search(rest)
    assert end is not None
    if end.group() == "?":
        return ""
    sentence = ASIDE.sub("", rest[: end.start()]).strip(" *_`\"',;")
    sentence = sentence.rstrip("\"'}") if "{" not in sentence else sentence
    which = _WHICH.match(sentence)
    if which is not None and NUMBER.fullmatch(which[1]) is None:
        sentence = sentence[which.end() :]
    subject = SUBJECT.match(sentence)
    if subject is not None and subject.end() < len(sentence):
        return answer_after_phrase(sentence[subject.end() :])
    if _DENIAL.match(sentence):
        _, but, other = sentence.partition(" but ")
        return answer_after_phrase(other) if but else ""
    sentence = _CALLED_OPTION.sub("", sentence)
    if _LABEL.match(sentence):
        return sentence[:MAX_VALUE]
    short = _VERDICT.match(sentence) or DATE.match(sentence)
    if short is not None:
        return short.group()
    stressed = BOLD.findall(sentence)
    if len(stressed) == 1 and DIGIT.search(stressed[0]):
        return answer_in_prose(stressed[0])
    return _answer_in_clause(_STRESS.sub("", sentence))


def _answer_in_clause(sentence: str) -> str | None:
    """The answer in a sentence that neither denies nor stresses it: its first formula, quantity, or words."""
    inner = FORMULA.search(sentence)
    if inner is not None:
        return joined_formulas(sentence[inner.start() :])
    lead_in = LEAD_IN.match(sentence)
    if lead_in is not None and _BOUND.search(lead_in.group()):
        return sentence
    if lead_in is not None and GIVEN.search(lead_in.group()):
        return last_expression(sentence)
    sentence = sentence[lead_in.end() :] if lead_in else sentence
    number = NUMBER.match(sentence)
    if number is not None:
        return quantity(sentence, number)
    if len(WORD.findall(sentence)) <= MAX_WORDS or "\\" in sentence:
        return sentence or None
    return last_expression(sentence)


def answer_in_prose(text: str) -> str | None:
    """The answer in a text that nothing marks: the whole text, the value in its last sentence, its last expression.

    Args:
        text: the end of a response.

    Returns:
        The answer; None where there is none, or the text breaks off before it settles on one.
    """
    text = without_closing(_CALCULATION.sub("", text.replace("`", "")))
    line = last_line(text)
    if line is not None:
        return line
    whole = BOLD.fullmatch(text.rstrip(".!"))
    text = whole[1] if whole else text
    start = _CONNECTIVE.match(text) or _TITLE.match(text)
    bare = _DONE.sub("", text[start.end() :] if start else text)
    if is_bare(bare):
        return _said_barely(bare, whole=len(bare) == len(text))
    at = sentence_start(text)
    gives_up = _GIVES_UP.search(text, at) and not _SO.search(text, at) and not FORMULA.search(text, at)
    if gives_up or breaks_off(text, at):
        return None
    if _stands_alone(text, at):
        return text[at:]
    ended = text[-1:] in ENDS
    text = text.rstrip(". \n")
    denied = _DENIED.search(text, at)
    if denied is not None:
        if not _SAYS_SOMETHING.search(text, at, denied.start()):
            return None  # it is said what the answer is not
        text = text[: denied.start()]
    bold = _LAST_BOLD.search(text)
    if bold is not None and not bold[1].endswith(":"):
        return answer_in_prose(bold[1].rstrip("."))
    text = text.rstrip(".!* \n")
    at = sentence_start(text)
    if ended or _SAYS_SOMETHING.search(text, at):
        return _in_sentence(text, at)
    return _in_sentence(text[at:], 0)  # in mid-sentence nothing before it counts


def _said_barely(bare: str, whole: bool) -> str:
    """What an answer of few words says; behind a connective an equation says its last side."""
    said = answer_in_words(bare.rstrip(".!")) if len(WORD.findall(bare)) > 1 else None
    return said or (bare if whole else result(bare))


def _stands_alone(text: str, start: int) -> bool:
    """Whether the last line is an answer and nothing else, in LaTeX or several values."""
    line = text[start:]
    held = ("\\" in line or "," in line) and "=" not in line and not _CLOSES.match(line)
    return text[start - 1 : start] == "\n" and held and is_bare(line.rstrip("."))


def _in_sentence(text: str, start: int) -> str | None:
    """The answer in a text whose last sentence starts here."""
    sentence = _CONNECTIVE.sub("", text[start:], count=1) if _CONNECTIVE.match(text, start) else text[start:]
    if sentence.rstrip(")*\"'").endswith("?") and _SAYS_SOMETHING.search(marked(sentence)):
        return None
    sentence = marked(_without_circumstances(sentence))
    words = answer_in_words(sentence)
    if words is not None:
        return words
    if _REJECTED.search(sentence):
        return None
    text = text[:start] + sentence
    bold = in_bold(sentence)
    stressed = answer_in_prose(bold) if bold is not None else None
    if stressed is not None:
        return stressed
    if FORMULA.search(sentence):
        clause = main_clause(sentence)
        return (last_words(clause) if clause != sentence else stated_formulas(sentence)) or last_expression(text, start)
    asked = IS_IT.fullmatch(sentence)
    if asked is not None:
        return asked[1] if is_bare(asked[1]) else last_expression(asked[1]) or asked[1]
    value = stated_value(sentence) or value_behind_equals(sentence)
    return value or last_expression(text, start) or last_words(sentence) or said_in_closing(sentence)


def _without_circumstances(sentence: str) -> str:
    """A sentence without reasons and conditions behind what it says: `the minimum is 4, attained at x = 2`."""
    for pattern in (ASIDE, _ATTAINED):
        aside = pattern.search(sentence)
        if aside is not None and _SAYS_SOMETHING.search(sentence, 0, aside.start()):
            sentence = sentence[: aside.start()] + sentence[aside.end() :]
    return sentence
