"""Warns about unknown keyword arguments from trainers."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import lru_cache

VERL_ARGUMENTS = frozenset({"reward_router_address", "reward_model_tokenizer"})
"""Arguments that verl adds to every call; no route needs them."""

log = logging.getLogger(__name__)


def warn_of_unknown(prefix: str, names: Iterable[str]) -> None:
    """Warn once about each unknown argument, except those that verl adds.

    Args:
        prefix: start of the warning, such as `compute_score: the argument`.
        names: names of the unknown arguments.
    """
    for name in names:
        if name not in VERL_ARGUMENTS:
            _warn(prefix, name)


@lru_cache(maxsize=64)
def _warn(prefix: str, name: str) -> None:
    log.warning("%s %r is not known and has no effect", prefix, name)
