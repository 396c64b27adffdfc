"""Vectors in their notations: `(1, 2)`, a column or row of a matrix, `i + 2j`."""

from __future__ import annotations

import re

from rewardstack_rules.mathematics.matrices import cells
from rewardstack_rules.mathematics.structure import Group, group

_TRANSPOSED = re.compile(r"(\(.*\)|\[.*\])\s*\^\s*\{?\s*(?:T|t|\\top|\\intercal|\\text\{T\})\s*\}?", re.DOTALL)
_TERM = re.compile(r"([+-]?)\s*([^+\-ijk]*?)\s*(?:\*|\\cdot)?\s*([ijk])(?![A-Za-z])\s*")
_UNITS = "ijk"


def components(text: str) -> Group | None:
    """The components of a tidied text: a matrix of one row or column, a transposed tuple, a sum of i, j and k."""
    rows = cells(text)
    if rows is not None:
        single = rows[0] if len(rows) == 1 else tuple(row[0] for row in rows) if len(rows[0]) == 1 else ()
        return Group("()", single) if len(single) > 1 else None
    transposed = _TRANSPOSED.fullmatch(text)
    return group(transposed[1]) if transposed else _of_units(text)


def _of_units(text: str) -> Group | None:
    """`i + 2j - k` as (1, 2, -1)."""
    if "j" not in text:
        return None
    found: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _TERM.match(text, position)
        if match is None or match[3] in found or (position and not match[1]):
            return None
        found[match[3]] = f"{match[1].strip('+')}{match[2].strip() or '1'}"
        position = match.end()
    size = 3 if "k" in found else 2
    return Group("()", tuple(found.get(unit, "0") for unit in _UNITS[:size]))


def is_vector(found: Group) -> bool:
    """Whether a group is written as a vector can be: a tuple, or more than two things in square brackets."""
    return found.brackets == "()" or (found.brackets == "[]" and len(found.items) > 2)
