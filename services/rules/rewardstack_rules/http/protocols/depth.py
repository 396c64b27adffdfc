"""JSON that is nested deeper than Python's parser goes: read without what nobody could use anyway."""

from __future__ import annotations

import re

from rewardstack_rules.http.protocols.tokens import TEXT, without_escapes

LEVELS = 128
"""Levels that are kept: more than any sample may have, so that it is still found to be too deep."""
MOST_BRACKETS = 2**22
"""Most brackets of a body that is read so, which takes about a second; one with more is refused as a whole."""

_TOKEN = re.compile(TEXT + rb"|[\[{]|[]}]")


def pruned(text: bytes) -> bytes:
    """JSON with null for each list and object that stands in `LEVELS` others; malformed JSON stays malformed.

    Raises:
        RecursionError: it has more than `MOST_BRACKETS`.
    """
    if text.count(b"[") + text.count(b"{") > MOST_BRACKETS:
        raise RecursionError(f"it is nested deeper than {LEVELS} levels, and has more than {MOST_BRACKETS} brackets")
    kept: list[bytes] = []
    depth = start = 0
    for token in _TOKEN.finditer(without_escapes(text)):
        if token[0] in b"[{":
            if depth == LEVELS:
                kept += (text[start : token.start()], b"null")
            depth += 1
        elif token[0] in b"]}":
            depth -= 1
            if depth == LEVELS:
                start = token.end()
    kept.append(text[start:] if depth <= LEVELS else b"")
    return b"".join(kept)
