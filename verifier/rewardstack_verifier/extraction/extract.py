"""Finds the final answer in a response, in time linear in its length.

The last `<answer>…</answer>` or `\\boxed{…}` counts; without one the last `#### …`; then what follows the last "the
answer is"; then the whole response, where it is nothing but an answer; then the value that its last sentence gives, or
its last formula or number, with those that are joined to it. A response that breaks off, or ends with a doubt about
what it found, has no answer but a marked one. What a model thought before `</think>` counts only where nothing after it
does.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Iterator

from rewardstack_verifier.bounds import MAX_ANSWER
from rewardstack_verifier.extraction.asides import corrected, without_asides
from rewardstack_verifier.extraction.bare import BOLD
from rewardstack_verifier.extraction.boxes import boxed, last_box
from rewardstack_verifier.extraction.closing import closing_answer
from rewardstack_verifier.extraction.languages import (
    ANSWER_IS,
    ENGLISH,
    joined_in_english,
    language_of,
    tongue_of,
    with_spaces,
)
from rewardstack_verifier.extraction.prose import answer_after_phrase, answer_in_prose
from rewardstack_verifier.extraction.sentences import sentence_start, without_closing
from rewardstack_verifier.extraction.settled import is_denied, is_retracted, is_revised
from rewardstack_verifier.extraction.spelled import in_digits
from rewardstack_verifier.extraction.totals import with_totals
from rewardstack_verifier.extraction.visible import visible
from rewardstack_verifier.trail import found
from rewardstack_verifier.transcript import split_reasoning

WINDOW = 16 * MAX_ANSWER
"""Characters at the end of a response in which an answer without any mark is looked for."""

MARGIN = 20
"""Characters behind a box from which on they may take it back."""

_IN_ENGLISH = (
    r"\b(?:answers?|(?:correct|right) (?:option|choice))\b(?:\s+to\s[^.:\n]{1,80}?)?[\s*_\"']{0,4}"
    r"(?:\bis\b|\bare\b|[:\uff1a=]|[-\u2013\u2014](?=\s))|\bans\b[.:]"
)
_PHRASE, _ENGLISH_PHRASE = (
    re.compile(rf"(?:{announced})[\s*_:\uff1a}}\"']*", re.IGNORECASE)
    for announced in (rf"{_IN_ENGLISH}|{ANSWER_IS}|故选|应选|應選", _IN_ENGLISH)
)
_SUPPOSED = re.compile(
    r"\b(?:suppose|assum(?:e|ing)|if|whether|say|guess|could|might|doubt"
    r"|(?:might|may|could|would|(?:do|does|did|can)(?:n['\u2019]t| not)) (?:think|expect|believe))"
    r"(?: that)?(?: the)?(?: final| correct)?\s*\Z",
    re.IGNORECASE,
)
_DASH = re.compile(r"(?<=\s)\u2013(?=[\d√π$])")
"""A dash that is a minus."""
_FINAL = re.compile(r"\bfinal answer[\s*_]{0,4}(?:\bis\b|:)[\s*_:]*", re.IGNORECASE)
_CUT_OFF = re.compile(r"\\boxed\s*\{(?!\s*\})")


def extract_answer(response: str, strict: bool = False) -> str | None:
    """The final answer, as it stands in the response.

    Args:
        response: what the policy wrote; of any length, but the caller bounds it.
        strict: whether only a box, an answer tag or `####` marks an answer.

    Returns:
        The answer, None if there is none. It is not bounded: a mark can hold anything.
    """
    thought, reply = split_reasoning(visible(response))
    answer = _marked(reply, strict) if "<think>" in reply else _answer(reply, strict)
    return _answer(thought, strict) if answer is None and thought else answer


def reference_answer(reference: str) -> str:
    """The answer in a reference, which may be a whole solution: in a box, behind `####`, or behind "the answer is"."""
    inside = boxed(reference)
    if inside is not None:
        return inside
    rest = reference.rpartition("####")[2].strip()
    return (extract_answer(rest) or rest) if _PHRASE.search(rest[-WINDOW:]) else rest


def _answer(text: str, strict: bool) -> str | None:
    return _marked(text, strict) or (None if strict else _unmarked(text))


def _marked(text: str, strict: bool) -> str | None:
    """The answer in the last tag or box, or behind the last `####`; what is said behind a box, unless `strict`."""
    end = text.rfind("</answer>")
    start = text.rfind("<answer>", 0, end) if end >= 0 else -1
    box = last_box(text, len(text))
    if start >= 0 and (box is None or box.start < end):
        inside = text[start + len("<answer>") : end].strip()
        return found(_answer(inside, strict=False) or None, "<answer>")
    if box is not None:
        rest = text[box.end :]
        if is_denied(rest) or (len(rest) > MARGIN and is_retracted(rest) and is_revised(rest)):
            return None if strict else _unmarked(rest)
        final = None if strict else found(_final(rest), "the final answer behind the last \\boxed")
        return final or found(boxed(text), "\\boxed")
    _, mark, rest = text.rpartition("####")
    rest = BOLD.sub(r"\1", rest.strip().partition("\n")[0].partition("<|")[0].strip())
    phrase = _PHRASE.match(rest.removeprefix("The ").removeprefix("the ")) if mark else None
    answer = answer_after_phrase(phrase.string[phrase.end() :]) if phrase else rest or None
    return found(answer, "####") if mark else None


def _final(text: str) -> str | None:
    """The formula or number that is called the final answer behind the last box."""
    phrase = _last(_FINAL.finditer(text[-WINDOW:]))
    said = answer_after_phrase(text[-WINDOW:][phrase.end() :]) if phrase is not None else None
    return said if said is not None and any(char.isdigit() or char == "\\" for char in said) else None


def _unmarked(text: str) -> str | None:
    """The answer behind "the answer is", or the one that prose ends with."""
    text = text[-WINDOW:].strip()
    text = text if text.isascii() else _DASH.sub("-", unicodedata.normalize("NFC", text))
    language = language_of(text)
    closing = closing_answer(text, language) if language != ENGLISH else None
    if closing is not None:
        return found(closing or None, "what nothing marks")
    start = sentence_start(without_closing(text))
    if tongue_of(ENGLISH).hedge.search(text, start):
        return None
    text = joined_in_english(with_spaces(text[:start] + with_totals(in_digits(text[start:], language))), language)
    text = without_asides(text)
    correction = corrected(text)
    if correction is not None:
        return found(answer_after_phrase(correction), "what nothing marks")
    announced = _ENGLISH_PHRASE if text.isascii() else _PHRASE
    phrase = _last(match for match in announced.finditer(text) if not _is_supposed(text, match.start()))
    revised = phrase is None or is_revised(text[phrase.end() :])
    answer = None if phrase is None or revised else answer_after_phrase(text[phrase.end() :])
    if answer is None and not _CUT_OFF.search(text):
        return found(answer_in_prose(text), "what nothing marks")
    return found(answer or None, "the answer is ...")


def _is_supposed(text: str, end: int) -> bool:
    """Whether what stands before supposes or doubts what follows: `suppose the answer is 9`."""
    return _SUPPOSED.search(text, max(0, end - 40), end) is not None


def _last(matches: Iterator[re.Match[str]]) -> re.Match[str] | None:
    last = deque(matches, maxlen=1)
    return last[0] if last else None
