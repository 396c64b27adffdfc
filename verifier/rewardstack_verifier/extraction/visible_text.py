"""Remove text that a reader does not see: earlier turns, tool output, comments and LaTeX phantoms."""

from __future__ import annotations

import re

from rewardstack_verifier.extraction.boxes import read_braces
from rewardstack_verifier.transcript import last_turn

_DIALOGUE = re.compile(r"\n\n(?:Human|User):")
_COMMENT_LINE = re.compile(r"(?:^|(?<=<answer>))[ \t]{0,20}%[^\n]*", re.MULTILINE)
"""A LaTeX comment at the beginning of a line, or right after `<answer>`."""
_PHANTOM = re.compile(r"\\[hv]?phantom\s{0,3}\{")
MAX_HIDDEN = 32
"""Maximum number of HTML comments, and of `\\phantom` commands, to remove."""


def get_visible_text(response: str) -> str:
    """Return the visible text of the last assistant turn of a response.

    Args:
        response: text of the response, of any length.
    """
    text = without_dialogue(last_turn(response))
    text = _drop_comments(text) if "<!--" in text else text
    text = _drop_phantoms(text) if "phantom" in text else text
    return _COMMENT_LINE.sub("", text) if "%" in text else text


def without_dialogue(text: str) -> str:
    """Return the text before the first paragraph that begins with `Human:` or `User:`.

    Base models invent such turns. A paragraph of this kind at the beginning of the text is kept. `last_turn` does not
    remove such paragraphs, because they may be part of the task (a play, a log).
    """
    for speaker in _DIALOGUE.finditer(text):
        if text[: speaker.start()].strip():
            return text[: speaker.start()]
    return text


def _drop_comments(text: str) -> str:
    """Return the text without `<!-- ... -->`."""
    for _ in range(MAX_HIDDEN):
        start = text.find("<!--")
        end = text.find("-->", start) if start >= 0 else -1
        if end < 0:
            break
        text = text[:start] + text[end + len("-->") :]
    return text


def _drop_phantoms(text: str) -> str:
    for _ in range(MAX_HIDDEN):
        phantom = _PHANTOM.search(text)
        group = None if phantom is None else read_braces(text, phantom.end() - 1)
        if phantom is None or group is None:
            break
        text = text[: phantom.start()] + text[group[0] :]
    return text
