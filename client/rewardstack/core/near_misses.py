"""Detects misspelled names, such as `temprature` for `temperature`."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache

SIMILARITY = 0.83
"""Similarity, from 0 to 1, from which one name counts as a misspelling of another: true of `max_tokens` and
`max_new_tokens`, not of `problem_id` and `problem`."""
SUGGESTED = 0.8
"""The same for a name that is unknown anyway, such as `gsm9k` for `gsm8k`."""
SHORTEST, LONGEST = 3, 40
"""Shortest and longest name, in characters, that are compared."""
MOST_NAMES = 50
"""Most names of a sample that are compared."""

log = logging.getLogger(__name__)


def closest(name: str, names: Iterable[str], similarity: float = SIMILARITY) -> str:
    """Return the one of `names` that `name` most likely misspells; empty if there is none."""
    if not SHORTEST <= len(name) <= LONGEST:
        return ""
    known = {one.lower(): one for one in names if len(one) >= SHORTEST}
    return next((known[one] for one in get_close_matches(name.lower(), known, n=1, cutoff=similarity)), "")


@lru_cache(maxsize=1024)
def near_miss(function: str, named: tuple[str, ...], given: tuple[object, ...]) -> str:
    """Return a hint about misspelled fields that a function does not read, and log it once; empty if there are none.

    Args:
        function: the reward function.
        named: the fields that it reads by name.
        given: the fields of a sample.
    """
    unread = [name for name in given if isinstance(name, str) and name not in named][:MOST_NAMES]
    missed = [name for name in named if name not in given]
    hint = "; ".join(
        f"extra_info.{name} is not read by {function}; was extra_info.{meant} meant?"
        for name in unread
        if (meant := closest(name, missed))
    )
    if hint:
        log.warning("%s", hint)
    return hint


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return "was 'math' meant? " for a message about an unknown name; empty if no known name is similar."""
    meant = closest(name, known, SUGGESTED)
    return f"was {meant!r} meant? " if meant else ""
