"""The last sentence of a response, without what closes a conversation, and what in a sentence is not its statement."""

from __future__ import annotations

import re
from collections import deque

_END = re.compile(r"[.!?](?<!\bi\.e\.)(?<!\be\.g\.)(?<!\bapprox\.)(?<!\bsq\.)(?<!\bRs\.)[*_)\"']{0,3}\s+(?=\S)|[。\n]")
_CLOSING = re.compile(
    r"(?:I hope (?:this|that|it)|Hope (?:this|that)|(?:Please )?(?:[Ll]et me know|[Ff]eel free)|Would you like"
    r"|Good luck|Do you (?:want|need)|If you (?:have|need|want|would|'d)|Is there anything|(?:Thanks|Thank you)\b"
    r"|Great job|I(?:'d be| would be|'m) happy|Happy to|Any (?:other )?questions|\(?\**Confidence\b)[^\n]{0,200}\Z"
)
_DONE = re.compile(r"(?:\$|\\\()?\s*\\(?:blacksquare|square|qed|Box)\s*(?:\$|\\\))?\s*\Z|\bQ\.?E\.?D\.?\Z")
_CHECK = re.compile(
    r"\n[ \t]*(?:[#*_]{0,6} ?)(?:(?:To |Sanity )?(?:double[- ])?check|Verification|Checking|Verify)"
    r"(?: [a-z]{1,20}){0,3}[*_ ]{0,3}:"
    r"(?:(?!\b(?:so|thus|hence|therefore|not|wrong|fails?)\b|\n\n)[^≠]){0,600}\Z",
    re.IGNORECASE,
)
_ORNAMENTS = " \n\t✓✔✅☑🎉∎■□"
_CLOSINGS = 3
_NEAR = 400
"""Characters at the end of a text that are searched first for the end of a sentence."""


def without_closing(text: str) -> str:
    """A response without the remarks that close a conversation, and without a check of its result at its end."""
    text = text.rstrip(_ORNAMENTS)
    done = _DONE.search(text, max(0, len(text) - 20))
    text = text[: done.start()].rstrip(_ORNAMENTS) if done else text
    for _ in range(_CLOSINGS):
        start = sentence_start(text)
        if not start or not _CLOSING.match(text, start):
            break
        text = text[:start].rstrip(_ORNAMENTS)
    check = _CHECK.search(text, max(0, len(text) - 800))
    return text[: check.start()].rstrip(_ORNAMENTS) if check and text[: check.start()].strip() else text


def sentence_start(text: str) -> int:
    """Where the last sentence of a text starts."""
    for start in (max(0, len(text) - _NEAR), 0):
        ends = deque(_END.finditer(text, start), maxlen=1)
        if ends or not start:
            break
    return ends[0].end() if ends else 0
