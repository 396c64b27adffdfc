"""What a cache key says, and the values that can stand under it."""

from __future__ import annotations

import math
from typing import NamedTuple

Range = tuple[float, float]
"""The lowest and the highest value that a score can have."""
ANY: Range = (-math.inf, math.inf)
UNIT: Range = (0.0, 1.0)


class Key(NamedTuple):
    """What a score depends on, hashed.

    Args:
        text: the cache key (`rewardstack.cache.key`).
        deterministic: whether asking twice gives the same score, so that identical requests in flight share one call.
        range: of the scores that can stand under it.
    """

    text: str
    deterministic: bool = True
    range: Range = ANY
