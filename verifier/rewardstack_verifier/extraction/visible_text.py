"""Remove what a reader does not see: earlier turns, tool output, comments, hidden or canceled text, HTML for stress."""

from __future__ import annotations

import re

from rewardstack_verifier.extraction.boxes import read_braces
from rewardstack_verifier.transcript import last_turn

_DIALOGUE = re.compile(r"\n\n(?:Human|User):")
_COMMENT = re.compile(
    r"(?:^|(?<=<answer>))[ \t]{0,20}%[^\n]*|(?<=[}$)\].])[ \t]{1,20}%[ \t]{0,20}(?=[A-Za-z\\])[^\n]*", re.MULTILINE
)
"""A LaTeX comment at the beginning of a line, right after `<answer>`, or after a formula or sentence."""
_HIDING = re.compile(r"\\(?:[hv]?phantom|[bx]?cancel|sout)\s{0,3}\{")
"""A command whose argument LaTeX does not print, or strikes out."""
_HIDDEN_ENDS = {"<!--": "-->", "\\iffalse": "\\fi", "\\begin{comment}": "\\end{comment}"}
"""The beginnings of text that is not printed, and their ends."""
_DECORATION = re.compile(r"</?(?:b|i|u|em|strong|mark)>|[\u2705\u2713\u2714\u2611]\ufe0f?")
"""HTML tags for stress, and check marks."""
MAX_HIDDEN = 32
"""Maximum number of passages of each kind to remove."""


def get_visible_text(response: str) -> str:
    """Return the visible text of the last assistant turn of a response.

    Args:
        response: text of the response, of any length.
    """
    text = without_dialogue(last_turn(response))
    for start, end in _HIDDEN_ENDS.items():
        text = _drop_between(text, start, end)
    text = _drop_arguments(text) if "\\" in text else text
    text = text if text.isascii() and "</" not in text else _DECORATION.sub("", text)
    return _COMMENT.sub("", text) if "%" in text else text


def without_dialogue(text: str) -> str:
    """Return the text before the first paragraph that begins with `Human:` or `User:`.

    Base models invent such turns. A paragraph of this kind at the beginning of the text is kept. `last_turn` does not
    remove such paragraphs, because they may be part of the task (a play, a log).
    """
    for speaker in _DIALOGUE.finditer(text):
        if text[: speaker.start()].strip():
            return text[: speaker.start()]
    return text


def _drop_between(text: str, opening: str, closing: str) -> str:
    """Return the text without the passages between two marks."""
    for _ in range(MAX_HIDDEN):
        start = text.find(opening)
        end = text.find(closing, start) if start >= 0 else -1
        if end < 0:
            break
        text = text[:start] + text[end + len(closing) :]
    return text


def _drop_arguments(text: str) -> str:
    """Return the text without the arguments of commands such as `\\phantom` and `\\cancel`."""
    for _ in range(MAX_HIDDEN):
        hiding = _HIDING.search(text)
        group = None if hiding is None else read_braces(text, hiding.end() - 1)
        if hiding is None or group is None:
            break
        text = text[: hiding.start()] + text[group[0] :]
    return text
