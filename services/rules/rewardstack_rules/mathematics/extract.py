"""Finds the final answer in a response, in time linear in its length.

The last `<answer>…</answer>` or `\\boxed{…}` counts; without one the last `#### …`; then what follows the last "the
answer is"; then the whole response, where it is nothing but an answer; then its last formula or number. What a model
thought before `</think>` counts only where nothing after it does.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from rewardstack_rules.mathematics.bounds import MAX_ANSWER
from rewardstack_rules.mathematics.boxes import LONGEST, boxed, last_box

WINDOW = 16 * MAX_ANSWER
"""Characters at the end of a response in which an answer without any mark is looked for."""

MAX_WORDS = 6
"""Words of an answer in words."""

_PHRASE = re.compile(
    r"(?:\b(?:answers?|(?:correct|right) (?:option|choice))\b(?:\s+to\s[^.:\n]{1,80}?)?[\s*_]{0,4}"
    r"(?:\bis\b|\bare\b|[:\uff1a=])|答案[\s*_]{0,4}[是为為:\uff1a])[\s*_:\uff1a]*",
    re.IGNORECASE,
)
_FINAL = re.compile(r"\bfinal answer[\s*_]{0,4}(?:\bis\b|:)[\s*_:]*", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?=\s|\*|$)|[。\n]|<\||$")
_SUBJECT = re.compile(r"[Tt]he\b[^,\n]*\b(?:is|are|equals?)\b\s*")
_DENIAL = re.compile(r"not\s+[-\u2212$\\(\d]")
_NUMBER = re.compile(
    r"(?:(?<![\w)\]}])[-+\u2212]\s?)?(?:\\?[$€£¥]\s?)?(?<![\w.])[-+\u2212]?"
    r"(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:\s?/\s?\d+(?!\w))?(?:\s?\\?%)?"
)
_FORMULA = re.compile(
    r"\$\$(?P<display>[^$]+)\$\$"
    r"|(?<!\\)\$(?P<inline>(?![\s$])(?:[^$\n\\]|\\.)*?(?<!\s))\$(?!\d)"
    r"|(?<!\\)\$(?=[ \t]|[^$\n]*[ \t]\$)"
    r"(?P<spaced>(?:\{[A-Za-z]{2,}\}|\\[A-Za-z]+|\\[^A-Za-z\n]|[^$\n\\A-Za-z]|(?<![A-Za-z])[A-Za-z](?![A-Za-z]))+)\$(?!\d)"
    r"|\\\((?P<round>(?:[^\\]|\\[^()])*)\\\)"
    r"|\\\[(?P<square>(?:[^\\]|\\[^\[\]])*)\\\]"
)
_JOINT = re.compile(r"\s*(?:,\s*)?(?:\band\b|\bor\b|,)\s*")
_TOKEN_BEHIND = re.compile(r"<\|[^<>|]{1,30}\|>\s*$")
_LEAD_IN = re.compile(
    r"(?:(?!(?:sqrt|sin|cos|tan|log|ln|exp|pi|negative|minus)\b)[A-Za-z']+[,:]?\s+)+(?=[-+\u2212$€£¥\d.]|\\\$)"
)
_LABEL = re.compile(r"\([A-Z]\)(?=\s)")
_WORD = re.compile(r"[A-Za-z]{2,}")


def extract_answer(response: str) -> str | None:
    """The final answer, as it stands in the response.

    Args:
        response: what the policy wrote; of any length, but the caller bounds it.

    Returns:
        The answer, None if there is none. It is not bounded: a mark can hold anything.
    """
    thought, mark, said = response.rpartition("</think>")
    answer = _marked(said) or _unmarked(said)
    if answer is None and mark:
        thought = thought.rpartition("<think>")[2]
        answer = _marked(thought) or _unmarked(thought)
    return answer


def reference_answer(reference: str) -> str:
    """The answer in a reference, which may be a whole solution: in a box, behind `####`, or behind "the answer is"."""
    found = boxed(reference)
    if found is not None:
        return found
    rest = reference.rpartition("####")[2].strip()
    return (extract_answer(rest) or rest) if _PHRASE.search(rest[-WINDOW:]) else rest


def _marked(text: str) -> str | None:
    """The answer in the last tag or box, or behind the last `####`."""
    end = text.rfind("</answer>")
    start = text.rfind("<answer>", 0, end) if end >= 0 else -1
    box = last_box(text, len(text))
    if start >= 0 and (box is None or box.start < end):
        inside = text[start + len("<answer>") : end].strip()
        return _marked(inside) or _unmarked(inside) or None
    if box is not None:
        return _final(text[box.end :]) or boxed(text)
    _, mark, rest = text.rpartition("####")
    rest = rest.strip().partition("\n")[0].partition("<|")[0].strip()
    phrase = _PHRASE.match(rest.removeprefix("The ").removeprefix("the ")) if mark else None
    return (_told(phrase.string[phrase.end() :]) if phrase else rest or None) if mark else None


def _final(text: str) -> str | None:
    """The formula or number that is called the final answer behind the last box."""
    phrase = _last(_FINAL.finditer(text[-WINDOW:]))
    told = _told(text[-WINDOW:][phrase.end() :]) if phrase is not None else None
    return told if told is not None and any(char.isdigit() or char == "\\" for char in told) else None


def _unmarked(text: str) -> str | None:
    """The answer behind "the answer is", the whole text, or its last formula or number."""
    text = _TOKEN_BEHIND.sub("", text[-WINDOW:]).strip() if text.endswith("|>") else text.strip()
    bare = _is_bare(text)
    text = text[-WINDOW:]
    phrase = _last(_PHRASE.finditer(text))
    told = _told(text[phrase.end() :]) if phrase is not None else None
    return told or (text if bare else _last_expression(text))


def _told(rest: str) -> str | None:
    """The answer at the start of what follows "the answer is"."""
    formula = _joined_formulas(rest)
    if formula is not None:
        return formula
    end = _SENTENCE_END.search(rest)
    assert end is not None
    sentence = rest[: end.start()].strip(" *_`,;")
    subject = _SUBJECT.match(sentence)
    if subject is not None and subject.end() < len(sentence):
        return _told(sentence[subject.end() :])
    if _DENIAL.match(sentence):
        return None
    label = _LABEL.match(sentence)
    if label is not None:
        return label.group()
    inner = _FORMULA.search(sentence)
    if inner is not None:
        return _joined_formulas(sentence[inner.start() :])
    lead_in = _LEAD_IN.match(sentence)
    sentence = sentence[lead_in.end() :] if lead_in else sentence
    number = _NUMBER.match(sentence)
    if number is not None:
        behind = sentence[number.end() :]
        prose = behind[:1].isspace() and _WORD.match(behind.lstrip(" (")) and any(char.isdigit() for char in behind)
        return number.group() if prose and not _JOINT.match(behind) else sentence
    if len(_WORD.findall(sentence)) <= MAX_WORDS or "\\" in sentence:
        return sentence or None
    return _last_expression(sentence)


def _is_bare(text: str) -> bool:
    """Whether this is an answer and nothing else: one line, not prose around a formula or a number."""
    if not text or "\n" in text or len(text) > LONGEST or "\\boxed" in text or _FORMULA.search(text):
        return False
    return not _LEAD_IN.match(text) and ("\\" in text or len(_WORD.findall(text)) <= MAX_WORDS)


def _joined_formulas(text: str) -> str | None:
    """The formula that this text starts with, and those joined to it by a comma, "and" or "or"."""
    formulas = []
    joints = []
    position = 0
    match = _FORMULA.match(text)
    while match is not None:
        formulas.append(_content(match))
        position = match.end()
        joint = _JOINT.match(text, position)
        if joint is None:
            break
        joints.append(joint.group())
        match = _FORMULA.match(text, joint.end())
    if not formulas:
        return None
    words = any("and" in joint or "or" in joint for joint in joints[: len(formulas) - 1])
    return (" and " if words else ", ").join(formulas)


def _content(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group is not None).strip()


def _last_expression(text: str) -> str | None:
    """The last formula or number."""
    formula = _last(_FORMULA.finditer(text))
    number = _last(_NUMBER.finditer(text, formula.end() if formula else 0))
    if number is not None:
        return number.group().strip()
    return _content(formula) or None if formula else None


def _last(matches: Iterator[re.Match[str]]) -> re.Match[str] | None:
    found = deque(matches, maxlen=1)
    return found[0] if found else None
