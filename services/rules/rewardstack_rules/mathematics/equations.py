"""Equations that are equal up to a factor: `2x + 4y = 6` and `x = 3 - 2y`."""

from __future__ import annotations

import re
from fractions import Fraction

from rewardstack_rules.mathematics import algebra

ROUNDED = Fraction(1, 50)
"""How far apart numbers may lie in proportion that somebody rounded and wrote an equals sign between."""

_VALUE = re.compile(r"\s*[A-Za-z]\s*=\s*-?[\d./]+\s*")
_ZERO = re.compile(r".*=\s*0\s*|\s*0\s*=.*", re.DOTALL)


def is_unsolved(answer: str, reference: str) -> bool:
    """Whether an equation still has to be solved: `2x = 4` for `x = 2`, but not `x - 2 = 0`, which can be a line."""
    return bool(_VALUE.fullmatch(reference)) and not (_VALUE.fullmatch(answer) or _ZERO.fullmatch(answer))


def contradict(chain: str) -> bool:
    """Whether a chain of equations says that numbers are equal which are not, even when rounded: `3 = 4`."""
    sums = [algebra.read(side) for side in chain.split("=")]
    numbers = [
        found.get(algebra.ONE, Fraction(0)) for found in sums if found is not None and found.keys() <= {algebra.ONE}
    ]
    return bool(numbers) and max(numbers) - min(numbers) > ROUNDED * max(map(abs, numbers))


def proportional(one: str, other: str) -> bool:
    """Whether the two sides of both tidied equations differ by the same polynomial up to a rational factor."""
    found, expected = _difference(one), _difference(other)
    if not found or not expected or found.keys() != expected.keys():
        return False
    factors = {found[term] / expected[term] for term in found}
    return len(factors) == 1


def _difference(text: str) -> algebra.Sum | None:
    left, sign, right = text.partition("=")
    return algebra.read(f"{left}-({right})") if sign and left.strip() and right.strip() and "=" not in right else None
