"""Compare expressions with arbitrary constants: antiderivatives up to `+ C`, general solutions up to renaming."""

from __future__ import annotations

import re
from typing import NamedTuple

from rewardstack_verifier.numbers.equality import ZERO, same, substitute_all
from rewardstack_verifier.numbers.spans import have_same_span, is_in_span
from rewardstack_verifier.numbers.tree import (
    ONE,
    Apply,
    Expression,
    Symbol,
    difference,
    negative,
    rename_symbols,
    substitute,
    symbols,
)

_NUMBERED = re.compile(r"[cCkK]_\d")
_ADDED = frozenset("cCK")
"""Letters that are constants if they are added, without a factor, to a function of `VARIABLES`."""
_ALTERNATIVE = frozenset("ck")
"""Letters that can be the only constant of an expression, if the other expression does not have them."""
_MULTIPLIED = frozenset("CK")
"""Letters that are constants even as factors, if the only other symbol is one of `VARIABLES`."""
_CAPITAL = re.compile(r"[A-FK]|[cCkK]_\d")
"""Letters that can name the constants of a general solution."""
VARIABLES = frozenset(("x", "y", "t", "s", "r", "u", "v", "z", "theta", "phi"))
_OF_INTEGRALS = frozenset(("x", "t", "z", "theta"))
"""Variables to which `c` is added as a constant; beside other letters, `c` is probably a letter of the problem."""


class Affine(NamedTuple):
    """An expression that is linear in its arbitrary constants: `fixed + C_1 * multiplied[0] + C_2 * multiplied[1]`."""

    fixed: Expression
    multiplied: tuple[Expression, ...]


def arbitrary_constants(expression: Expression) -> tuple[str, ...]:
    """Return the names of the arbitrary constants of an expression, sorted.

    Numbered letters, such as `C_1` and `c_2`, are constants in a function of `VARIABLES`. Without numbered letters, `C`
    or `K` is a constant if it is added, without a factor, to a function of `VARIABLES`, or if the only other symbol is
    one of `VARIABLES`. An added `c` is a constant if the only other symbol is one of `_OF_INTEGRALS`.
    """
    names = symbols(expression)
    numbered = sorted(filter(_NUMBERED.fullmatch, names))
    if numbered:
        return tuple(numbered) if _is_general_solution(names, {*numbered}) else ()
    added = _added_symbols(expression) & _ADDED
    others = names - added
    if len(added) == 1 and (len(others) == 1 and others <= _OF_INTEGRALS if added == {"c"} else names & VARIABLES):
        return tuple(added)
    multiplied = names & _MULTIPLIED
    variables = names - multiplied
    return tuple(multiplied) if len(multiplied) == len(variables) == 1 and variables <= VARIABLES else ()


def _is_general_solution(names: frozenset[str], numbered: set[str]) -> bool:
    """Return whether names can be those of a general solution, whose constants are `numbered`.

    The other names must be variables, or one variable and letters without numbers: `C_1\\cos\\omega t`. Beside such
    letters, `k_1` is not a constant.
    """
    others = names - numbered
    if others <= VARIABLES:
        return bool(others)
    plain = not any("_" in name for name in others) and all(name[0] in "cC" for name in numbered)
    return plain and len(others & VARIABLES) == 1


def equal_families(answer: Expression, reference: Expression) -> bool | None:
    """Return whether two expressions are equal up to the choice of their arbitrary constants.

    In expressions that are not linear in their constants, only the names of the constants and the sign of the first one
    may differ.

    Args:
        answer: an expression with `arbitrary_constants`, or with letters that the reference does not have.
        reference: an expression with `arbitrary_constants`, or with letters that the answer does not have.

    Returns:
        None if unknown.
    """
    own, asked = _find_constants(answer, reference), _find_constants(reference, answer)
    if len(own) != len(asked) or symbols(answer) - {*own} != symbols(reference) - {*asked}:
        return False
    one, other = _split_affine(answer, own), _split_affine(reference, asked)
    if one is None or other is None:
        renamed = rename_symbols(answer, dict(zip(own, asked, strict=True)))
        return same(renamed, reference) or same(substitute(renamed, asked[0], negative(Symbol(asked[0]))), reference)
    spans = have_same_span(one.multiplied, other.multiplied)
    return is_in_span(difference(one.fixed, other.fixed), other.multiplied) if spans else spans


def have_constants(answer: Expression, reference: Expression) -> bool:
    """Return whether one of two functions has arbitrary constants, or both have different ones: `A + B/x`, `C + D/x`.

    For the latter, each must have at least two letters that the other lacks, and both equally many; these must match
    `_CAPITAL`. A letter in both functions is not a constant, because the problem may define it.
    """
    if arbitrary_constants(answer) or arbitrary_constants(reference):
        return True
    letters, other_letters = symbols(answer), symbols(reference)
    are_constants = all(map(_CAPITAL.fullmatch, letters ^ other_letters))
    are_several = 2 <= len(letters - other_letters) == len(other_letters - letters)
    return are_constants and are_several and len(letters & other_letters & VARIABLES) == 1


def _find_constants(one: Expression, other: Expression) -> tuple[str, ...]:
    """Return the names of the constants of `one`, sorted.

    These are its `arbitrary_constants`. Its letters that `other` does not have are also constants, if all of them match
    `_CAPITAL`. If `one` has no arbitrary constants, and `c` or `k` is its only letter that `other` does not have, this
    letter is the constant.
    """
    certain_constants, own_constants = arbitrary_constants(one), symbols(one) - symbols(other)
    if all(map(_CAPITAL.fullmatch, own_constants)):
        return tuple(sorted({*certain_constants, *own_constants}))
    if not certain_constants and len(own_constants) == 1 and own_constants <= _ALTERNATIVE:
        return tuple(own_constants)
    return certain_constants


def have_same_curves(answer: Expression, reference: Expression) -> bool | None:
    """Return whether `answer = 0` and `reference = 0` are the same family of curves.

    A family has one curve for each value of its constant.

    Returns:
        None if unknown. Both expressions must have exactly one constant, be linear in it, and have the same variables;
        otherwise the result is also None.
    """
    own, asked = _curve_constants(answer), _curve_constants(reference)
    if not len(own) == len(asked) == 1 or symbols(answer) - {*own} != symbols(reference) - {*asked}:
        return None
    one, other = _split_affine(answer, own), _split_affine(reference, asked)
    if one is None or other is None:
        return None
    return have_same_span((one.fixed, *one.multiplied), (other.fixed, *other.multiplied))


def _curve_constants(curve: Expression) -> tuple[str, ...]:
    """Return the names of the arbitrary constants of a curve, among them the `c` of `xy = c`."""
    is_added = "c" in _added_symbols(curve) and symbols(curve) == {"x", "y", "c"}
    return ("c",) if is_added else arbitrary_constants(curve)


def _split_affine(expression: Expression, names: tuple[str, ...]) -> Affine | None:
    """Split an expression that is linear in its constants; return None if it is not known to be linear."""
    all_zero = dict.fromkeys(names, ZERO)
    fixed = _drop_zeros(substitute_all(expression, all_zero))
    at_units = [_drop_zeros(substitute_all(expression, {**all_zero, name: ONE})) for name in names]
    multiplied = [one if fixed == ZERO else difference(one, fixed) for one in at_units]
    rebuilt = (fixed, *(Apply("product", (Symbol(name), one)) for name, one in zip(names, multiplied, strict=True)))
    return Affine(fixed, tuple(multiplied)) if same(Apply("sum", rebuilt), expression) else None


def _drop_zeros(expression: Expression) -> Expression:
    """Return the expression without zero addends. Products with a zero factor become zero without being computed."""
    if not isinstance(expression, Apply):
        return expression
    arguments = tuple(map(_drop_zeros, expression.arguments))
    if expression.operation == "product" and ZERO in arguments:
        return ZERO
    if expression.operation != "sum":
        return Apply(expression.operation, arguments)
    addends = tuple(one for one in arguments if one != ZERO)
    return Apply("sum", addends) if len(addends) > 1 else addends[0] if addends else ZERO


def _added_symbols(expression: Expression) -> frozenset[str]:
    """Return the symbols that are added or subtracted without a factor."""
    if isinstance(expression, Symbol):
        return frozenset((expression.name,))
    if isinstance(expression, Apply) and expression.operation in ("sum", "negative"):
        return frozenset[str]().union(*map(_added_symbols, expression.arguments))
    return frozenset()
