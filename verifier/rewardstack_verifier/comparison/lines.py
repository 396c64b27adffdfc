"""Compare lines in parametric form, `(1, 2, 3) + t(2, -1, 0)`, which may have another point and direction."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

from rewardstack_verifier.comparison.equations import named_values
from rewardstack_verifier.comparison.values import all_of
from rewardstack_verifier.comparison.vectors import as_components
from rewardstack_verifier.numbers.equality import same
from rewardstack_verifier.numbers.tree import Apply, Expression, difference, integer, substitute, symbols
from rewardstack_verifier.reading.syntax import Family, Node, Relation, Sequence, is_expression

_PARAMETERS = frozenset(("t", "s", "r", "u", "lambda", "mu", "tau"))


class Line(NamedTuple):
    """A point of a line, its direction, and its parameter; `is_declared` says that this is any real number."""

    point: tuple[Expression, ...]
    direction: tuple[Expression, ...]
    parameter: str
    is_declared: bool


def as_line(node: Node) -> Line | None:
    """Return a point or coordinates with a linear parameter as a line; None for other nodes."""
    if isinstance(node, Family):
        line = as_line(node.of)
        is_declared = node.domain == "R" and line is not None and line.parameter == node.parameter
        return line._replace(is_declared=True) if line and is_declared else None
    if isinstance(node, Relation) and node.operators == ("=",):
        return as_line(node.sides[1])
    if is_expression(node):
        return None
    named = named_values(node) if isinstance(node, Sequence) else None
    values = tuple(value for _, value in named) if named else as_components(node) or ()
    parts = tuple(value for value in values if is_expression(value))
    letters = symbols(*parts)
    parameter = next(iter(letters), "")
    if len(parts) < max(len(values), 2) or len(letters) != 1 or parameter not in _PARAMETERS:
        return None
    point, first, second = (tuple(substitute(part, parameter, integer(at)) for part in parts) for at in range(3))
    direction = tuple(map(difference, first, point))
    is_linear = all(map(same, direction, map(difference, second, first)))
    return Line(point, direction, parameter, False) if is_linear else None


def equal_lines(answer: Line, reference: Line) -> bool | None:
    """Return whether two lines are equal. An undeclared parameter that is the same is the time."""
    if len(answer.point) != len(reference.point):
        return False
    if answer.parameter == reference.parameter and not (answer.is_declared or reference.is_declared):
        return all_of(map(same, answer.point + answer.direction, reference.point + reference.direction))
    between = tuple(map(difference, answer.point, reference.point))
    return _are_parallel(answer.direction, reference.direction) and _are_parallel(between, reference.direction)


def _are_parallel(one: tuple[Expression, ...], other: tuple[Expression, ...]) -> bool | None:
    pairs = combinations(zip(one, other, strict=True), 2)
    return all_of(same(Apply("product", (a, d)), Apply("product", (b, c))) for (a, b), (c, d) in pairs)
