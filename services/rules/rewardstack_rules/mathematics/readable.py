"""Whether a reference says anything that an answer could equal: `readable`."""

from __future__ import annotations

from functools import lru_cache

from rewardstack_rules.mathematics import algebra, exact, ratios, signs, single, symbolic
from rewardstack_rules.mathematics.bounds import MAX_ITEMS
from rewardstack_rules.mathematics.comparison.compare import readings
from rewardstack_rules.mathematics.intervals import as_intervals, condition
from rewardstack_rules.mathematics.matrices import cells
from rewardstack_rules.mathematics.notation import tidy
from rewardstack_rules.mathematics.reading.syntax import Remark
from rewardstack_rules.mathematics.structure import group

REMEMBERED = 1024
"""References: several responses are compared with one."""
_ELLIPSIS = "\\ldots"


@lru_cache(maxsize=REMEMBERED)
def readable(reference: str) -> bool:
    """Whether a reference, within the bounds, says anything that an answer could equal."""
    if any(not isinstance(reading, Remark) for reading in readings(reference)):
        return True
    text = tidy(reference)
    several = group(text)
    if several is not None:
        return 0 < len(several.items) <= MAX_ITEMS and all(map(_readable, several.items))
    return _readable(text)


def _readable(text: str) -> bool:
    text = condition(text)
    if signs.has_both(text):
        return all(map(_readable, signs.written_out(text)))
    known = exact.number(text.rstrip("% ")) or ratios.terms(text)
    if known or single.is_based(text) or text == _ELLIPSIS or algebra.read(text) is not None:
        return True
    rows = cells(text)
    if rows is not None:
        return all(_readable(cell) for row in rows for cell in row)
    return as_intervals(text) is not None or symbolic.parsed(text) is not None
