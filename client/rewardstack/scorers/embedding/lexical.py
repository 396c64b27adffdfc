"""Lexical similarity of two texts: the fallback if no embedding server answers."""

from __future__ import annotations

from difflib import SequenceMatcher

LEXICAL_CHARACTERS = 4000
"""Most characters of each text that are compared, because difflib's time is quadratic."""


def lexical_similarity(candidate: str, reference: str) -> float:
    """Return difflib's ratio of the first `LEXICAL_CHARACTERS` of both texts in lower case, from 0 to 1."""
    first, second = (text[:LEXICAL_CHARACTERS].lower() for text in (candidate, reference))
    return SequenceMatcher(None, first, second).ratio()
