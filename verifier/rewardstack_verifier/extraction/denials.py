"""Find out whether a text denies, supposes or withdraws an answer: the cues are in `lexicon.denials`."""

from __future__ import annotations

import re

from rewardstack_verifier.lexicon.denials import CONTRASTS, DENIALS

_BEFORE, _BEHIND, _AFTER = (f"(?:{'|'.join(cells)})" for cells in zip(*DENIALS.values(), strict=True))
_DETERMINERS = (
    r"(?: (?:that|dass|que|che|что))?(?: (?:the|this|my|our|an?|die|das|la|le|o|il|l['\u2019]))?"
    r"(?: (?:final|correct|right|first))?"
)
_DENIED_BEFORE = re.compile(
    rf"(?:(?<![A-Za-z])|(?=n['\u2019]t|[^A-Za-z])){_BEFORE}{_DETERMINERS}(?:[ $*_(\"'\u201c\u300c]|\\[\[(]){{0,6}}\Z",
    re.IGNORECASE,
)
_DENIED_BEHIND = re.compile(
    rf"(?:[ ,;:*)\]}}$_\uff0c\uff1b\uff1a\uff09\u300d\u201d\"'—-]|\\[\])]){{0,6}}{_BEHIND}",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    rf"[\s.,;:!?…*()\]}}$_—\u3002\uff0c\uff1b\uff1a\uff01\uff1f\u3001\uff09-]{{0,8}}{_AFTER}",
    re.IGNORECASE,
)
_CHOICE = r"(?:(?:the|die|la|l['\u2019]option|la opción|option) )?[*$(]{0,3}[A-J][*$)]{0,3}"
_CONTRAST = re.compile(rf"(?<![A-Za-z])(?:{CONTRASTS.replace('X', _CHOICE)})(?=\s?{_CHOICE})")
MAX_CONTRAST = 400
"""Characters at the end of a text to search for a contrast."""
MAX_BEFORE = 120
"""Maximum characters before an answer to search for a denial."""
MAX_MENTIONS = 50
"""Maximum number of later mentions of an answer to examine."""
_IN_VALUE = re.compile(r"[\w.,/+\u2212-]\Z")


def drop_contrasts(text: str) -> str:
    """Return a text with `:` for a denied letter, "not B but", if the chosen one follows: "not B but D"."""
    return text[:-MAX_CONTRAST] + _CONTRAST.sub(": ", text[-MAX_CONTRAST:])


def is_denied_before(text: str, start: int) -> bool:
    """Return whether the text before a position denies, supposes or only reports the answer that begins there."""
    sentence = max(
        0, start - MAX_BEFORE, *(text.rfind(mark, max(0, start - MAX_BEFORE), start) for mark in ("\n", ". ", "。"))
    )
    return _DENIED_BEFORE.search(text, sentence, start) is not None


def is_denied_behind(text: str, end: int) -> bool:
    """Return whether the text right after an answer denies it: "is wrong"."""
    return _DENIED_BEHIND.match(text, end) is not None


def is_withdrawn(text: str, end: int) -> bool:
    """Return whether the text right after an answer, or after its sentence, withdraws it: ". No, 6"."""
    return _DENIED_AFTER.match(text, end) is not None or is_denied_behind(text, end)


def is_denied_later(text: str, value: str, start: int) -> bool:
    """Return whether a text denies one of the mentions of a value after a position: "so 7 is not possible"."""
    for _ in range(MAX_MENTIONS):
        start = text.find(value, start)
        if start < 0:
            return False
        end = start + len(value)
        if is_denied_behind(text, end) and not _IN_VALUE.search(text, max(0, start - 1), start):
            return True
        start = end
    return False
