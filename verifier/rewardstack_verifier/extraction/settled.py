"""Whether a text that nothing marks settles on an answer, or breaks off while it still doubts one."""

from __future__ import annotations

import re
from collections import deque

_AGAIN = r"re-?(?:compute|calculate|consider|count|examine|evaluate|think|visit|do|read|start)\w*"
_DOUBTS = re.compile(
    r"\b(?:(?-i:Wait)(?=\s(?:a|no|but|that|I|if|the|this|let|maybe|so|it|we|what|is|did)\b)|wait(?=\s?[,.!?:;…—-])"
    r"|(?:but|no|oh) wait|actually,? no|just kidding|hm+"
    r"|hold on|on second thought|start over|(?:let me|let's|let us) try"
    r"|(?:try|think|look|check) again"
    rf"|(?:let me|let's|let us|(?:I|we) (?:should|need to|must|will|have to)|I'll|we'll) {_AGAIN}"
    r"|(?:that|this|it)(?:'s| is| was) (?:not (?:right|correct|possible|true)|wrong|impossible)"
    r"|(?:can't|cannot|can not) be (?:right|correct|true)|(?<!by )contradiction(?! shows| proves)"
    r"|contradict(?:s|ing)|oops|(?-i:Not sure)|(?<=\.\.\.)no|(?<=\.\.\. )no"
    r"|is (?:this|that|it) (?:right|correct)(?=\?)|but (?:the|this) (?:question|problem) asks|which is (?:false|absurd)"
    r"|(?:doesn't|does not) (?:match|agree|fit)"
    r"|(?:made|found) (?:a mistake|an error)|but (?:maybe|perhaps))\b",
    re.IGNORECASE,
)
_CHECKS = re.compile(
    r"\b(?:double[- ]check|re-?check|re-?verify|(?:should|let me|let's) (?:check|verify|see))\w*\b", re.IGNORECASE
)
_GOES_ON = re.compile(
    r"(?:but|however|actually|alternatively|let me|let's|let us|suppose|consider|assume|next|case)\b",
    re.IGNORECASE,
)
_ANNOUNCES = re.compile(
    r"(?:now|next|but|however|need to|have to|must|let(?:'s| us| me)|it remains|(?:I|we)(?:'ll| will)|consider"
    r"|(?:we|I) (?:now |still |also |then |next )?(?:need|must|have) to|the (?:next|remaining) (?:step|case|part|one)s?"
    r"|to (?:find|get|compute|determine|solve))\b[^\d$\\]*\Z",
    re.IGNORECASE,
)
_TENTATIVE = re.compile(
    r"\b(?:at first (?:glance|sight)|(?:one|you|we) (?:might|may|could) (?:be tempted|think|guess|expect)"
    r"|common mistake|maybe|perhaps|initially|first (?:attempt|estimate|guess|thought)|candidates?|stuck|to be careful"
    r"|the (?:problem|question) (?:states|says|asks|gives)|(?:is|looks) tempting"
    r"|(?-i:Or) (?:is|are|maybe|perhaps|should|could|would)"
    r"|we (?:want|need|have|are asked|are trying|must)(?: to)? (?:find|know|determine|show|count|compute|solve|prove"
    r"|exclude|include|consider|multiply|divide|subtract|add|account|check|remove))\b",
    re.IGNORECASE,
)
_SUPPOSES = re.compile(
    r"(?:let|suppose|assum(?:e|ing)|consider|take|say|try(?:ing)?|testing)(?: that)?"
    r" [$\\( ]{0,3}[A-Za-z]\w? ?=[^=,;]*\Z"
    r"|(?:but|however|yet)\b.*[\d$][^\d$]*(?:\bnot\b|n't\b|\bfails?\b|\bviolates\b|\bignores\b)[^\d$]*\Z",
    re.IGNORECASE | re.DOTALL,
)
_CONCLUDES = re.compile(
    r"[*_ ]*(?:so|thus|hence|therefore|in total|total|final|results?|answer|the|=>|[A-Za-z] ?=)", re.IGNORECASE
)
_TURNS = re.compile(
    r"\b(?:but|however|so|then|thus|hence|therefore|actually|instead|whereas|gives|(?:we|and) get)\b", re.IGNORECASE
)
_SETTLES = re.compile(
    r"\b(?:so|thus|hence|therefore|yes|yep|indeed|correct|confirm(?:s|ed)|works|matches|agrees|checks out|consistent"
    r"|no (?:real )?solutions?|final(?:ly)?|answers?|total|result|conclu\w+|consequently"
    r"|(?:we|I) (?:get|have|find|obtain)"
    r"|(?:this|which) gives)\b"
    r"|[✓✔✅]|=>|⇒|∴",
    re.IGNORECASE,
)
_AFFIRMS = re.compile(
    r"\b(?:yes|yep|indeed|confirm(?:s|ed)|works|matches|agrees|checks out|consistent"
    r"|(?:is|that's|it's) (?:correct|right))\b|[✓✔✅]",
    re.IGNORECASE,
)
_RETRACTS = re.compile(
    r"\b(?:wait|no|hmm+|actually|oops|sorry)\b[^\n]{0,40}"
    r"\b(?:(?:that|this|it)(?:'s| is| was) (?:wrong|incorrect|not (?:right|correct))"
    r"|mistake|error|should (?:be|have been)|let me re(?:compute|calculate|do|consider|check))\b",
    re.IGNORECASE,
)
_IN_MID_SENTENCE = re.compile(
    r"(?:\b(?:so|and|but|or|then|thus|hence|therefore|because|since|if|when|whether|the|of|to|is|are|that|which|we|how|many|much"
    r"|let|for|with|by|first|next|also|maybe|perhaps),?|[-+/\u00d7·=(:])\s*\Z",
    re.IGNORECASE,
)
NO = r"(?:no|nope|nein|non|\u043d\u0435\u0442)\b"
"""A pattern of what denies by a word of its own."""
_IS_WRONG = r"(?:that|this|it)(?:'s| is| was) (?:wrong|incorrect|not (?:right|correct))\b"
_DENIES = re.compile(
    r"[\s$.,)*\]}\\]{0,12}(?:"
    r"(?:is|was|are)(?: (?:also|clearly|definitely|actually))?"
    r" (?:not (?:correct|right|the answer)|wrong|incorrect|false)\b"
    rf"|[?!.,;\s\u2014\u2013-]{{0,4}}(?:{NO}[^\S\n]*[,.!;\u2014-]|(?:wait|oops|hmm)\b[,.! ]*(?:no\b)?)[\s,]*"
    rf"(?:{_IS_WRONG}|\Z)"
    rf"|[?!.;\s]{{1,4}}{_IS_WRONG})"
    rf"|[\s$)*\]}}\\]{{0,8}}\?\W{{0,4}}(?:{NO}|\u4e0d)",
    re.IGNORECASE,
)
ENDS = frozenset(".!)]}*$")
"""What a text ends with that does not break off in mid-sentence."""
_NEAR = 400
"""Characters at the end of a text in which a doubt stays open where the text ends in mid-sentence."""
_LAST = 2_000
"""Characters at the end of a text in which doubts count: what was doubted before that has been settled since."""


def breaks_off(text: str, start: int) -> bool:
    """Whether a text ends in mid-sentence, or with a doubt that nothing behind it settles.

    Args:
        text: the end of a response, without spaces at its end.
        start: where its last sentence starts.
    """
    if _ANNOUNCES.match(text, start) or (text[-1:] not in ENDS and _GOES_ON.match(text, start)):
        return True
    tentative = _SUPPOSES.match(text, start) or _TENTATIVE.search(text, start)
    if tentative is not None and not _TURNS.search(text, tentative.end()):
        return True
    if text[-1:] not in ENDS and not _CONCLUDES.match(text, start) and _DOUBTS.search(text, max(0, len(text) - _NEAR)):
        return True
    text = text[-_LAST:]
    if _IN_MID_SENTENCE.search(text, max(0, len(text) - 20)):
        return True
    return _is_open(text, _DOUBTS) or (text[-1:] not in ENDS and _is_open(text, _CHECKS))


def is_denied(text: str) -> bool:
    """Whether a text begins by denying what stands before it: "is incorrect", "? No.", ". No, that is wrong".

    Args:
        text: behind a marked answer.
    """
    return _DENIES.match(text) is not None


def is_retracted(text: str) -> bool:
    """Whether a text takes back what stands before it.

    Args:
        text: behind a marked answer.
    """
    return _RETRACTS.search(text[:_LAST]) is not None


def is_revised(text: str) -> bool:
    """Whether a text casts a doubt, and does not come back to what it doubts.

    Args:
        text: behind an answer.
    """
    last = deque(_DOUBTS.finditer(text[-_LAST:]), maxlen=1)
    return bool(last) and _AFFIRMS.search(text[-_LAST:], last[0].end()) is None


def _is_open(text: str, opening: re.Pattern[str]) -> bool:
    last = deque(opening.finditer(text), maxlen=1)
    return bool(last) and _SETTLES.search(text, last[0].end()) is None
