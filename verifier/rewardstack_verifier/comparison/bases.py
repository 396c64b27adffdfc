"""Numbers in a base: digits, and the base as their subscript."""

from __future__ import annotations

from typing import NamedTuple

from rewardstack_verifier.numbers.rational import integral
from rewardstack_verifier.numbers.tree import Apply, Expression, Number, Symbol
from rewardstack_verifier.reading.syntax import Node, is_expression

LARGEST = 36
"""Bases have a digit or letter for each value."""


class InBase(NamedTuple):
    """The digits as they were written, and the base."""

    digits: str
    base: int


def in_base(node: Node) -> InBase | None:
    """The number in a base that an answer is; None where it is anything else."""
    if not isinstance(node, Apply) or node.operation != "subscript":
        return None
    digits, base = _digits(node.arguments[0]), integral(node.arguments[1])
    if not digits or base is None or not 2 <= base <= LARGEST:
        return None
    return InBase(digits, base) if all(int(digit, LARGEST) < base for digit in digits.lstrip("-")) else None


def _digits(written: Expression) -> str:
    if isinstance(written, Symbol):
        return written.name if written.name.isalnum() and not written.name.isalpha() else ""
    value = integral(written)
    return "" if value is None else str(value)


def equal_bases(answer: Node, reference: Node) -> bool | None:
    """Whether two numbers have the same digits in the same base, one of which at least `in_base` reads.

    A reference says which base is asked for, so that an answer may leave it out; a bare reference is in base ten.

    Returns:
        None where one is no number.
    """
    found, expected = in_base(answer), in_base(reference)
    if found and expected:
        return found == expected
    bare = reference if found else answer
    if not is_expression(bare):
        return None
    said = found or expected
    digits = isinstance(bare, Number) and bare.places is None and said is not None and str(bare.value) == said.digits
    return digits and (expected is not None or (said is not None and said.base == 10))
