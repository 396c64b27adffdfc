"""Compute the lexical similarity of two texts, which is the fallback score if no embedding server answers."""

from __future__ import annotations

from difflib import SequenceMatcher

MAX_CHARACTERS = 4000
"""Number of characters to compare from the start of each text; difflib's time is quadratic in the length."""


def lexical_similarity(candidate: str, reference: str) -> float:
    """Return difflib's ratio of the first `MAX_CHARACTERS` of both texts in lower case, from 0 to 1."""
    first, second = (text[:MAX_CHARACTERS].lower() for text in (candidate, reference))
    return SequenceMatcher(None, first, second).ratio()
