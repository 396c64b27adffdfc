"""Environments: matrices, determinants, systems and functions by cases."""

from __future__ import annotations

from rewardstack_verifier.numbers.tree import Expression, determinant
from rewardstack_verifier.reading.grammar import Grammar
from rewardstack_verifier.reading.lexer import END, UnreadError
from rewardstack_verifier.reading.names import DETERMINANT, MATRICES, RELATIONS, SYSTEMS
from rewardstack_verifier.reading.piecewise import piecewise
from rewardstack_verifier.reading.stream import AFTER_ALL
from rewardstack_verifier.reading.syntax import Matrix, Node, Sequence
from rewardstack_verifier.reading.terms import expression

MOST_ROWS = 4
"""Of a determinant, which is written out."""


class Environments(Grammar):
    """Reads what stands between `\\begin` and `\\end`."""

    def _environment(self, environment: str) -> Node:
        if environment in SYSTEMS:
            return self._system()
        if environment == DETERMINANT:
            return self._determinant()
        if environment not in MATRICES:
            raise UnreadError(f"an environment {environment}")
        return self._rows(environment)

    def _system(self) -> Node:
        """Rows of relations, aligned at their signs, or of values beside their conditions."""
        end = next((at for at in range(self._at, len(self._tokens)) if self._tokens[at].kind == END), None)
        if end is None:
            raise UnreadError("a system that is not closed")
        rows = self._tokens[self._at : end]
        if not rows:
            raise UnreadError("a system without rows")
        beside = [*rows[1:], AFTER_ALL]
        if any(token.text == "&" and after.text not in RELATIONS for token, after in zip(rows, beside, strict=True)):
            self._at = end + 1
            return piecewise(rows, lambda row: type(self)(row).whole())
        self._tokens[self._at : end] = [token for token in rows if token.text != "&"]
        items, joined = self._items()
        if self._next().kind != END:
            raise UnreadError("a system with something other than relations")
        return Sequence("", tuple(items), "", tuple(joined))

    def _determinant(self) -> Expression:
        rows = self._rows(DETERMINANT).rows
        if not 0 < len(rows) <= MOST_ROWS or {len(row) for row in rows} != {len(rows)}:
            raise UnreadError("a determinant that is too large, or not square")
        return determinant([[expression(entry) for entry in row] for row in rows])

    def _rows(self, environment: str) -> Matrix:
        if environment == "array" and self._take("{"):
            while not self._take("}"):
                if self._next() is AFTER_ALL:
                    raise UnreadError("an array that is not closed")
        rows: list[list[Node]] = [[]]
        while self._peek().kind != END:
            if self._take("\\\\"):
                rows.append([])
            elif not self._take("&"):
                rows[-1].append(self._inside(self._relation))
        if self._next() is AFTER_ALL:
            raise UnreadError("a matrix that is not closed")
        return Matrix(tuple(tuple(row) for row in rows if row))
