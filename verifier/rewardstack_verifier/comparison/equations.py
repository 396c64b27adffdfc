"""Compare equations: values with names (`x = 5`), identities, and equations that are equal up to a factor."""

from __future__ import annotations

from itertools import pairwise, permutations
from operator import itemgetter

from rewardstack_verifier.comparison.constants import have_same_curves
from rewardstack_verifier.comparison.values import all_of, any_of, equal_values, has_calls, has_value
from rewardstack_verifier.numbers.equality import ZERO, are_proportional, same
from rewardstack_verifier.numbers.functions import TRIGONOMETRIC
from rewardstack_verifier.numbers.tree import (
    ONE,
    Apply,
    Expression,
    Symbol,
    difference,
    integer,
    is_call,
    operations,
    parts,
    rename_symbols,
    substitute,
    symbols,
)
from rewardstack_verifier.reading.syntax import Node, Relation, Sequence, is_expression

Equation = tuple[Expression, ...]
"""Sides of a chain of equations, at least two."""
_TWO = integer(2)
_COORDINATES = frozenset("xyz")
_NAME_OPERATIONS = frozenset(("sum", "product"))
"""Operations in expressions that can be a name: `m + n`, `ab`."""
_LETTER_NAME_OPERATIONS = _NAME_OPERATIONS | {"negative", "quotient", "power", "root"}
"""Operations in expressions that can be a name if they have at least two letters: `x - y`, `\\frac{x}{y}`."""
_NAMING = TRIGONOMETRIC | {"real part", "imaginary part", "argument"}
"""Operations on a letter that can be a name: `\\sin A`."""
_MAX_SYSTEM = 4
"""Maximum number of sides of a system whose sides are compared in any order."""


def as_equation(node: Node) -> Equation | None:
    """Return the sides of an equation between expressions; None for other nodes.

    The sides of `5 = x` are swapped, so that `x` is the first. `f \\equiv 0` is an equation, and so is
    `\\Delta p \\approx \\frac{h}{c}`, an approximate formula for a name.
    """
    if not isinstance(node, Relation) or node.modulus is not None or not {*node.operators} <= {"=", "equiv", "~"}:
        return None
    sides = tuple(side for side in node.sides if is_expression(side))
    if len(sides) != len(node.sides) or ("~" in node.operators and not _is_about_formula(node.operators, sides)):
        return None
    is_turned = len(sides) == 2 and isinstance(sides[1], Symbol) and not symbols(sides[0])
    return sides[::-1] if is_turned else sides


def split_equation(sides: Equation | tuple[()]) -> tuple[Equation, ...]:
    """Return `x = y = 1` as `x = 1` and `y = 1`, and two sides unchanged; the result is empty for other chains."""
    if len(sides) > 2 and all(isinstance(side, Symbol) for side in sides[:-1]) and not symbols(sides[-1]):
        return tuple((name, sides[-1]) for name in sides[:-1])
    return (sides,) if len(sides) == 2 else ()


def named_values(list_: Sequence) -> tuple[tuple[str, Expression], ...] | None:
    """Return the names and values of `x = 1, y = 2`; None for another list, or if a name is repeated.

    If all names are x, y or z, the pairs are sorted by name, because the order of coordinates is fixed. Otherwise, they
    stay in their written order.
    """
    if list_.opening or not {*list_.joined} <= {",", ";", "and"}:
        return None
    equations = [sides for item in list_.items for sides in split_equation(as_equation(item) or ())]
    named = tuple((name.name, value) for name, value in equations if isinstance(name, Symbol))
    names = {name for name, _ in named}
    if len(names) < max(len(equations), len(list_.items)) or any(as_equation(item) is None for item in list_.items):
        return None
    return tuple(sorted(named, key=itemgetter(0))) if names <= _COORDINATES else named


def _is_about_formula(operators: tuple[str, ...], sides: Equation) -> bool:
    """Return whether an equation is `name \\approx formula`, not `name \\approx decimal`.

    The formula must have letters, but none of the letters of the name.
    """
    named = operators == ("~",) and is_name(sides[0]) and bool(symbols(sides[1]))
    return named and not symbols(sides[0]) & symbols(sides[1])


def last_equation(node: Node) -> Node:
    """Return the equation after the last arrow in `2x = 14 -> x = 7`; return other nodes unchanged."""
    if not isinstance(node, Relation) or set(node.operators) != {"=", "->"}:
        return node
    last = len(node.operators) - node.operators[::-1].index("->")
    if "=" not in node.operators[: last - 1] or last == len(node.operators):
        return node
    return Relation(node.operators[last:], node.sides[last:])


def is_curve(sides: Equation) -> bool:
    """Return whether an equation describes a curve or surface, `x^2 + y^2 = 4`, rather than a value.

    The letters of its first side must be two or three of x, y and z. This side must contain a power, or be a sum of
    multiples of its letters (a line or a plane).
    """
    side, letters = sides[0], symbols(sides[0])
    if not isinstance(side, Apply) or len(letters) < 2 or not letters <= {"x", "y", "z"}:
        return False
    has_power = any(part.operation == "power" for part in operations(side))
    return has_power or (side.operation == "sum" and all(map(_is_multiple, side.arguments)))


def _is_multiple(expression: Expression) -> bool:
    """Return whether an expression is a letter, or a number times a letter, with either sign."""
    letters_found = [part for part in parts(expression) if isinstance(part, Symbol)]
    names = {part.operation for part in operations(expression)}
    return len(letters_found) == 1 and names <= {"negative", "product", "quotient"}


def relates_powers(sides: Equation, value: Expression) -> bool:
    """Return whether the first side is a sum of powers without any letter of the value: `a^2 + b^2 = c^2` for `c^2`."""
    first = sides[0]
    names = [part.operation for part in operations(first)]
    return names[:1] == ["sum"] and "power" in names and bool(symbols(value)) and not symbols(first) & symbols(value)


def equal_to_value(sides: Equation, value: Expression) -> bool | None:
    """Return whether an equation states a value: `x = 5`, `m + n = 5` and `2 + 3 = 5` state 5; `2x = 10` does not.

    Args:
        sides: sides of the equation.
        value: a value without a name.

    Returns:
        None if unknown.
    """
    first, *rest = sides
    if len(sides) > 2 and not (isinstance(first, Symbol) and first.name in symbols(*rest)):
        return _is_consistent(sides) and equal_values(sides[-1], value)
    if _is_value_of(first) or (is_name(first) and (_is_call(first) or not symbols(first) & symbols(*rest, value))):
        steps = rest
    elif not symbols(*sides):
        steps = [first, *rest]
    else:
        return _is_identity(sides) and equal_values(sides[-1], value)
    computed = all_of(equal_values(one, other) for one, other in pairwise(steps))
    return equal_values(steps[-1], value) if computed else computed


def _is_consistent(sides: Equation) -> bool | None:
    """Return whether the last side of a chain can follow from the earlier ones: `AD^2 = x^2 + 9 = 45`.

    A side without letters must equal the last side, and so must a middle side whose letters are all in the last side.
    Sides with a function such as `f(3)` are not checked.
    """
    first, *steps, last = sides
    known = symbols(last)
    if symbols(first):
        checked = [step for step in steps if symbols(step) <= known]
    else:
        checked = [first, *(step for step in steps if symbols(step) <= known)]
    return all_of(equal_values(step, last) for step in checked if not has_calls(step))


def equal_equations(answer: Equation, reference: Equation) -> bool | None:
    """Return whether two equations give the same value to the same name, or are equal up to a factor.

    Returns:
        None if unknown, if a chain is inconsistent or has a letter as a middle side, or if a side has no value.
    """
    is_result = len(answer) == 2 and _is_derivation(reference)
    if (_is_system(answer) and not _is_named_result(answer)) or (_is_system(reference) and not is_result):
        return _equal_systems(answer, reference)
    one, other = _first_and_last(answer), _first_and_last(reference)
    if one is None or other is None:
        return None
    reference_name, reference_value = other
    name, value = one = _rename_arguments(one, reference_name)
    has_separate_names = not (symbols(name) | symbols(reference_name)) & symbols(value, reference_value)
    if _same_name(name, reference_name) and (has_separate_names or _is_call(name) or _is_call(reference_name)):
        return equal_values(value, reference_value)
    if _is_solved(name, value) and _is_solved(reference_name, reference_value):
        return False
    if not all(map(has_value, (name, value, reference_name, reference_value))):
        return None
    solved = _is_solved(name, value) or _is_solved(reference_name, reference_value)
    if solved and ZERO not in (value, reference_value):
        return False  # for `x = 5`, `2x = 10` is not accepted, but `x - 5 = 0` is
    return _equal_curves(one, other)


def _is_system(sides: Equation) -> bool:
    """Return whether a chain is a system of equations, `x = y + 1 = 2z` or `AB = BC = CA`, and not steps to a result.

    In a system, a middle side has a letter that is in neither the first nor the last side. If the first and the last
    side share a letter, a letter that is not in the last side is enough. A chain that ends with a number,
    `S = ab + bc + ca = 1`, or begins with a function, `f(x) = a(x - 1) = 2x - 2`, is not a system.
    """
    first, *steps, last = sides
    known = symbols(last) if symbols(first) & symbols(last) else symbols(first, last)
    return bool(symbols(last)) and not _is_call(first) and not symbols(*steps) <= known


def _is_named_result(sides: Equation) -> bool:
    """Return whether a chain begins with a name for its last side: `E = hf = hc/\\lambda`."""
    return is_name(sides[0]) and not symbols(sides[0]) & symbols(sides[-1])


def _is_derivation(sides: Equation) -> bool:
    """Return whether a chain begins with a capital name and ends with its value: `A = bh = x^2`, `AB = AC - BC = 2x`.

    If the name has several letters, a middle side must be a sum, because `AB = BC = CA` is a system.
    """
    first, *steps, _ = sides
    is_capital = is_name(first) and all(map(str.isupper, symbols(first)))
    has_sum = any(isinstance(step, Apply) and step.operation == "sum" for step in steps)
    return is_capital and (isinstance(first, Symbol) or has_sum)


def _equal_systems(answer: Equation, reference: Equation) -> bool | None:
    """Return whether two systems have the same sides, up to their order, or up to a factor of all sides.

    Returns:
        None if unknown, or if a side has no value.
    """
    if len(answer) != len(reference):
        return False
    if not all(map(has_value, (*answer, *reference))):
        return None
    orders = permutations(reference) if len(reference) <= _MAX_SYSTEM else (reference,)
    return any_of(_equal_pairs(answer, order) for order in orders)


def _equal_pairs(answer: Equation, reference: Equation) -> bool | None:
    """Return whether the equations between adjacent sides are equal up to a factor."""
    pairs = zip(pairwise(answer), pairwise(reference), strict=True)
    return all_of(are_proportional(difference(*one), difference(*other)) for one, other in pairs)


def _rename_arguments(sides: Equation, name: Expression) -> Equation:
    """Return `f(n) = n + 1` as `f(x) = x + 1` if `name` is `f(x)`.

    The equation is unchanged if its first side and `name` are not the same function with equally many letters, or if a
    new letter is already in its value.
    """
    own, value = sides
    if not (_is_call(own) and _is_call(name) and isinstance(own, Apply) and isinstance(name, Apply)):
        return sides
    letters, new_letters = ([one.name for one in call.arguments if isinstance(one, Symbol)] for call in (own, name))
    renamed = {one: new for one, new in zip(letters, new_letters, strict=False) if one != new}
    are_distinct = len({*letters}) == len({*new_letters}) == len(letters) == len(new_letters)
    if own.operation != name.operation or not are_distinct or symbols(value) & {*renamed.values()}:
        return sides
    return rename_symbols(own, renamed), rename_symbols(value, renamed)


def _equal_curves(answer: Equation, reference: Equation) -> bool | None:
    """Return whether two equations are equal up to a factor, or one is the result of solving the other for a letter."""
    one, other = difference(*answer), difference(*reference)
    same_curve = have_same_curves(one, other) or are_proportional(one, other)
    if same_curve is not False or not any(map(_has_symbolic_divisor, (*answer, *reference))):
        return same_curve
    return _is_solution(answer, other) or _is_solution(reference, one)


def _is_solution(solved: Equation, equation: Expression) -> bool:
    """Return whether `solved`, such as `y = 6/x`, is the only solution of `equation = 0`, such as `xy - 6 = 0`.

    The equation must be linear in the letter on the first side of `solved`.
    """
    name, value = solved
    if not isinstance(name, Symbol) or name.name in symbols(value):
        return False
    at_zero = substitute(equation, name.name, ZERO)
    slope = difference(substitute(equation, name.name, ONE), at_zero)
    line = Apply("sum", (at_zero, Apply("product", (slope, name))))
    linear = same(line, equation) and same(slope, ZERO) is False
    return bool(linear and same(substitute(equation, name.name, value), ZERO))


def _first_and_last(sides: Equation) -> Equation | None:
    """Return the first and last side of a chain; None if it is inconsistent, or a middle side is a letter."""
    follows = len(sides) == 2 or (_is_consistent(sides) and not any(isinstance(side, Symbol) for side in sides[1:-1]))
    return (sides[0], sides[-1]) if follows else None


def _is_identity(sides: Equation) -> bool:
    """Return whether all sides are equal for all values of their letters."""
    return bool(all_of(equal_values(one, other) for one, other in pairwise(sides)))


def _is_call(expression: Expression) -> bool:
    """Return whether an expression is a function named by a letter, applied to letters: `f(x)`."""
    return is_call(expression) and all(isinstance(argument, Symbol) for argument in expression.arguments)


def _is_value_of(expression: Expression) -> bool:
    """Return whether an expression is a function named by a letter, applied to numbers: `f(3)`."""
    return is_call(expression) and not symbols(expression)


def _same_name(one: Expression, other: Expression) -> bool:
    """Return whether two expressions are the same name; `f(x)` is the same name as `f` and as `y`."""
    if one == other:
        return is_name(one)
    names = {one, other}
    called = {name.operation for name in names if isinstance(name, Apply)}
    if any(isinstance(name, Symbol) and f"call {name.name}" in called for name in names):
        return True
    return Symbol("y") in names and any(_is_call(name) and name != Symbol("y") for name in names)


def _has_symbolic_divisor(expression: Expression) -> bool:
    """Return whether an expression has a symbol in a divisor or in an exponent."""
    divided = (part for part in operations(expression) if part.operation in ("quotient", "power"))
    return any(symbols(*part.arguments[1:]) for part in divided)


def is_name(expression: Expression) -> bool:
    """Return whether an expression can be a name: `x`, `m + n`, `ab`, `f(x)`, `|A|`."""
    if _is_call(expression):
        return True
    if isinstance(expression, Apply) and isinstance(expression.arguments[0], Symbol):
        name, operation = expression.arguments[0].name, expression.operation
        if operation in _NAMING or (operation == "remainder" and not symbols(*expression.arguments[1:])):
            return True
        if operation == "abs" and (name.isupper() or name in ("z", "w")):
            return True  # the size of a set, or the modulus of a complex number
    names = {part.operation for part in operations(expression)}
    leaves = (part for part in parts(expression) if not isinstance(part, Apply))
    if len(symbols(expression)) > 1 and names <= _LETTER_NAME_OPERATIONS:
        return not _is_double(expression) and all(isinstance(leaf, Symbol) or leaf == _TWO for leaf in leaves)
    return names <= _NAME_OPERATIONS and all(isinstance(leaf, Symbol) for leaf in leaves)


def _is_double(expression: Expression) -> bool:
    """Return whether an expression has the factor 2, with either sign: `2xy`."""
    if not isinstance(expression, Apply) or expression.operation not in ("product", "negative"):
        return expression == _TWO
    return any(map(_is_double, expression.arguments))


def _is_solved(name: Expression, value: Expression) -> bool:
    """Return whether an equation gives a number to a letter, unlike the equation of a curve."""
    return isinstance(name, Symbol) and not symbols(value)
