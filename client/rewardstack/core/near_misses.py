"""Find fields of `extra_info` whose names are most likely slips of a reward function's own."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import lru_cache

SIMILARITY = 0.8
"""Of two names, from 0 to 1, from which on one is most likely a slip of the other, as `tagg` is of `tag`."""
SHORTEST, LONGEST = 3, 40
"""Characters of the names that are compared."""
MOST_NAMES = 50
"""Names of a sample that are compared."""

log = logging.getLogger(__name__)


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
    slips = [(name, meant) for meant in missed for name in unread if _is_near(name, meant)]
    hint = "; ".join(
        f"extra_info.{name} is not read by {function}; was extra_info.{meant} meant?" for name, meant in slips
    )
    if hint:
        log.warning("%s", hint)
    return hint


def _is_near(name: str, meant: str) -> bool:
    if not all(SHORTEST <= len(one) <= LONGEST for one in (name, meant)):
        return False
    first, second = (one.lower().replace("_", "").replace("-", "") for one in (name, meant))
    return SequenceMatcher(None, first, second).ratio() >= SIMILARITY


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that another name is most likely a slip of; empty where none is near."""
    near = [meant for meant in known if _is_near(name, meant)]
    return max(near, key=lambda meant: SequenceMatcher(None, name.lower(), meant).ratio(), default="")


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return "was 'math' meant? " for a message about an unknown name; empty where no known name is near."""
    meant = nearest(name, known)
    return f"was {meant!r} meant? " if meant else ""
