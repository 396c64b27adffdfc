"""Reduce the scores of candidates that are much longer or shorter than their reference.

Lengths are in words. There is no penalty if the longer text is at most `threshold` times as long as the shorter one.
Otherwise the similarity is multiplied by a factor from 0 to 1, which depends on the ratio of the shorter length to the
longer one (for `log`, on both lengths).
"""

from __future__ import annotations

import math
from collections.abc import Callable

Penalty = Callable[[int, int], float]
"""Takes the number of words of the shorter and of the longer text, and returns the factor.

The longer text has at least one word.
"""

PENALTIES: dict[str, Penalty] = {
    "none": lambda shorter, longer: 1.0,
    "ratio": lambda shorter, longer: shorter / longer,
    "sqrt": lambda shorter, longer: math.sqrt(shorter / longer),
    "log": lambda shorter, longer: math.log1p(shorter) / math.log1p(longer),
    "quadratic": lambda shorter, longer: (shorter / longer) ** 2,
    "exponential": lambda shorter, longer: math.exp(shorter / longer - 1.0),
}


def length_penalty(name: str, threshold: float, candidate: int, reference: int) -> float:
    """Return the factor by which to multiply the similarity of a candidate and a reference.

    Args:
        name: one of `PENALTIES`.
        threshold: maximum ratio of the longer to the shorter length for which there is no penalty; at least 1.
        candidate: number of words of the candidate.
        reference: number of words of the reference.

    Returns:
        A number from 0 to 1; 1 for two empty texts.
    """
    shorter, longer = min(candidate, reference), max(candidate, reference)
    if longer <= threshold * shorter:
        return 1.0
    return PENALTIES[name](shorter, longer)
