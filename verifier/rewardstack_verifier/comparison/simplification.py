"""Find unfinished arithmetic, such as `2 + 3`, `\\frac{6}{4}` or `2^{10}`, in an answer.

An answer counts as simplified if each kind of its unfinished arithmetic also occurs in the reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from math import gcd, isqrt
from typing import Any

from rewardstack_verifier.numbers.rational import to_fraction, to_integer
from rewardstack_verifier.numbers.tree import Apply, Expression, Number, parts, symbols
from rewardstack_verifier.reading.readings import parse_readings
from rewardstack_verifier.reading.syntax import is_expression
from rewardstack_verifier.stack import with_fresh_stack

_NOTATION = frozenset(("negative", "percent", "degree", "subscript"))
"""Operations that are part of the notation of a number, not arithmetic."""
_OVER = "quotient"
MAX_DIVISOR = 1000
"""Largest divisor to try in the search for a factor that can be taken out of a root."""


@with_fresh_stack
def is_simplified(answer: str, reference: str) -> bool:
    """Return whether each kind of unfinished arithmetic in an answer is also in its reference.

    Args:
        answer: text of the answer; `bounds.refusal` must accept it.
        reference: text of the reference; `bounds.refusal` must accept it.
    """
    return unfinished_operations(answer) <= unfinished_operations(reference)


def unfinished_operations(text: str) -> frozenset[str]:
    """Return the unfinished operations on numbers in the first reading of a text."""
    found = parse_readings(text)[:1]
    return frozenset(
        kind for one in _expressions(found) for part in parts(one) if (kind := _unfinished_operation(part))
    )


def _expressions(node: Any) -> Iterator[Expression]:
    """Yield the outermost expressions in a node."""
    if isinstance(node, tuple):
        for item in node:
            yield from _expressions(item)
    elif is_expression(node):
        yield node
    elif hasattr(node, "__dataclass_fields__"):
        yield from _expressions(tuple(getattr(node, field.name) for field in fields(node)))


def _unfinished_operation(part: Expression) -> str:
    """Return the operation of a part if it could be carried out, else an empty string."""
    if not isinstance(part, Apply) or part.operation in _NOTATION:
        return ""
    numbers = [argument for argument in part.arguments if to_fraction(argument) is not None]
    is_finished = {"sum": _is_mixed, "product": _is_scientific, _OVER: _is_reduced, "root": _is_free_of_squares}
    if part.operation in ("sum", "product"):
        return part.operation if len(numbers) > 1 and not is_finished[part.operation](part) else ""
    if part.operation in is_finished:
        return "" if is_finished[part.operation](part) else part.operation
    return part.operation if not symbols(part) and to_fraction(part) is not None and not _is_power_of_ten(part) else ""


def _is_mixed(part: Apply) -> bool:
    """Return whether a sum is a mixed number."""
    whole, *rest = part.arguments
    return (
        isinstance(whole, Number) and len(rest) == 1 and isinstance(rest[0], Apply) and rest[0].operation == "quotient"
    )


def _is_scientific(part: Apply) -> bool:
    return len(part.arguments) == 2 and _is_power_of_ten(part.arguments[1])


def _is_power_of_ten(expression: Expression) -> bool:
    base = expression.arguments[0] if isinstance(expression, Apply) and expression.operation == "power" else None
    return isinstance(base, Number) and base.value == 10


def _is_reduced(part: Apply) -> bool:
    """Return whether a fraction is reduced; True if a numeric factor is unknown (`_coefficient`).

    The numeric factors of numerator and denominator must have no common divisor, and that of the denominator must be
    above 1. So `x / y` is not reduced.
    """
    numerator, denominator = (_coefficient(argument) for argument in part.arguments)
    return numerator is None or denominator is None or (denominator > 1 and gcd(numerator, denominator) == 1)


def _coefficient(expression: Expression) -> int | None:
    """Return the absolute value of the leading integer factor, 1 if there is none; None for sums and non-integers."""
    if isinstance(expression, Apply) and expression.operation == "negative":
        return _coefficient(expression.arguments[0])
    if isinstance(expression, Apply) and expression.operation == "product":
        return _coefficient(expression.arguments[0])
    if isinstance(expression, Number):
        value = to_integer(expression) if expression.places is None else None
        return None if value is None else abs(value)
    return None if isinstance(expression, Apply) and expression.operation == "sum" else 1


def _is_free_of_squares(part: Apply) -> bool:
    """Return whether a root is simplified; True if it is not the root of an integer.

    A root of 0, 1 or -1 is not simplified. A square root is not simplified if a square divides its integer: `\\sqrt{8}`
    is `2\\sqrt{2}`. The same holds for cube roots and cubes, and so on.
    """
    radicand, index = to_integer(part.arguments[0]), to_integer(part.arguments[1])
    if radicand is None or index is None or index < 2:
        return True
    max_divisor = min(MAX_DIVISOR, isqrt(abs(radicand)))
    return abs(radicand) > 1 and not any(radicand % divisor**index == 0 for divisor in range(2, max_divisor + 1))
