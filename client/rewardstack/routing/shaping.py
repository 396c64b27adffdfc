"""Shapes a route's values (`scale`, `shift`, `clip`), and computes the bounds of a route's values."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewardstack.core.json_types import is_finite
from rewardstack.errors import RouteError
from rewardstack.routing.composite import Composite, Gate, WeightedSum

FIELDS = ("scale", "shift", "clip")
"""The fields of a route or reward model that define its shaping."""
Bounds = tuple[float, float]
"""The lowest and the highest possible value."""
NOT_NEGATIVE: Bounds = (0.0, math.inf)
UNIT: Bounds = (0.0, 1.0)
BELOW_ZERO: Bounds = (-math.inf, 1.0)
FLOORED = -sys.float_info.max
"""Placeholder for the value of a response that a reward model cannot score, because the response is too long or has no
steps. Shaping replaces it by `floor`."""
RULE_BOUNDS: dict[str, Bounds] = {"overlong": (-math.inf, 0.0)}
"""Bounds of reward functions with negative values. All other reward functions, including custom ones, are assumed to
have the bounds `NOT_NEGATIVE`."""


@dataclass(frozen=True, slots=True)
class Shaping:
    """Multiplies a value by `scale`, adds `shift`, and clips it to `clip`, in this order.

    Args:
        scale: factor; not 0.
        shift: summand.
        clip: lowest and highest value; None for no bounds.
        floor: value that replaces `FLOORED`; it is neither scaled nor clipped. None for the lower bound of `clip`. The
            route of a reward model always has a floor.
    """

    scale: float = 1.0
    shift: float = 0.0
    clip: Bounds | None = None
    floor: float | None = None

    def apply(self, value: float) -> float:
        """Return the shaped value."""
        low, high = self.clip or (-math.inf, math.inf)
        if value == FLOORED and self.floor is not None:
            return self.floor
        if value == FLOORED and self.clip is not None:
            return low
        return min(max(value * self.scale + self.shift, low), high)

    def bounds(self, unshaped: Bounds) -> Bounds:
        """Return the bounds of shaped values, given the bounds of unshaped values."""
        values = [*map(self.apply, unshaped), *([] if self.floor is None else [self.floor])]
        return min(values), max(values)

    @property
    def definition(self) -> dict[str, Any]:
        """The shaping as fields of a table, including `floor`; fields with default values are left out."""
        values = {"scale": (self.scale, 1.0), "shift": (self.shift, 0.0)}
        fields: dict[str, Any] = {name: value for name, (value, default) in values.items() if value != default}
        fields |= {} if self.clip is None else {"clip": list(self.clip)}
        return fields if self.floor is None else {**fields, "floor": self.floor}


def read_shaping(fields: Mapping[str, Any], error: Callable[[str, str], RouteError]) -> Shaping | None:
    """Parse the shaping fields of a table; return None if there are none.

    Args:
        fields: the fields of the table that are in `FIELDS`.
        error: creates the error from the field's name and a message.

    Raises:
        RouteError: a field is invalid.
    """
    if not fields:
        return None
    for name in ("scale", "shift"):
        if name in fields and not is_finite(fields[name]):
            raise error(name, f"must be a finite number, got {fields[name]!r}")
    if fields.get("scale") == 0:
        raise error("scale", "must not be 0, which would make all values equal")
    clip = read_bounds(fields["clip"], lambda message: error("clip", message)) if "clip" in fields else None
    return Shaping(float(fields.get("scale", 1)), float(fields.get("shift", 0)), clip)


def read_bounds(value: Any, error: Callable[[str], RouteError]) -> Bounds:
    """Parse a pair of different numbers, the lower bound first; raise `error(message)` if it is invalid."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise error("must be two numbers, such as [0.2, 0.8]")
    for number in value:
        if not is_finite(number):
            raise error(f"must be a finite number, got {number!r}")
    if value[0] >= value[1]:
        raise error(f"must begin with the lower bound, got {list(value)!r}")
    return float(value[0]), float(value[1])


def composite_bounds(composite: Composite, parts: Iterable[Bounds]) -> Bounds:
    """Return the bounds of a composite's values.

    Args:
        composite: the composite.
        parts: bounds of its parts, in the order of `part_routes`.
    """
    bounds = [*parts]
    if isinstance(composite, WeightedSum):
        return _sum_bounds(composite, bounds)
    if isinstance(composite, Gate):
        bounds = [bounds[1], (composite.otherwise, composite.otherwise)]
    if composite.on_part_error == "zero":
        bounds.append((0.0, 0.0))
    return min(low for low, _ in bounds), max(high for _, high in bounds)


def _sum_bounds(composite: WeightedSum, parts: Sequence[Bounds]) -> Bounds:
    weighted = [
        (part.weight, part_bounds) for part, part_bounds in zip(composite.parts, parts, strict=True) if part.weight
    ]
    if composite.on_part_error == "skip" and weighted:
        # Each part may be the only one with a value, and then gets the weight of all parts.
        total_weight = sum(weight for weight, _ in weighted)
        low, high = min(low for _, (low, _) in weighted), max(high for _, (_, high) in weighted)
        return total_weight * low, total_weight * high
    scaled = [Shaping(weight).bounds(part_bounds) for weight, part_bounds in weighted]
    if composite.on_part_error == "zero":
        scaled = [(min(low, 0.0), max(high, 0.0)) for low, high in scaled]
    return sum(low for low, _ in scaled), sum(high for _, high in scaled)
