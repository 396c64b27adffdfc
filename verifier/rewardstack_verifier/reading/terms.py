"""Small parts of a tree, put together."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import chain
from typing import TypeGuard

from rewardstack_verifier.numbers.tree import Apply, Constant, Expression, Number, Symbol, integer, negative
from rewardstack_verifier.reading.lexer import UnreadError
from rewardstack_verifier.reading.names import CONSTANTS
from rewardstack_verifier.reading.syntax import Node, is_expression

_PERIODIC = re.compile(r"(\d{1,20})\.(\d{0,20}?)(?:(\d)\3{2,20}|(\d{2,9}?)\4{1,20})")
"""One digit three times or more, or several twice."""
MAX_HEIGHT = 60
"""Operations within one another, whether or not brackets show it: `1/1/1`, `5!!!`."""
SIGNS = {"+": "+", "-": "-", "pm": "plus or minus", "mp": "minus or plus"}
"""Of a term in a sum, by their tokens."""


def expression(node: Node) -> Expression:
    """The node itself.

    Raises:
        UnreadError: it is no expression, or too deep, so that it cannot stand in one.
    """
    if is_expression(node):
        return _shallow(node)
    raise UnreadError(f"a {type(node).__name__.lower()} within an expression")


def _shallow(found: Expression) -> Expression:
    """The expression itself.

    Raises:
        UnreadError: it is deeper than `MAX_HEIGHT`: recursion over it would need too much of the stack.
    """
    level: tuple[Expression, ...] = (found,)
    height = 0
    while level := tuple(chain.from_iterable(part.arguments for part in level if isinstance(part, Apply))):
        height += 1
        if height >= MAX_HEIGHT:
            raise UnreadError("operations that are too deeply nested")
    return found


def product(factors: list[Expression]) -> Expression:
    """Factors as one expression; a single one as it is."""
    return factors[0] if len(factors) == 1 else Apply("product", tuple(factors))


def signed(sign: str, total: Expression | None, term: Expression) -> Expression:
    """The term added to a total with its sign."""
    if sign not in ("+", "-"):
        return Apply(SIGNS[sign], (_shallow(total or integer(0)), term))
    term = negative(term) if sign == "-" else term
    if total is None:
        return term
    addends = total.arguments if isinstance(total, Apply) and total.operation == "sum" else (total,)
    return Apply("sum", (*addends, term))


def number(digits: str) -> Number:
    """A number from its digits, with a point or an exponent behind `e` if it has one."""
    scaled, _, exponent = digits.lower().partition("e")
    places = len(scaled.partition(".")[2])
    return Number(Fraction(f"0{digits}"), places - int(exponent or 0) if places or exponent else None)


def periodic(whole: str, fixed: str, block: str) -> Number:
    """A decimal by its digits before the point, behind it, and those that repeat for ever."""
    period = Fraction(int(block), 10 ** len(block) - 1)
    return Number(Fraction(f"{whole}.{fixed or 0}") + period / 10 ** len(fixed))


def repeating(digits: str) -> Number | None:
    """A decimal behind which dots stand, where its last digits show what repeats; None where they do not."""
    match = _PERIODIC.fullmatch(digits)
    return None if match is None else periodic(match[1], match[2], match[3] or match[4])


def letter(name: str) -> Expression:
    """A letter, which may be a constant."""
    return Constant(CONSTANTS[name]) if name in CONSTANTS else Symbol(name)


def is_integer(node: Node) -> TypeGuard[Number]:
    """Whether a node is a number without a point, which is exact."""
    return isinstance(node, Number) and node.places is None


def is_proper(node: Node) -> bool:
    """Whether a factor is a fraction of two integers, of which the lower is larger."""
    if not (isinstance(node, Apply) and node.operation == "quotient"):
        return False
    over, under = node.arguments
    return is_integer(over) and is_integer(under) and over.value < under.value


def bare(factor: Node) -> Expression:
    """A factor without the sign of percent or of degrees behind it."""
    found = expression(factor)
    if isinstance(found, Apply) and found.operation in ("percent", "degree"):
        return found.arguments[0]
    return found


def with_sign_of(factor: Node, value: Expression) -> Expression:
    """A mixed number with the sign that stands behind its fraction."""
    found = expression(factor)
    if isinstance(found, Apply) and bare(found) is not found:
        return Apply(found.operation, (value,))
    return value


def subscript(expression: Expression) -> str:
    """A subscript as a part of a name."""
    if isinstance(expression, Number):
        return str(expression.value)
    if isinstance(expression, (Symbol, Constant)):
        return expression.name
    return "{" + ",".join([expression.operation, *map(subscript, expression.arguments)]) + "}"
