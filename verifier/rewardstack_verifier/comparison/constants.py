"""Arbitrary constants: antiderivatives up to `+ C`, and general solutions up to the choice of their constants."""

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
"""Letters that are constants where they are added to a function of `_VARIABLES`, with no factor."""
_MULTIPLIED = frozenset("CK")
"""Letters that are constants as factors, too, beside a function of one of `_VARIABLES`."""
_CHOSEN = re.compile(r"[A-FK]|[cCkK]_\d")
"""Letters that two general solutions may have for the same constants."""
_VARIABLES = frozenset(("x", "y", "t", "s", "r", "u", "v", "z", "theta", "phi"))


class Affine(NamedTuple):
    """An expression as a function and multiples of others by arbitrary constants."""

    fixed: Expression
    multiplied: tuple[Expression, ...]


def arbitrary_constants(expression: Expression) -> tuple[str, ...]:
    """The symbols in an expression that stand for any number, in the order of their names.

    `C_1`, `c_2` always do; `C`, where it is added, or multiplies a function of one variable.
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
    """Whether two expressions are the same up to the choice of their arbitrary constants.

    Args:
        answer: one that has `arbitrary_constants`, or other letters in the place of the reference's.
        reference: likewise.

    Returns:
        None where it cannot be told. Constants that are not linear may have other names, and the first the other sign.
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
    """Whether two functions of one variable differ in two capital letters or more: `A + B/x` and `C + D/x`.

    Letters that a problem has given are the same in both.
    """
    own, asked = symbols(answer) - symbols(reference), symbols(reference) - symbols(answer)
    if not 2 <= len(own) == len(asked) or not all(map(_CHOSEN.fullmatch, own | asked)):
        return False
    return len(symbols(answer) & symbols(reference) & _VARIABLES) == 1


def _constants_beside(one: Expression, other: Expression) -> tuple[str, ...]:
    """The constants of one of two expressions: what surely is one, and letters that the other has not."""
    sure, own = arbitrary_constants(one), symbols(one) - symbols(other)
    if not sure or (own and all(map(_CHOSEN.fullmatch, own))):
        return tuple(sorted({*sure, *own}))
    return sure


def equal_pencils(answer: Expression, reference: Expression) -> bool | None:
    """Whether `answer = 0` and `reference = 0` are the same curves, one for each value of their constant.

    Returns:
        None where they have not one constant each of which they are linear, or it cannot be told.
    """
    own, asked = arbitrary_constants(answer), arbitrary_constants(reference)
    if len(own) != 1 or len(asked) != 1 or symbols(answer) - {*own} != symbols(reference) - {*asked}:
        return None
    one, other = _affine(answer, own), _affine(reference, asked)
    if one is None or other is None:
        return None
    return same_span((one.fixed, *one.multiplied), (other.fixed, *other.multiplied))


def _affine(expression: Expression, names: tuple[str, ...]) -> Affine | None:
    """The expression's parts, where it is linear in the constants; None where it is not, or that cannot be told."""
    nothing = dict.fromkeys(names, ZERO)
    fixed = _without_zeros(at_point(expression, nothing))
    alone = [_without_zeros(at_point(expression, {**nothing, name: ONE})) for name in names]
    multiplied = [one if fixed == ZERO else difference(one, fixed) for one in alone]
    rebuilt = (fixed, *(Apply("product", (Symbol(name), one)) for name, one in zip(names, multiplied, strict=True)))
    return Affine(fixed, tuple(multiplied)) if same(Apply("sum", rebuilt), expression) else None


def _without_zeros(expression: Expression) -> Expression:
    """The same without addends that are zero, products with it among them, which would be computed again and again."""
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
    """The symbols that are added, or subtracted, as they are."""
    if isinstance(expression, Symbol):
        return frozenset((expression.name,))
    if isinstance(expression, Apply) and expression.operation in ("sum", "negative"):
        return frozenset[str]().union(*map(_addends, expression.arguments))
    return frozenset()
