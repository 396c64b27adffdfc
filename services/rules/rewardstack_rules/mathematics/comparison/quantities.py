"""Values with units, and percentages."""

from __future__ import annotations

from rewardstack_rules.mathematics import units
from rewardstack_rules.mathematics.comparison.expressions import equal_values
from rewardstack_rules.mathematics.numbers.rational import rational
from rewardstack_rules.mathematics.numbers.tree import Apply, Expression, Number, symbols
from rewardstack_rules.mathematics.reading.syntax import Node, Quantity, Total, is_expression


def equal_quantities(answer: Node, reference: Node) -> bool | None:
    """Whether two quantities are equal, or one and a value whose unit was left out.

    Units that are known are converted; what is not known as a unit is taken for left out.
    """
    (value, unit), (asked, expected) = _measured(answer), _measured(reference)
    if value is None or asked is None or "dozen" in (unit, expected):
        return None
    if (unit or expected) and symbols(value) != symbols(asked):
        return None  # a letter of the other one may be its unit
    if (unit == "cent") != (expected == "cent") and not (unit and expected) and equal_values(value, asked):
        return True
    unit, expected = _currency(unit, expected, value), _currency(expected, unit, asked)
    if not units.units_differ(unit, expected):
        return equal_values(value, asked)
    ratio = units.ratio(unit, expected)
    return False if ratio is None else equal_values(Apply("product", (Number(ratio), value)), asked)


def _currency(unit: str, other: str, value: Expression) -> str:
    """The unit; dollars where it was left out beside cents, of which there is a whole number."""
    number = rational(value) if not unit and other == "cent" else None
    return "dollar" if number is not None and number.q != 1 else unit


def _measured(node: Node) -> tuple[Expression | None, str]:
    """Value and unit; of several that add up, in the unit of the first; no value where that is not known."""
    if isinstance(node, Total):
        return _added(node.quantities)
    if isinstance(node, Quantity):
        return node.value, units.unit_of(node.unit.lower())
    return (node if is_expression(node) else None), ""


def _added(quantities: tuple[Quantity, ...]) -> tuple[Expression | None, str]:
    first = units.unit_of(quantities[0].unit.lower())
    addends: list[Expression] = []
    for one in quantities:
        ratio = units.ratio(units.unit_of(one.unit.lower()), first)
        if ratio is None:
            return None, ""
        addends.append(Apply("product", (Number(ratio), one.value)))
    return Apply("sum", tuple(addends)), first


def percentage(node: Node) -> Expression | None:
    """What stands before a percent sign; None where there is none."""
    return node.arguments[0] if isinstance(node, Apply) and node.operation == "percent" else None


def equal_percentages(answer: Expression, reference: Expression) -> bool | None:
    """Whether two expressions are equal of which one or both are percentages.

    A bare number is read one way only: up to 1 it is a fraction, above it is a percentage whose sign was left out. 1.5
    for 150 % leaves nothing open: what was asked for is a percentage.
    """
    of_answer, of_reference = percentage(answer), percentage(reference)
    if of_answer is not None and of_reference is not None:
        return equal_values(of_answer, of_reference)
    said = of_answer if of_answer is not None else of_reference
    bare = reference if of_answer is not None else answer
    size = rational(bare)
    if not isinstance(said, Number) or size is None:
        return None
    if abs(size) <= 1:
        said = Number(said.value / 100, None if said.places is None else said.places + 2)
    elif of_reference is not None and said.value > 100 and size * 100 == rational(said):
        return True
    return equal_values(said, reference) if of_answer is not None else equal_values(bare, said)
