"""Length penalties for candidates that are much longer or shorter than their reference.

Lengths are in words. Let r be the shorter length divided by the longer one, and t the threshold. There is no penalty if
the candidate has between 1/t and t times as many words as the reference. Otherwise the similarity is multiplied by a
function of r (for `log`, of the two lengths), which is a number from 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

Penalty = Callable[[int, int], float]
"""Returns the factor for the smaller and the larger number of words, in this order; the larger one is above 0."""

PENALTIES: dict[str, Penalty] = {
    "none": lambda few, many: 1.0,
    "ratio": lambda few, many: few / many,
    "sqrt": lambda few, many: math.sqrt(few / many),
    "log": lambda few, many: math.log1p(few) / math.log1p(many),
    "quadratic": lambda few, many: (few / many) ** 2,
    "exponential": lambda few, many: math.exp(few / many - 1.0),
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
    few, many = min(candidate, reference), max(candidate, reference)
    if many <= threshold * few:
        return 1.0
    return PENALTIES[name](few, many)
