"""Build and inspect expressions for the parser."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import chain
from typing import TypeGuard

from rewardstack_verifier.numbers.tree import Apply, Constant, Expression, Number, Symbol, integer, negative
from rewardstack_verifier.reading.lexer import UnreadableError
from rewardstack_verifier.reading.names import CONSTANTS
from rewardstack_verifier.reading.syntax import Node, is_expression

_PERIODIC = re.compile(r"(\d{1,20})\.(\d{0,20}?)(?:(\d)\3{2,20}|(\d{2,9}?)\4{1,20})")
"""A decimal that ends with one digit at least three times, or with several digits at least twice."""
MAX_HEIGHT = 60
"""Maximum nesting of operations, including nesting without brackets: `1/1/1`, `5!!!`."""
SIGNS = {"+": "+", "-": "-", "±": "plus or minus", "∓": "minus or plus"}
"""Signs of a term in a sum, by token."""


def require(holds: object, what: str) -> None:
    """Raise an error unless a condition holds.

    Raises:
        UnreadableError: `holds` is false; `what` says what was found instead.
    """
    if not holds:
        raise UnreadableError(what)


def require_expression(node: Node) -> Expression:
    """Return the node if it is an expression.

    Raises:
        UnreadableError: the node is not an expression, or is nested too deeply.
    """
    if is_expression(node):
        return _check_depth(node)
    raise UnreadableError(f"a {type(node).__name__.lower()} within an expression")


def _check_depth(found: Expression) -> Expression:
    """Return the expression if it is not nested too deeply.

    Raises:
        UnreadableError: the nesting reaches `MAX_HEIGHT`; recursion over deeper expressions could exhaust the stack.
    """
    level: tuple[Expression, ...] = (found,)
    height = 0
    while level := tuple(chain.from_iterable(part.arguments for part in level if isinstance(part, Apply))):
        height += 1
        require(height < MAX_HEIGHT, "operations that are too deeply nested")
    return found


def make_product(factors: list[Expression]) -> Expression:
    """Return the product of factors; a single factor unchanged."""
    return factors[0] if len(factors) == 1 else Apply("product", tuple(factors))


def add_term(sign: str, total: Expression | None, term: Expression) -> Expression:
    """Return a total plus a term with a sign of `SIGNS`; without a total, the signed term."""
    if sign not in ("+", "-"):
        return Apply(SIGNS[sign], (_check_depth(total or integer(0)), term))
    term = negative(term) if sign == "-" else term
    if total is None:
        return term
    addends = total.arguments if isinstance(total, Apply) and total.operation == "sum" else (total,)
    return Apply("sum", (*addends, term))


def make_number(digits: str) -> Number:
    """Return a number from its digits, which may have a point and an exponent after `e`."""
    scaled, _, exponent = digits.lower().partition("e")
    places = len(scaled.partition(".")[2])
    return Number(Fraction(f"0{digits}"), places - int(exponent or 0) if places or exponent else None)


def make_periodic(whole: str, fixed: str, block: str) -> Number:
    """Return a repeating decimal: digits before the point, `fixed` digits after the point, then a repeating block."""
    period = Fraction(int(block), 10 ** len(block) - 1)
    return Number(Fraction(f"{whole}.{fixed or 0}") + period / 10 ** len(fixed))


def make_repeating(digits: str) -> Number | None:
    """Return a repeating decimal from the digits before dots, `0.333...`; None if no digits repeat."""
    match = _PERIODIC.fullmatch(digits)
    return None if match is None else make_periodic(match[1], match[2], match[3] or match[4])


def make_letter(name: str) -> Expression:
    """Return a letter as a constant or a symbol."""
    return Constant(CONSTANTS[name]) if name in CONSTANTS else Symbol(name)


def is_integer(node: Node) -> TypeGuard[Number]:
    """Return whether a node is an integer."""
    return isinstance(node, Number) and node.places is None and node.value.denominator == 1


def is_proper(node: Node) -> bool:
    """Return whether a factor is a fraction of two integers, with a denominator larger than the numerator."""
    if not (isinstance(node, Apply) and node.operation == "quotient"):
        return False
    over, under = node.arguments
    return is_integer(over) and is_integer(under) and over.value < under.value


def strip_sign(factor: Node) -> Expression:
    """Return a factor without a percent or degree sign after it."""
    found = require_expression(factor)
    if isinstance(found, Apply) and found.operation in ("percent", "degree"):
        return found.arguments[0]
    return found


def make_mixed(whole: Node, fraction: Node) -> Expression:
    """Return a mixed number, with the percent or degree sign of its fraction: `1\\frac12\\%`."""
    value = Apply("sum", (require_expression(whole), strip_sign(fraction)))
    return Apply(fraction.operation, (value,)) if isinstance(fraction, Apply) and not is_proper(fraction) else value


def subscript_text(expression: Expression) -> str:
    """Return the text of a subscript, as part of a name."""
    if isinstance(expression, Number):
        return str(expression.value)
    if isinstance(expression, (Symbol, Constant)):
        return expression.name
    return "{" + ",".join([expression.operation, *map(subscript_text, expression.arguments)]) + "}"
