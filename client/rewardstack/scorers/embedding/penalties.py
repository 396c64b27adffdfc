"""Reduce the scores of candidates that are much longer or shorter than their reference.

Lengths are in words. Let r be the shorter length divided by the longer one, and t the threshold. There is no penalty if
the candidate has between 1/t and t times as many words as the reference. Otherwise the similarity is multiplied by a
factor from 0 to 1, which depends on r (for `log`, on both lengths).
"""

from __future__ import annotations

import math
from collections.abc import Callable

Penalty = Callable[[int, int], float]
"""Returns the factor for the smaller and the larger number of words, in this order; the larger one is above 0."""

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
        threshold: the threshold t, at least 1.
        candidate: number of words of the candidate.
        reference: number of words of the reference.

    Returns:
        A number from 0 to 1. Two empty texts are equally long; if only one text is empty, r is 0.
    """
    shorter, longer = min(candidate, reference), max(candidate, reference)
    if longer <= threshold * shorter:
        return 1.0
    return PENALTIES[name](shorter, longer)
