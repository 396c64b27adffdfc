"""Find names that are most likely slips of others, such as `temprature` of `temperature`."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache

SIMILARITY = 0.83
"""Of two names, from 0 to 1, from which on one is most likely a slip of the other: `max_tokens` of `max_new_tokens` is,
`problem_id` of `problem` is not."""
SUGGESTED = 0.8
"""The same where the name is an error anyway: `gsm9k` is a slip of `gsm8k`."""
SHORTEST, LONGEST = 3, 40
"""Characters of the names that are compared."""
MOST_NAMES = 50
"""Names of a sample that are compared."""

log = logging.getLogger(__name__)


def closest(name: str, names: Iterable[str], similarity: float = SIMILARITY) -> str:
    """Return the one of `names` that `name` is most likely a slip of; empty where there is none."""
    if not SHORTEST <= len(name) <= LONGEST:
        return ""
    known = {one.lower(): one for one in names if len(one) >= SHORTEST}
    return next((known[one] for one in get_close_matches(name.lower(), known, n=1, cutoff=similarity)), "")


@lru_cache(maxsize=1024)
def near_miss(function: str, named: tuple[str, ...], given: tuple[object, ...]) -> str:
    """Return a sentence about fields that a function does not read, but most likely should; empty where there is none.

    It is also logged, once for each set of names.

    Args:
        function: the reward function.
        named: the fields that it reads by name.
        given: the fields that a sample has.
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
    """Return "was 'math' meant? " for a message about an unknown name; empty where no known name is near."""
    meant = closest(name, known, SUGGESTED)
    return f"was {meant!r} meant? " if meant else ""
