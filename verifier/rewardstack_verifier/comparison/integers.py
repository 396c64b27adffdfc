"""Compare integers that are written in a base, `1011_2`, and congruences, `x \\equiv 2 \\pmod 5`."""

from __future__ import annotations

from typing import NamedTuple

from rewardstack_verifier.comparison.values import equal_values
from rewardstack_verifier.numbers.equality import same
from rewardstack_verifier.numbers.rational import to_integer
from rewardstack_verifier.numbers.tree import Apply, Expression, Number, Symbol
from rewardstack_verifier.reading.syntax import Node, Relation, is_expression

MAX_BASE = 36
"""Largest base: 10 digits and 26 letters."""


class InBase(NamedTuple):
    """The digits of a number, as they are written, and their base."""

    digits: str
    base: int


class Congruence(NamedTuple):
    """The parts of `x \\equiv 2 \\pmod 5`: `x`, 2 and 5; the name is None if it is omitted."""

    name: Expression | None
    residue: Expression
    modulus: Expression


def as_based_number(node: Node) -> InBase | None:
    """Return an answer as a number in a base; None if it is not such a number."""
    if not isinstance(node, Apply) or node.operation != "subscript":
        return None
    digits, base = _written_digits(node.arguments[0]), to_integer(node.arguments[1])
    if not digits or base is None or not 2 <= base <= MAX_BASE:
        return None
    return InBase(digits, base) if all(int(digit, MAX_BASE) < base for digit in digits.lstrip("-")) else None


def _written_digits(written: Expression) -> str:
    if isinstance(written, Symbol):
        return written.name if written.name.isalnum() and not written.name.isalpha() else ""
    value = to_integer(written)
    return "" if value is None else str(value)


def equal_bases(answer: Node, reference: Node) -> bool | None:
    """Return whether two numbers, at least one of which has a base, have the same digits in the same base.

    The answer may omit the base of the reference. A reference without a base is decimal.

    Returns:
        None if the number without a base is not an expression.
    """
    found, expected = as_based_number(answer), as_based_number(reference)
    if found and expected:
        return found == expected
    plain, with_base = reference if found else answer, found or expected
    if with_base is None or not is_expression(plain):
        return None
    is_integer = isinstance(plain, Number) and plain.places is None and str(plain.value) == with_base.digits
    return is_integer and (expected is not None or with_base.base == 10)


def as_congruence(node: Node) -> Congruence | None:
    """Return an answer as a congruence; None if it is not a congruence."""
    if not isinstance(node, Relation) or node.modulus is None:
        return None
    sides = [side for side in node.sides if is_expression(side)]
    if len(sides) != len(node.sides) or node.operators not in ((), ("equiv",), ("=",)):
        return None
    return Congruence(sides[0] if len(sides) == 2 else None, sides[-1], node.modulus)


def equal_congruences(answer: Congruence, reference: Congruence) -> bool | None:
    """Return whether two congruences have the same modulus and residue class, and the same name if both have one."""
    if answer.name and reference.name and answer.name != reference.name:
        return False
    one, other = to_integer(answer.residue), to_integer(reference.residue)
    moduli = to_integer(answer.modulus), to_integer(reference.modulus)
    if one is None or other is None or None in moduli:
        return same(answer.modulus, reference.modulus) and same(answer.residue, reference.residue)
    return abs(moduli[0] or 0) == abs(moduli[1] or 0) > 0 and (one - other) % abs(moduli[0] or 1) == 0


def equal_to_residue(stated: Congruence, value: Expression) -> bool | None:
    """Return whether the residue of a congruence equals a value."""
    return equal_values(stated.residue, value)
