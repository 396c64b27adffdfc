"""Warnings about unknown keyword arguments from trainers."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import lru_cache

VERLS_OWN = frozenset({"reward_router_address", "reward_model_tokenizer"})
"""Arguments that verl adds to every call and that no route needs."""

log = logging.getLogger(__name__)


def warn_of_unknown(whose: str, names: Iterable[str]) -> None:
    """Warn once about each unknown argument, except those that verl adds.

    Args:
        whose: start of the warning, such as `compute_score: the argument`.
        names: names of the unknown arguments.
    """
    for name in names:
        if name not in VERLS_OWN:
            _warn(whose, name)


@lru_cache(maxsize=64)
def _warn(whose: str, name: str) -> None:
    log.warning("%s %r is not known and has no effect", whose, name)
