"""Find the components of points and vectors, `\\langle 1, 2\\rangle`, and remove names: `(x, y) = (1, 2)`."""

from __future__ import annotations

from dataclasses import replace

from rewardstack_verifier.comparison.equations import as_equation, named_values
from rewardstack_verifier.lexicon.phrases import NO_POINTS
from rewardstack_verifier.numbers.equality import same, substitute_all
from rewardstack_verifier.numbers.tree import Apply, Constant, Expression, Number, Symbol, integer, symbols
from rewardstack_verifier.reading.syntax import (
    Combination,
    Matrix,
    NamedSet,
    Node,
    Relation,
    Sequence,
    is_expression,
    is_point,
)

_NO_POINTS = frozenset(NO_POINTS.split())
_UNITS = ("hat i", "hat j", "hat k")


def as_components(node: Node) -> tuple[Node, ...] | None:
    """Return the components of a vector; None if it is not a vector.

    Two items in square brackets or in different brackets are an interval, not a vector.
    """
    if isinstance(node, Matrix):
        if len(node.rows) == 1:
            return node.rows[0]
        return tuple(row[0] for row in node.rows) if all(len(row) == 1 for row in node.rows) else None
    if isinstance(node, Sequence):
        brackets = (node.opening, node.closing)
        is_tuple = brackets in (("(", ")"), ("<", ">")) or (brackets == ("[", "]") and len(node.items) > 2)
        return node.items if is_tuple and set(node.joined) <= {",", ";"} else None
    return _unit_vector_components(node) if is_expression(node) else None


def _unit_vector_components(expression: Expression) -> tuple[Node, ...] | None:
    """Return the components of `2i + 3j - k`; None for other expressions."""
    sum_ = _rename_unit_vectors(expression)
    named = symbols(sum_)
    if "hat j" not in named or not named & {"hat i", "hat k"}:
        return None
    units = _UNITS if "hat k" in named else _UNITS[:2]
    found = tuple(substitute_all(sum_, {unit: integer(int(unit == one)) for unit in units}) for one in units)
    rebuilt = Apply("sum", tuple(Apply("product", (of, Symbol(unit))) for of, unit in zip(found, units, strict=True)))
    return found if same(sum_, rebuilt) else None


def _rename_unit_vectors(expression: Expression) -> Expression:
    """Return the expression with the unit vectors `i`, `j` and `k` renamed to `hat i`, `hat j` and `hat k`."""
    if isinstance(expression, Apply):
        return Apply(expression.operation, tuple(map(_rename_unit_vectors, expression.arguments)))
    if expression == Constant("i"):
        return Symbol("hat i")
    if isinstance(expression, Symbol) and expression.name in ("i", "j", "k"):
        return Symbol(f"hat {expression.name[-1]}")
    return expression


def strip_names(answer: Node, reference: Node) -> tuple[Node, Node]:
    """Return two points, vectors or sets without their names; other nodes, and two different names, unchanged.

    The answer may add a letter to a point, `A(3, 4)`, but not leave it out, because `R(3, 3)` may be a number.
    Coordinates are sorted by name if both nodes name the same coordinates; otherwise they stay in their written order.
    If one of the nodes is a point, the other can also be `x = 1, y = 2`.
    """
    own, asked = _names(answer), _names(reference)
    if own != asked if own and asked else _is_no_point(reference):
        return answer, reference
    names = _coordinate_names(answer)
    if names and own:
        answer, reference = _sort_coordinates(answer, names), _sort_coordinates(reference, names)
    answer, reference = _strip_name(answer), _strip_name(reference)
    if is_point(answer) or is_point(reference):
        answer, reference = _as_point(answer) or answer, _as_point(reference) or reference
    return answer, reference


def _is_no_point(node: Node) -> bool:
    """Return whether a letter before a pair names something else: `N(0, 1)`, or the permutations `P(10, 3)`."""
    if not isinstance(node, Relation) or node.operators != ("of",):
        return False
    values = [item.value for item in as_components(node.sides[1]) or () if isinstance(item, Number)]
    is_count = node.sides[0] == Symbol("P") and len(values) == 2 and values[0] >= values[1]
    return is_count or not _NO_POINTS.isdisjoint(_names(node))


def _names(node: Node) -> list[str]:
    """Return the sorted names of coordinates, or the name of a point: `A` in `A = (1, 2)`; empty without a name."""
    name = node.sides[0] if isinstance(node, Relation) else None
    return [name.name] if isinstance(name, Symbol) else sorted(_coordinate_names(node))


def _coordinate_names(node: Node) -> tuple[str, ...]:
    """Return the names of coordinates: `x`, `y` in `(x, y) = (1, 2)` and `x = 1, y = 2`; empty without names."""
    if isinstance(node, Sequence) and not node.opening and node.items:
        return tuple(name for name, _ in named_values(node) or ()) or _coordinate_names(node.items[0])
    if isinstance(node, Relation) and node.operators in (("=",), ("in",)) and isinstance(node.sides[0], Sequence):
        return _letters(node.sides[0]) if _is_point_or_list(node.sides[1]) else ()
    return ()


def _letters(names: Sequence) -> tuple[str, ...]:
    """Return the letters of `(x, y)`; empty if this is not the name of a point."""
    return tuple(item.name for item in names.items if isinstance(item, Symbol)) if _is_name(names) else ()


def _sort_coordinates(node: Node, names: tuple[str, ...]) -> Node:
    """Return a node with the coordinates of its points sorted by name; `y = 2, x = 1` becomes `x = 1, y = 2`.

    Args:
        node: a point, or a list or set of points.
        names: names of the coordinates of points without names.
    """
    if isinstance(node, Relation):
        own = _coordinate_names(node)
        return replace(node, sides=tuple(_sort_coordinates(side, own) for side in node.sides)) if own else node
    if not isinstance(node, Sequence):
        return node
    if node.opening == "(" and len(node.items) == len(names):
        by_name = sorted(zip(names, node.items, strict=True), key=_get_name)
        return replace(node, items=tuple(item for _, item in by_name))
    named = named_values(node)
    if named:
        return replace(
            node, items=tuple(Relation(("=",), (Symbol(one), of)) for one, of in sorted(named, key=_get_name))
        )
    own = _coordinate_names(node) or names
    return replace(node, items=tuple(_sort_coordinates(item, own) for item in node.items))


def _strip_name(node: Node) -> Node:
    """Return a point, vector or set without its name; other nodes unchanged."""
    if isinstance(node, Sequence) and not node.opening and node.items and not any(map(_is_condition, node.items)):
        first = _strip_name(node.items[0])
        return Sequence("", (first, *node.items[1:]), "", node.joined) if first is not node.items[0] else node
    if not isinstance(node, Relation) or node.operators not in (("=",), ("in",), ("of",)):
        return node
    name, value = node.sides
    if _is_name(name) and (_is_point_or_list(value) or isinstance(value, Matrix)):
        return value
    is_vector = _is_point_or_list(value) or (is_expression(value) and as_components(value) is not None)
    if isinstance(name, Symbol) and node.operators != ("in",) and is_vector:
        return value
    if isinstance(name, Combination) or (isinstance(name, Symbol) and isinstance(value, NamedSet)):
        return value
    if isinstance(value, (NamedSet, Matrix)) or (isinstance(value, Sequence) and value.opening == "{"):
        named = node.operators == ("=",) and (isinstance(name, Combination) or is_expression(name))
        return value if named or _is_name(name) else node
    return node


def _as_point(node: Node) -> Sequence | None:
    """Return the values of `x = 1, y = 2` or of `x = y = 2` as a vector; None for other nodes."""
    named = named_values(node) if isinstance(node, Sequence) else None
    if named:
        return Sequence("<", tuple(value for _, value in named), ">", (",",) * (len(named) - 1))
    sides = as_equation(node)
    if sides and len(sides) > 2 and all(isinstance(side, Symbol) for side in sides[:-1]) and not symbols(sides[-1]):
        return Sequence("<", (sides[-1],) * (len(sides) - 1), ">", (",",) * (len(sides) - 2))
    return None


def _is_condition(node: Node) -> bool:
    """Return whether a node is a condition such as `x \\ne 0`. In a list with one, `x \\in R` is a condition, too."""
    return isinstance(node, Relation) and not {*node.operators} <= {"=", "in"}


def _get_name(named: tuple[str, object]) -> str:
    return named[0]


def _is_name(node: Node) -> bool:
    """Return whether a node is the name of a point, `(x, y)`: letters in parentheses."""
    return is_point(node) and all(isinstance(item, Symbol) for item in node.items)


def _is_point_or_list(node: Node) -> bool:
    return isinstance(node, Sequence) and node.opening in ("(", "[", "{", "<")
