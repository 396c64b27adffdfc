"""Whether a reference says anything that an answer could equal: `readable`."""

from __future__ import annotations

from functools import lru_cache

from rewardstack_rules.mathematics import symbolic
from rewardstack_rules.mathematics.comparison.compare import readings
from rewardstack_rules.mathematics.reading.syntax import Remark

REMEMBERED = 1024
"""References: several responses are compared with one."""


@lru_cache(maxsize=REMEMBERED)
def readable(reference: str) -> bool:
    """Whether a reference, within the bounds, says anything that an answer could equal."""
    if any(not isinstance(reading, Remark) for reading in readings(reference)):
        return True
    return symbolic.is_readable(reference)
