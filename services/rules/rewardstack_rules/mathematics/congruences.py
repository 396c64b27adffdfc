"""Residues: `x \\equiv 2 \\pmod{5}`, which is 2 where a number is asked for, and `x \\equiv -3 \\pmod{5}`."""

from __future__ import annotations

import re
from typing import NamedTuple

from rewardstack_rules.mathematics import exact

_CONGRUENCE = re.compile(r"(?:([^=<>]{1,80}?)\s*\\equiv)?\s*([^=<>]{1,200}?)\s*\\pmod\{(\w{1,40})\}")


class Congruence(NamedTuple):
    """What is congruent to what: `x`, `2` and `5`; the name may be empty."""

    name: str
    residue: str
    modulus: str


def read(text: str) -> Congruence | None:
    """The congruence, or the residue with its modulus, that a tidied text is; None for anything else."""
    match = _CONGRUENCE.fullmatch(text) if "\\pmod" in text else None
    return None if match is None else Congruence((match[1] or "").strip(), match[2], match[3])


def same_class(one: Congruence, other: Congruence) -> bool | None:
    """Whether two residues are the same; None where they are no two integers with one modulus in digits."""
    if one.modulus != other.modulus or (one.name and other.name and one.name != other.name):
        return False
    found, expected = exact.number(one.residue), exact.number(other.residue)
    if found is None or expected is None or not one.modulus.isdecimal() or int(one.modulus) == 0:
        return None
    return (found.value - expected.value) % int(one.modulus) == 0
