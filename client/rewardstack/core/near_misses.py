"""Detects misspelled names, such as `temprature` for `temperature`."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache

SIMILARITY = 0.83
"""Minimum similarity, from 0 to 1, at which a field counts as a misspelling of another: `max_new_tokens` is close
enough to `max_tokens`, but `problem_id` is not close enough to `problem`."""
SUGGESTED = 0.8
"""Minimum similarity to suggest a known name for an unknown name, such as `gsm8k` for `gsm9k`."""
SHORTEST, LONGEST = 3, 40
"""Minimum and maximum length, in characters, of names that are compared."""
MOST_NAMES = 50
"""Maximum number of a sample's fields that are compared."""

log = logging.getLogger(__name__)


def closest(name: str, names: Iterable[str], similarity: float = SIMILARITY) -> str:
    """Return the entry of `names` that `name` most likely misspells; empty if none is similar."""
    if not SHORTEST <= len(name) <= LONGEST:
        return ""
    known = {one.lower(): one for one in names if len(one) >= SHORTEST}
    return next((known[one] for one in get_close_matches(name.lower(), known, n=1, cutoff=similarity)), "")


@lru_cache(maxsize=1024)
def near_miss(function: str, named: tuple[str, ...], given: tuple[object, ...]) -> str:
    """Return a hint about misspelled fields that a function does not read, and log it once; empty if there are none.

    Args:
        function: name of the reward function.
        named: the fields that the function reads.
        given: the fields of a sample.
    """
    unread = [name for name in given if isinstance(name, str) and name not in named][:MOST_NAMES]
    missed = [name for name in named if name not in given]
    hint = "; ".join(
        f"extra_info.{name} is not read by {function}; did you mean extra_info.{meant}?"
        for name in unread
        if (meant := closest(name, missed))
    )
    if hint:
        log.warning("%s", hint)
    return hint


@lru_cache(maxsize=1024)
def warn_of_suffix(prefix: str, name: str, longer: tuple[str, ...]) -> None:
    """Log once if `name` is probably a misspelling of a longer name.

    Args:
        prefix: the route that scores `name`.
        name: a `data_source` that begins with the prefix.
        longer: names that begin with the prefix, too; only what follows the prefix is compared.
    """
    rests = {one[len(prefix) :].strip("_"): one for one in longer}
    if meant := rests.get(closest(name[len(prefix) :].strip("_"), rests)):
        log.warning("data_source %r is scored by route %r: did you mean %r?", name, prefix, meant)


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return "did you mean 'math'? " for a message about an unknown name; empty if no known name is similar.

    If no known name is similar to `name`, compare the beginning of `name` (`gsn8k_train`, `gsm8k-train`), then look for
    names that contain `name` (`judge`).
    """
    names = sorted(known)
    beginnings = (one for one in names if _begins_like(name, one))
    containing = (one for one in names if len(name) > SHORTEST and name.lower() in one.lower())
    meant = closest(name, names, SUGGESTED) or next(beginnings, "") or next(containing, "")
    return f"did you mean {meant!r}? " if meant else ""


def _begins_like(name: str, known: str) -> bool:
    """Return whether `name` begins with a misspelled `known`, or with `known` and a sign that is no `_`."""
    begin, rest = name[: len(known)], name[len(known) :]
    is_longer_word = begin == known and (rest[:1].isalnum() or rest[:1] == "_")
    return bool(closest(begin, [known], SUGGESTED)) and not is_longer_word
