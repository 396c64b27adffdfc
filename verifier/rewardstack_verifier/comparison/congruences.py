"""Residues: `x \\equiv 2 \\pmod 5`, which is 2 where a number is asked for, and `x \\equiv -3 \\pmod 5`."""

from __future__ import annotations

from typing import NamedTuple

from rewardstack_verifier.comparison.values import equal_values
from rewardstack_verifier.numbers.equality import same
from rewardstack_verifier.numbers.rational import integral
from rewardstack_verifier.numbers.tree import Expression
from rewardstack_verifier.reading.syntax import Node, Relation, is_expression


class Congruence(NamedTuple):
    """What is congruent to what: `x`, 2 and 5; the name may be None."""

    name: Expression | None
    residue: Expression
    modulus: Expression


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
