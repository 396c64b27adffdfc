"""The answer in prose: what follows "the answer is", the value in the last sentence, the last formula or number."""

from __future__ import annotations

import re

from rewardstack_rules.mathematics.boxes import LONGEST
from rewardstack_rules.mathematics.formulas import FORMULA, JOINT, NUMBER, hedges, joined_formulas, last_expression

MAX_WORDS = 6
"""Words of an answer in words."""

MAX_VALUE = 200
"""Characters of a value in a sentence."""

_SENTENCE_END = re.compile(r"[.!?](?=\s|\*|$)|[。\n]|<\||$")
_LAST_SENTENCE = re.compile(r"(?:[.!?]\s|[。\n])")
_ASIDE = re.compile(
    r",?\s(?:because|since|i\.\s?e\b|that is|which|where)\b.*|, as\b.*"
    r"|,?\s(?:or )?(?:about|approximately|roughly)\s\d*\.\d.*"
)
_SUBJECT = re.compile(r"[Tt]he\b[^,\n]*\b(?:is|are|equals?)\b[\s*_]*")
_DENIAL = re.compile(r"not\s+[-\u2212$\\(\d]")
_LEAD_IN = re.compile(
    r"(?:(?!(?:sqrt|sin|cos|tan|log|ln|exp|pi|negative|minus)\b)(?:[^\W\d_]|')+[,:]?\s+)*"
    r"(?:(?!(?:sqrt|sin|cos|tan|log|ln|exp|pi|negative|minus)\b)(?:[^\W\d_]|'){2,}[,:]?|[^\W\d_]:)\s+"
    r"(?=[-+\u2212]?[$€£¥\d.]|\\\$)"
)
_CONNECTIVE = re.compile(
    r"(?:(?:thus|therefore|hence|so|then|finally|consequently|we (?:get|have|find|obtain|conclude)|this (?:gives|means)"
    r"|it follows|that|=>|\u2234|\u21d2)(?:[,:]\s*|\s+))+",
    re.IGNORECASE,
)
_BOLD = re.compile(r"(?<![\w*)])\*\*(?!\s)([^*\n]{1,200})(?<!\s)\*\*(?![\w*(])")
_LAST_BOLD = re.compile(_BOLD.pattern + r"[\s.!]*\Z")
_GIVES_UP = re.compile(
    r"\b(?:can(?:not|'t| not)|unable to|not able to|impossible to|(?:do|did|does)(?: not|n't)) (?:\w+ ){0,2}"
    r"(?:know|determine|solve|answer|find|figure|say|tell|compute|calculate|decide|go on)"
)
_SO = re.compile(r"\b(?:so|thus|hence|therefore)\b[^.]*[\d$\\]")
_BOUND = re.compile(
    r"\b(?:not|never|least|most|more|less|fewer|greater|than|between|n?either|unknown|tried|wrong|impossible|if|or)\b"
)
_DENIED = re.compile(r",? (?:and |but )?not [-\u2212$\\(\d][^,;\n]{0,80}\Z")
_TWO_SENTENCES = re.compile(r"[A-Za-z]{2}[.!?] [A-Z]")
_LABEL = re.compile(r"\([A-Z]\)(?=\s)")
_VERDICT = re.compile(r"(?:yes|no|true|false)(?=\s*[,;:])", re.IGNORECASE)
_SAYS = re.compile(
    r"\b(?:is|are|equals?|gives?|get|have|at)[\s:*_`]*(?=[-+\u2212(\[{√\\\d.]|[A-Za-z]'*(?:\(|\s?[\^+*/=]))"
)
_IS_IT = re.compile(r"(.{1,200}?)\s+(?:is|are)\s+(?:(?:the|our|my)\s+)?(?:(?:final|correct|right)\s+)?answers?\W*")
_VERB = re.compile(r"\b(?:is|are|equals?|gets?|has|have|be)\s*[:*_]*\s*$")
_CIRCUMSTANCE = re.compile(
    r",?\s(?:[a-z]+ )?(?:attained|achieved|obtained|reached|when|where|if|at|with|for|since|because|as|per)\b"
    r"|\s[a-z]+ in\b"
)
_CHOSEN = re.compile(
    r".{0,200}\b(?:[Oo]ption|[Cc]hoice|choose|select|pick)\s+\(?([A-J])\)?(?=[\s.,*]|$)"
    r"(?! or )(?!.{0,200}\b(?:not|incorrect|wrong)\b)"
)
_DONE = re.compile(r",? (?:and we are done|as (?:desired|required|claimed|needed))\.?\Z")
_TITLE = re.compile(r"[A-Z][a-z]+(?: [a-z]+){0,5} ?[=:] ?(?=[-+\u2212\d$.])")
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[A-Za-z]")
_WORD = re.compile(r"[A-Za-z]{2,}")
_PROSE = re.compile(r",\s?(?!(?:and|or)\b)[A-Za-z]{2,}|\b[A-Za-z]{2,}(?:\s+[A-Za-z]+){3,}")


def told(rest: str) -> str | None:
    """The answer at the start of what follows "the answer is".

    Args:
        rest: of the response.

    Returns:
        The answer; empty where it is only said what it is not; None where there is none.
    """
    formula = joined_formulas(rest)
    if formula is not None:
        return formula
    end = _SENTENCE_END.search(rest)
    assert end is not None
    sentence = _ASIDE.sub("", rest[: end.start()]).strip(" *_`\"',;")
    subject = _SUBJECT.match(sentence)
    if subject is not None and subject.end() < len(sentence):
        return told(sentence[subject.end() :])
    if _DENIAL.match(sentence):
        _, but, other = sentence.partition(" but ")
        return told(other) if but else ""
    short = _LABEL.match(sentence) or _VERDICT.match(sentence)
    if short is not None:
        return short.group()
    inner = FORMULA.search(sentence)
    if inner is not None:
        return joined_formulas(sentence[inner.start() :])
    lead_in = _LEAD_IN.match(sentence)
    if lead_in is not None and _BOUND.search(lead_in.group()):
        return sentence
    sentence = sentence[lead_in.end() :] if lead_in else sentence
    number = NUMBER.match(sentence)
    if number is not None:
        return _quantity(sentence, number)
    if len(_WORD.findall(sentence)) <= MAX_WORDS or "\\" in sentence:
        return sentence or None
    return last_expression(sentence)


def concluded(text: str) -> str | None:
    """The answer in a text that nothing marks: the whole text, the value in its last sentence, its last expression.

    Args:
        text: the end of a response.
    """
    start = _CONNECTIVE.match(text.strip()) or _TITLE.match(text.strip())
    bare = _DONE.sub("", text.strip()[start.end() :] if start else text.strip())
    if is_bare(bare):
        return bare if len(bare) == len(text.strip()) else _result(bare)
    text = _DENIED.sub("", text.rstrip(". \n"))
    bold = _LAST_BOLD.search(text)
    if bold is not None and not bold[1].endswith(":"):
        return concluded(bold[1].rstrip("."))
    *_, sentence = _LAST_SENTENCE.split(text.strip().rstrip(".!* \n"))
    if FORMULA.search(sentence):
        return _stated(sentence) or last_expression(text)
    if _GIVES_UP.search(sentence) and not _SO.search(sentence):
        return None
    stressed = _BOLD.findall(sentence)
    if len(stressed) == 1 and _DIGIT.search(stressed[0]):
        return concluded(stressed[0])
    chosen, asked = _CHOSEN.match(sentence), _IS_IT.fullmatch(sentence)
    if chosen is not None:
        return chosen[1]
    if asked is not None:
        return last_expression(asked[1]) or last_expression(text) or asked[1]
    return _value(sentence) or last_expression(text) or _word(sentence)


def is_bare(text: str) -> bool:
    """Whether this is an answer and nothing else: one line, not prose around a formula or a number."""
    if not text or "\n" in text or len(text) > LONGEST or "\\boxed" in text or FORMULA.search(text):
        return False
    if any(start.match(text) for start in (_LEAD_IN, _SUBJECT, _CHOSEN)) or _IS_IT.fullmatch(text):
        return False
    if _TWO_SENTENCES.search(text):
        return False
    bold = _BOLD.search(text)
    if bold is not None and bold.group() != text.rstrip(".!"):
        return False
    return "\\" in text or len(_WORD.findall(text)) <= MAX_WORDS


def _value(sentence: str) -> str | None:
    """What the last "is" or "are" of a sentence is followed by, if that is a value and not the start of more prose."""
    position = 0
    says = None
    while (match := _SAYS.search(sentence, position)) is not None:
        says, position = match, match.end()
    value = _ASIDE.sub("", sentence[says.end() :]).strip(" *_`,;") if says else ""
    if not 0 < len(value) <= MAX_VALUE or _PROSE.search(value) or len(_WORD.findall(value)) > MAX_WORDS:
        return None
    number = NUMBER.match(value)
    quantity = _quantity(value, number) if number else value
    return _result(value) if quantity == value else quantity


def _stated(sentence: str) -> str | None:
    """The formulas right behind the last "is" or "are" of a sentence: `there are $42$ apples in 3 baskets`."""
    formula = None
    for match in FORMULA.finditer(sentence):
        formula = match if _VERB.search(sentence, max(0, match.start() - 12), match.start()) else None
        if formula and _CIRCUMSTANCE.match(sentence, match.end()):
            break
    return joined_formulas(sentence[formula.start() :]) if formula else None


def _result(value: str) -> str:
    """What is computed in `3 - 5 = -2`; an equation for a letter stays whole."""
    computed, _, result = value.rpartition("=")
    return value if _LETTER.search(computed) else result.strip()


def _word(sentence: str) -> str | None:
    """The word that a sentence ends with in `The day is Monday`."""
    subject = _SUBJECT.match(sentence)
    words = sentence[subject.end() :].strip(" *_`,;") if subject else ""
    return words if 0 < len(words) <= MAX_VALUE and len(_WORD.findall(words)) <= MAX_WORDS else None


def _quantity(sentence: str, number: re.Match[str]) -> str:
    """The number that a sentence starts with, alone where prose follows that holds others."""
    behind = sentence[number.end() :]
    if hedges(behind):
        return sentence
    prose = behind[:1].isspace() and _WORD.match(behind.lstrip(" (")) and any(char.isdigit() for char in behind)
    return number.group() if prose and not JOINT.match(behind) else sentence
