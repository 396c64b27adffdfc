"""Arguments by name that a trainer passes on: those that are its own, and those that nobody knows."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import lru_cache

VERLS_OWN = frozenset({"reward_router_address", "reward_model_tokenizer"})
"""Those that verl adds to every call and that no route needs."""

log = logging.getLogger(__name__)


def warn_of_unknown(whose: str, names: Iterable[str]) -> None:
    """Says once of each argument that has no effect, verl's own apart.

    Args:
        whose: how the warning begins, such as `compute_score: the argument`.
        names: of the arguments that were not known.
    """
    for name in names:
        if name not in VERLS_OWN:
            _warn(whose, name)


@lru_cache(maxsize=64)
def _warn(whose: str, name: str) -> None:
    log.warning("%s %r is not known and has no effect", whose, name)
