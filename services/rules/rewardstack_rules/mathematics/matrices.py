"""Matrices and column vectors, read into their cells."""

from __future__ import annotations

import re

Cells = tuple[tuple[str, ...], ...]

_MATRIX = re.compile(r"\\begin\{([pbB]?)matrix\}(.*)\\end\{\1matrix\}", re.DOTALL)


def cells(text: str) -> Cells | None:
    """The rows of a tidied text that is a matrix; None where it is anything else, and for matrices of matrices.

    Determinants and norms, which stand between bars, are numbers and no matrices.
    """
    match = _MATRIX.fullmatch(text.strip())
    if match is None or "\\begin" in match[2] or "\\end" in match[2]:
        return None
    rows = re.sub(r"\\\\\s*$", "", match[2].strip()).split("\\\\")
    found = tuple(tuple(cell.strip() for cell in row.split("&")) for row in rows)
    if len({len(row) for row in found}) > 1 or not all(cell for row in found for cell in row):
        return None
    return found
