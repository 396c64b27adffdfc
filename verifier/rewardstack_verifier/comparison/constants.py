"""Compare expressions with arbitrary constants: antiderivatives up to `+ C`, general solutions up to renaming."""

from __future__ import annotations

import re
from typing import NamedTuple

from rewardstack_verifier.numbers.equality import ZERO, at_point, same
from rewardstack_verifier.numbers.spans import in_span, same_span
from rewardstack_verifier.numbers.tree import (
    ONE,
    Apply,
    Expression,
    Symbol,
    difference,
    negative,
    renamed,
    substituted,
    symbols,
)

_NUMBERED = re.compile(r"[cCkK]_\d")
_ADDED = frozenset("cCK")
"""Letters that are constants if they are added to a function of `_VARIABLES` without a factor."""
_MULTIPLIED = frozenset("CK")
"""Letters that are also constants as factors, next to a function of one of `_VARIABLES`."""
_CHOSEN = re.compile(r"[A-FK]|[cCkK]_\d")
"""Letters that can name the constants of a general solution."""
_VARIABLES = frozenset(("x", "y", "t", "s", "r", "u", "v", "z", "theta", "phi"))


class Affine(NamedTuple):
    """An expression as a fixed part plus other parts multiplied by arbitrary constants."""

    fixed: Expression
    multiplied: tuple[Expression, ...]


def arbitrary_constants(expression: Expression) -> tuple[str, ...]:
    """Return the names of the arbitrary constants of an expression, sorted.

    `C_1` and `c_2` are always constants. `C` is a constant if it is added or multiplies a function of one variable.
    """
    names = symbols(expression)
    numbered = sorted(filter(_NUMBERED.fullmatch, names))
    if numbered:
        return tuple(numbered)
    added = _addends(expression) & _ADDED
    if len(added) == 1 and names & _VARIABLES:
        return tuple(added)
    multiplied = names & _MULTIPLIED
    variables = names - multiplied
    return tuple(multiplied) if len(multiplied) == len(variables) == 1 and variables <= _VARIABLES else ()


def equal_families(answer: Expression, reference: Expression) -> bool | None:
    """Return whether two expressions are equal up to the choice of their arbitrary constants.

    Args:
        answer: an expression with `arbitrary_constants`, or with letters that the reference does not have.
        reference: the same for the reference.

    Returns:
        None if unknown. If an expression is not linear in its constants, the constants may only have different names,
        and the first constant the opposite sign.
    """
    own, asked = _constants_beside(answer, reference), _constants_beside(reference, answer)
    if len(own) != len(asked) or symbols(answer) - {*own} != symbols(reference) - {*asked}:
        return False
    one, other = _affine(answer, own), _affine(reference, asked)
    if one is None or other is None:
        renamed_answer = renamed(answer, dict(zip(own, asked, strict=True)))
        turned = substituted(renamed_answer, asked[0], negative(Symbol(asked[0])))
        return same(renamed_answer, reference) or same(turned, reference)
    spans = same_span(one.multiplied, other.multiplied)
    return in_span(difference(one.fixed, other.fixed), other.multiplied) if spans else spans


def have_other_constants(answer: Expression, reference: Expression) -> bool:
    """Return whether two functions of one variable differ in at least two capital letters: `A + B/x`, `C + D/x`.

    A letter that is in both expressions is no constant, because the problem may define it.
    """
    own, asked = symbols(answer) - symbols(reference), symbols(reference) - symbols(answer)
    if not 2 <= len(own) == len(asked) or not all(map(_CHOSEN.fullmatch, own | asked)):
        return False
    return len(symbols(answer) & symbols(reference) & _VARIABLES) == 1


def _constants_beside(one: Expression, other: Expression) -> tuple[str, ...]:
    """Return the constants of `one`: its arbitrary constants, and its capital letters that `other` does not have."""
    sure, own = arbitrary_constants(one), symbols(one) - symbols(other)
    if not sure or (own and all(map(_CHOSEN.fullmatch, own))):
        return tuple(sorted({*sure, *own}))
    return sure


def equal_pencils(answer: Expression, reference: Expression) -> bool | None:
    """Return whether `answer = 0` and `reference = 0` are the same family of curves, one for each constant.

    Returns:
        None if unknown, or if an expression does not have exactly one constant or is not linear in it.
    """
    own, asked = arbitrary_constants(answer), arbitrary_constants(reference)
    if len(own) != 1 or len(asked) != 1 or symbols(answer) - {*own} != symbols(reference) - {*asked}:
        return None
    one, other = _affine(answer, own), _affine(reference, asked)
    if one is None or other is None:
        return None
    return same_span((one.fixed, *one.multiplied), (other.fixed, *other.multiplied))


def _affine(expression: Expression, names: tuple[str, ...]) -> Affine | None:
    """Split an expression that is linear in its constants; None if it is not, or if that is unknown."""
    nothing = dict.fromkeys(names, ZERO)
    fixed = _without_zeros(at_point(expression, nothing))
    alone = [_without_zeros(at_point(expression, {**nothing, name: ONE})) for name in names]
    multiplied = [one if fixed == ZERO else difference(one, fixed) for one in alone]
    rebuilt = (fixed, *(Apply("product", (Symbol(name), one)) for name, one in zip(names, multiplied, strict=True)))
    return Affine(fixed, tuple(multiplied)) if same(Apply("sum", rebuilt), expression) else None


def _without_zeros(expression: Expression) -> Expression:
    """Return the expression without zero addends, including products with zero, which would be slow to compute."""
    if not isinstance(expression, Apply):
        return expression
    arguments = tuple(map(_without_zeros, expression.arguments))
    if expression.operation == "product" and ZERO in arguments:
        return ZERO
    if expression.operation != "sum":
        return Apply(expression.operation, arguments)
    addends = tuple(one for one in arguments if one != ZERO)
    return Apply("sum", addends) if len(addends) > 1 else addends[0] if addends else ZERO


def _addends(expression: Expression) -> frozenset[str]:
    """Return the symbols that are added or subtracted without a factor."""
    if isinstance(expression, Symbol):
        return frozenset((expression.name,))
    if isinstance(expression, Apply) and expression.operation in ("sum", "negative"):
        return frozenset[str]().union(*map(_addends, expression.arguments))
    return frozenset()
