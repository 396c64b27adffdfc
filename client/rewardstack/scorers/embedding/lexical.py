"""How alike two texts are by their characters: what stands in when no embedding server answers."""

from __future__ import annotations

from difflib import SequenceMatcher

LEXICAL_CHARACTERS = 4000
"""Characters of each text, from its beginning, that are compared: difflib's time grows with their square."""


def lexical_similarity(candidate: str, reference: str) -> float:
    """difflib's ratio of the two texts in lower case, from 0 to 1.

    Args:
        candidate: compared up to `LEXICAL_CHARACTERS`.
        reference: likewise.
    """
    first, second = (text[:LEXICAL_CHARACTERS].lower() for text in (candidate, reference))
    return SequenceMatcher(None, first, second).ratio()
