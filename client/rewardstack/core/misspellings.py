"""Detect misspelled names, such as `temprature` for `temperature`, and warn about unknown arguments."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from functools import lru_cache

SIMILARITY = 0.83
"""Minimum similarity, from 0 to 1, at which a field counts as a misspelling of another field. `max_new_tokens` counts
as a misspelling of `max_tokens`, but `problem_id` does not count as a misspelling of `problem`."""
SUGGESTION_SIMILARITY = 0.8
"""Minimum similarity at which an error suggests a known name for an unknown name, such as `gsm8k` for `gsm9k`."""
MIN_LENGTH, MAX_LENGTH = 3, 40
"""Minimum and maximum length, in characters, of names that are compared."""
MAX_NAMES = 50
"""Maximum number of a sample's fields that are compared."""
VERL_ARGUMENTS = frozenset({"reward_router_address", "reward_model_tokenizer"})
"""Arguments that verl adds to every call; no route needs them."""

log = logging.getLogger(__name__)


def find_closest(name: str, names: Iterable[str], similarity: float = SIMILARITY) -> str:
    """Return the entry of `names` that is most similar to `name`; empty if none is similar enough.

    An entry with two neighboring letters swapped is similar, even if it is short.
    """
    if not MIN_LENGTH <= len(name) <= MAX_LENGTH:
        return ""
    lower = name.lower()
    by_lower = {entry.lower(): entry for entry in names if len(entry) >= MIN_LENGTH}
    swapped = (lower[:at] + lower[at + 1] + lower[at] + lower[at + 2 :] for at in range(len(lower) - 1))
    close = get_close_matches(lower, by_lower, 1, similarity) or [entry for entry in swapped if entry in by_lower]
    return by_lower[close[0]] if close else ""


@lru_cache(maxsize=1024)
def misspelling_hint(reader: str, read: tuple[str, ...], present: tuple[object, ...]) -> str:
    """Return a hint about fields that are probably misspelled, and log it once; empty if there are none.

    Args:
        reader: name of the reward function.
        read: the fields that the function reads.
        present: the fields of a sample.
    """
    unread = [name for name in present if isinstance(name, str) and name not in read][:MAX_NAMES]
    absent = [name for name in read if name not in present]
    hint = "; ".join(
        f"extra_info.{name} is not read by {reader}; did you mean extra_info.{meant}?"
        for name in unread
        if (meant := find_closest(name, absent))
    )
    if hint:
        log.warning("%s", hint)
    return hint


@lru_cache(maxsize=1024)
def warn_of_misspelled_suffix(prefix: str, name: str, longer: tuple[str, ...]) -> None:
    """Warn once if a `data_source` begins with the name of a route, but probably misspells the name of a longer route.

    Args:
        prefix: the route that scores `name`.
        name: a `data_source` that begins with the prefix.
        longer: routes that begin with the prefix; only the text after the prefix is compared.
    """
    suffixes = {entry[len(prefix) :].strip("_"): entry for entry in longer}
    if meant := suffixes.get(find_closest(name[len(prefix) :].strip("_"), suffixes)):
        log.warning("data_source %r is scored by route %r: did you mean %r?", name, prefix, meant)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a suggestion such as "did you mean 'math'? " for an unknown name; empty if there is none.

    The suggestion is the first of these names that exists:

    - a known name that is similar to `name`
    - a known name that is similar to the beginning of `name`: `gsm8k` for `gsn8k_train` or `gsm8k-train`
    - a known name that contains `name`: `llm_judge_remote` for `judge`
    """
    names = sorted(known)
    beginnings = (entry for entry in names if _begins_like(name, entry))
    containing = (entry for entry in names if len(name) > MIN_LENGTH and name.lower() in entry.lower())
    meant = find_closest(name, names, SUGGESTION_SIMILARITY) or next(beginnings, "") or next(containing, "")
    return f"did you mean {meant!r}? " if meant else ""


def not_known(name: object, known: Collection[str]) -> str:
    """Return the end of an error about an unknown name: a suggestion if there is one, and the known names."""
    return f"is not known; {did_you_mean(str(name), known)}available: {', '.join(known)}"


def _begins_like(name: str, known: str) -> bool:
    """Return whether `name` begins with a misspelling of `known`, or with `known` itself.

    In the second case, the next character must not be a letter, a digit or `_`: otherwise, `name` is a longer word.
    """
    begin, rest = name[: len(known)], name[len(known) :]
    is_longer_word = begin == known and (rest[:1].isalnum() or rest[:1] == "_")
    return bool(find_closest(begin, [known], SUGGESTION_SIMILARITY)) and not is_longer_word


def warn_of_unknown(prefix: str, names: Iterable[str], absent: Iterable[str]) -> None:
    """Warn once about each unknown argument, except those that verl adds.

    Args:
        prefix: start of the warning, such as `compute_score: the argument`.
        names: names of the unknown arguments.
        absent: names of known arguments that are missing in the call; the warning suggests the most similar one.
    """
    for name in names:
        if name not in VERL_ARGUMENTS:
            _warn_of_unknown_once(prefix, name, tuple(sorted(absent)))


@lru_cache(maxsize=64)
def _warn_of_unknown_once(prefix: str, name: str, absent: tuple[str, ...]) -> None:
    meant = did_you_mean(name, absent).strip()
    log.warning("%s %r is not known and has no effect%s", prefix, name, f"; {meant}" if meant else "")
