"""Sums, products and powers of atoms."""

from __future__ import annotations

from dataclasses import replace

from rewardstack_verifier.numbers.tree import Apply, Expression, integer, negative, symbols
from rewardstack_verifier.reading import numerals
from rewardstack_verifier.reading.grammar import AFTER_ALL, Grammar
from rewardstack_verifier.reading.lexer import COMMAND, END, LETTERS, MARK, NUMBER, UnreadError
from rewardstack_verifier.reading.names import RELATIONS, names
from rewardstack_verifier.reading.syntax import Combination, Matrix, Node, Sequence
from rewardstack_verifier.reading.terms import (
    SIGNS,
    bare,
    expression,
    is_integer,
    is_proper,
    number,
    product,
    signed,
    with_sign_of,
)

_STOPPING = names(", ; : ) ] } \\} \\\\ & | + - pm mp cup cap setminus rangle rfloor rceil land lor . pmod bmod mod")
"""Where a product of factors that stand side by side ends."""
MOST_ROWS = 4
"""Of a matrix that is multiplied with another, and columns."""
_OPERATING = names("^ _ ! ' degree % * /") | set(RELATIONS)


def multiplied(matrix: Matrix, by: Node) -> Matrix:
    """A small matrix times another.

    Raises:
        UnreadError: their shapes do not fit, or one is large.
    """
    rows = matrix.rows
    columns = tuple(zip(*by.rows, strict=True)) if isinstance(by, Matrix) and len(set(map(len, by.rows))) == 1 else ()
    lengths = {*map(len, rows), *map(len, columns)}
    if not columns or len(lengths) > 1 or max(len(rows), len(columns), *lengths) > MOST_ROWS:
        raise UnreadError("matrices that are not multiplied")
    return Matrix(tuple(tuple(_inner_product(row, column) for column in columns) for row in rows))


def _inner_product(row: tuple[Node, ...], column: tuple[Node, ...]) -> Expression:
    pairs = zip(row, column, strict=True)
    return Apply("sum", tuple(product([expression(one), expression(other)]) for one, other in pairs))


def _shape(matrix: Matrix) -> list[int]:
    return [len(row) for row in matrix.rows]


class Sums(Grammar):
    """Reads sums, products, powers, and what stands behind a value."""

    def _sum(self) -> Node:
        sign = self._take(*SIGNS)
        first = self._product()
        if isinstance(first, Matrix):
            return self._sum_of_matrices(self._multiple(integer(-1), first) if sign == "-" else first)
        if not sign and self._peek().text not in SIGNS:
            return first
        total = signed(sign or "+", None, expression(first))
        while (sign := self._take(*SIGNS)) and not self._ends():
            total = signed(sign, total, expression(self._product()))
        if sign:
            raise UnreadError("a sign with nothing behind it")
        return total

    def _sum_of_matrices(self, total: Node) -> Node:
        """Matrices of one shape, added entry by entry."""
        while sign := self._take("+", "-"):
            term = self._product()
            if not (isinstance(total, Matrix) and isinstance(term, Matrix)) or _shape(total) != _shape(term):
                raise UnreadError("a matrix and a term of another shape")
            total = Matrix(
                tuple(
                    tuple(signed(sign, expression(one), expression(other)) for one, other in zip(*rows, strict=True))
                    for rows in zip(total.rows, term.rows, strict=True)
                )
            )
        return total

    def _ends(self) -> bool:
        return self._peek() is AFTER_ALL

    def _product(self) -> Node:
        first = self._unary()
        factors: list[Expression] = []
        mixed = is_integer(first)
        while True:
            if isinstance(first, (Sequence, Combination)) and self._peek().text == "U":
                return first
            if self._take("*"):
                factor = self._unary()
            elif self._take("/"):
                dividend = product([expression(first), *factors])
                first, factors = Apply("quotient", (dividend, expression(self._unary()))), []
                continue
            elif self._begins_factor():
                if self._peek().kind == NUMBER and not self._begins_power([first, *factors][-1]):
                    first, mixed = self._mixed(first, factors), False
                    continue
                fraction = self._peek().text == "frac"
                factor = self._unary()
                if mixed and fraction and not factors and is_proper(bare(factor)):
                    first, mixed = with_sign_of(factor, Apply("sum", (expression(first), bare(factor)))), False
                    continue
            else:
                return first if not factors else product([expression(first), *factors])
            mixed = False
            if isinstance(first, Matrix):
                first = multiplied(first, factor)
                continue
            if isinstance(factor, (Matrix, Sequence)):
                first, factors = self._multiple(product([expression(first), *factors]), factor), []
                continue
            factors.append(expression(factor))

    def _begins_power(self, before: Node) -> bool:
        """Whether the next number has an exponent or a factorial, `2^6 3^5`, and an operation stands before it."""
        return isinstance(before, Apply) and self._peek(1).text in ("^", "!")

    def _multiple(self, factor: Expression, of: Matrix | Sequence) -> Node:
        """A matrix, or a point, each entry multiplied; by a letter only a matrix, for `f(1, 2)` is none."""
        if isinstance(of, Matrix):
            return Matrix(tuple(tuple(product([factor, expression(one)]) for one in row) for row in of.rows))
        if symbols(factor) or of.opening not in ("(", "<"):
            raise UnreadError("a list within a product")
        return replace(of, items=tuple(product([factor, expression(one)]) for one in of.items))

    def _mixed(self, whole: Node, factors: list[Expression]) -> Expression:
        """A mixed number on one line: `1 1/2`."""
        over, slash, under = (self._next() for _ in range(3))
        digits = over.text.isdecimal() and slash.text == "/" and under.text.isdecimal()
        if factors or not digits or not is_integer(whole) or not 0 < int(over.text) < int(under.text):
            raise UnreadError("a number behind a number or a letter")
        return Apply("sum", (whole, Apply("quotient", (number(over.text), number(under.text)))))

    def _begins_factor(self) -> bool:
        """Whether a factor follows with no sign before it."""
        token = self._peek()
        if (
            token is AFTER_ALL
            or token.kind == END
            or (token.text in _STOPPING and (token.kind != LETTERS or token.text == "mod"))
        ):
            return token.text == "|" and self._bars == 0 and token is not AFTER_ALL
        if token.kind in (MARK, COMMAND) and token.text in _OPERATING:
            return False
        if token.text == "(" and self._peek(1).text in ("pmod", "bmod", "mod"):
            return False
        return not self._joins(token)

    def _unary(self) -> Node:
        if self._take("-"):
            return negative(expression(self._inside(self._unary)))
        if self._take("+"):
            return self._inside(self._unary)
        return self._postfix(self._atom())

    def _postfix(self, node: Node) -> Node:
        while True:
            if isinstance(node, Sequence) and self._at_transpose():
                self._at += 2
                node = Matrix(tuple((item,) for item in node.items))
            elif self._take("^"):
                node = self._raised(expression(node))
            elif self._take("!"):
                node = Apply("factorial", (expression(node),))
            elif self._take("degree"):
                node = Apply("degree", (expression(node),))
            elif self._take("%"):
                node = Apply("percent", (expression(node),))
            elif self._take("_"):
                node = Apply("subscript", (expression(node), self._base()))
            else:
                return node

    def _base(self) -> Expression:
        """Of a number: its subscript, in digits or as a word."""
        word = [self._peek(at) for at in range(3)]
        value = numerals.number([word[1].text]) if (word[0].text, word[2].text) == ("{", "}") else None
        if value is None or word[1].kind != LETTERS:
            return self._argument()
        self._at += len(word)
        return integer(int(value))

    def _at_transpose(self) -> bool:
        return self._peek().text == "^" and self._peek(1).text in ("T", "top")

    def _raised(self, base: Expression) -> Expression:
        if self._take("degree"):
            return Apply("degree", (base,))
        if self._peek().text == "{" and self._peek(1).text == "degree" and self._peek(2).text == "}":
            self._at += 3
            return Apply("degree", (base,))
        if self._take("-"):
            return Apply("power", (base, negative(self._argument(whole=True))))
        return Apply("power", (base, self._argument(whole=True)))
