"""What of a response its reader sees: up to where its turn ends, without comments and what is only space."""

from __future__ import annotations

import re

from rewardstack_verifier.extraction.boxes import braced

_TURN_ENDS = re.compile(
    r"<\|(?:im_end|eot_id|eom_id|end|endoftext|end_of_text|return)\|>|<\uff5cend\u2581of\u2581sentence\uff5c>|</s>|<eos>"
    r"|<end_of_turn>|<\|(?:im_start|start_header_id)\|>\s{0,3}user\b|<\uff5cUser\uff5c>|<start_of_turn>user\b|\[INST\]"
    r"|\n\n(?:Human|User):"
)
"""Tokens that end a text, and what begins another's turn."""
_TOKEN_BEHIND = re.compile(r"<\|[^<>|]{1,30}\|>\s*\Z")
_COMMENT_LINE = re.compile(r"^[ \t]{0,20}%[^\n]*", re.MULTILINE)
_PHANTOM = re.compile(r"\\[hv]?phantom\s{0,3}\{")
MOST_HIDDEN = 32
"""Comments, and phantoms, that are taken out."""


def visible(response: str) -> str:
    """The response as far as it is its author's, and shown.

    Args:
        response: what the policy wrote, of any length.
    """
    response = _without_phantoms(_without_comments(_own_turn(response)))
    return _COMMENT_LINE.sub("", response) if "%" in response else response


def _own_turn(text: str) -> str:
    """What stands before the first end of a turn that has anything before it."""
    for end in _TURN_ENDS.finditer(text):
        if text[: end.start()].strip():
            return text[: end.start()]
    return _TOKEN_BEHIND.sub("", text) if text.rstrip().endswith("|>") else text


def _without_comments(text: str) -> str:
    """The text without `<!-- ... -->`."""
    for _ in range(MOST_HIDDEN):
        start = text.find("<!--")
        end = text.find("-->", start) if start >= 0 else -1
        if end < 0:
            break
        text = text[:start] + text[end + len("-->") :]
    return text


def _without_phantoms(text: str) -> str:
    for _ in range(MOST_HIDDEN):
        phantom = _PHANTOM.search(text)
        group = None if phantom is None else braced(text, phantom.end() - 1)
        if phantom is None or group is None:
            break
        text = text[: phantom.start()] + text[group[0] :]
    return text
