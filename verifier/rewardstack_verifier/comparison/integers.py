"""Integers in a base, `1011_2`, and modulo another one, `x \\equiv 2 \\pmod 5`."""

from __future__ import annotations

from typing import NamedTuple

from rewardstack_verifier.comparison.values import equal_values
from rewardstack_verifier.numbers.equality import same
from rewardstack_verifier.numbers.rational import integral
from rewardstack_verifier.numbers.tree import Apply, Expression, Number, Symbol
from rewardstack_verifier.reading.syntax import Node, Relation, is_expression

LARGEST = 36
"""Bases have a digit or letter for each value."""


class InBase(NamedTuple):
    """The digits as they were written, and the base."""

    digits: str
    base: int


class Congruence(NamedTuple):
    """What is congruent to what: `x`, 2 and 5; the name may be None."""

    name: Expression | None
    residue: Expression
    modulus: Expression


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


def congruence(node: Node) -> Congruence | None:
    """The congruence that an answer says; None where it says anything else."""
    if not isinstance(node, Relation) or node.modulus is None:
        return None
    sides = [side for side in node.sides if is_expression(side)]
    if len(sides) != len(node.sides) or node.operators not in ((), ("equiv",), ("=",)):
        return None
    return Congruence(sides[0] if len(sides) == 2 else None, sides[-1], node.modulus)


def equal_congruences(answer: Congruence, reference: Congruence) -> bool | None:
    """Whether two congruences say the same class of numbers, of the same name."""
    if answer.name and reference.name and answer.name != reference.name:
        return False
    one, other = integral(answer.residue), integral(reference.residue)
    moduli = integral(answer.modulus), integral(reference.modulus)
    if one is None or other is None or None in moduli:
        return same(answer.modulus, reference.modulus) and same(answer.residue, reference.residue)
    return abs(moduli[0] or 0) == abs(moduli[1] or 0) > 0 and (one - other) % abs(moduli[0] or 1) == 0


def equal_to_residue(said: Congruence, value: Expression) -> bool | None:
    """Whether the residue of a congruence is a value."""
    return equal_values(said.residue, value)
