"""Read the verdict of a checker: a program that decides whether an output is right.

The checker comes from the data set, in the row of the problem. If it reports no verdict, the sample is `unscored`,
because the row is at fault.
"""

from __future__ import annotations

import math

from rewardstack_rules.code.comparison import NUMBER

SECONDS = 10.0
"""CPU limit of a checker for one output, in seconds. The limit for all outputs of a sample is CODE_TIMEOUT."""
MEMORY = 1 << 30
WORDS = {"true": 1.0, "false": 0.0}
ACCEPTED, REJECTED = 0, (1, 2, 4, 7, 8)
"""Exit statuses of testlib.

`ACCEPTED` means that the output is right. `REJECTED` has the statuses for a wrong answer, a wrong format, surplus
output, points (a partial score) and missing output. Any other status is no verdict; 3, for example, means that the
tests are at fault.
"""


def by_number(status: int, printed: bytes) -> bool | None:
    """Return the verdict of a checker that prints 1 or 0 as its last word; None if it reports no verdict.

    A number between 0 and 1, a partial score, counts as 0. If the checker prints 1, but its exit status is not 0, there
    is no verdict.
    """
    number = _last_number(printed)
    if number is None or not 0 <= number <= 1 or (number == 1 and status != 0):
        return None
    return number == 1


def by_status(status: int, printed: bytes) -> bool | None:
    """Return the verdict of a testlib checker, which is its exit status; None if it reports no verdict.

    If the checker exits with `ACCEPTED`, but prints 0 as its last word, there is no verdict.
    """
    if status == ACCEPTED:
        return None if _last_number(printed) == 0 else True
    return False if status in REJECTED else None


def _last_number(printed: bytes) -> float | None:
    """Return the last word as a finite number, with true as 1 and false as 0; None if it is not a number."""
    word = (printed.decode("utf-8", "replace").split() or [""])[-1].lower()
    if word in WORDS:
        return WORDS[word]
    value = float(word) if NUMBER.fullmatch(word) else math.nan
    return value if math.isfinite(value) else None
