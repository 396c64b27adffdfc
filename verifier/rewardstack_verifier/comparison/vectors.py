"""Vectors: a tuple, a column, a row, and a sum of the unit vectors i, j and k."""

from __future__ import annotations

from rewardstack_verifier.numbers.equality import at_point, same
from rewardstack_verifier.numbers.tree import Apply, Constant, Expression, Symbol, integer, symbols
from rewardstack_verifier.reading.syntax import Matrix, Node, Sequence, is_expression

_UNITS = ("hat i", "hat j", "hat k")


def components(node: Node) -> tuple[Node, ...] | None:
    """The components of a vector; None where it is none.

    Two items in square brackets, or with brackets of two kinds, are an interval.
    """
    if isinstance(node, Matrix):
        if len(node.rows) == 1:
            return node.rows[0]
        return tuple(row[0] for row in node.rows) if all(len(row) == 1 for row in node.rows) else None
    if isinstance(node, Sequence):
        kinds = (node.opening, node.closing)
        is_tuple = kinds in (("(", ")"), ("<", ">")) or (kinds == ("[", "]") and len(node.items) > 2)
        return node.items if is_tuple and set(node.joined) <= {",", ";"} else None
    return _of_units(node) if is_expression(node) else None


def _of_units(expression: Expression) -> tuple[Node, ...] | None:
    """The factors of i, j and k in a sum that has no other addends."""
    sum_ = _with_units(expression)
    named = symbols(sum_)
    if "hat j" not in named or not named & {"hat i", "hat k"}:
        return None
    units = _UNITS if "hat k" in named else _UNITS[:2]
    found = tuple(at_point(sum_, {unit: integer(int(unit == one)) for unit in units}) for one in units)
    together = Apply("sum", tuple(Apply("product", (of, Symbol(unit))) for of, unit in zip(found, units, strict=True)))
    return found if same(sum_, together) else None


def _with_units(expression: Expression) -> Expression:
    """The expression with one name for each unit vector, whatever its looks."""
    if isinstance(expression, Apply):
        return Apply(expression.operation, tuple(map(_with_units, expression.arguments)))
    if expression == Constant("i"):
        return Symbol("hat i")
    if isinstance(expression, Symbol) and expression.name in ("i", "j", "k"):
        return Symbol(f"hat {expression.name[-1]}")
    return expression
