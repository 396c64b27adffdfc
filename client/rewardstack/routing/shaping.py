"""Shaping of a route's values (`scale`, `shift`, `clip`), and the bounds of what a route can give."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rewardstack.routing.composite import Cascade, Composite, Gate, Majority, WeightedSum

FIELDS = ("scale", "shift", "clip")
Bounds = tuple[float, float]
"""The lowest and the highest value."""
NOT_NEGATIVE: Bounds = (0.0, math.inf)
UNIT: Bounds = (0.0, 1.0)
RULE_BOUNDS: dict[str, Bounds] = {"overlong": (-math.inf, 0.0)}
"""Of built-in reward functions that go below 0; your own are taken for ones that do not."""


@dataclass(frozen=True, slots=True)
class Shaping:
    """A value times `scale`, plus `shift`, cut to `clip`, in this order.

    Args:
        scale: factor; not 0.
        shift: summand.
        clip: lowest and highest value; None for no bounds.
    """

    scale: float = 1.0
    shift: float = 0.0
    clip: Bounds | None = None

    def apply(self, value: float) -> float:
        """Return the shaped value."""
        low, high = self.clip or (-math.inf, math.inf)
        return min(max(value * self.scale + self.shift, low), high)

    def bounds(self, unshaped: Bounds) -> Bounds:
        """Return the bounds of shaped values, of those of the others."""
        low, high = sorted(map(self.apply, unshaped))
        return low, high

    @property
    def definition(self) -> dict[str, Any]:
        """The fields of the table, without those that change nothing."""
        given = {"scale": (self.scale, 1.0), "shift": (self.shift, 0.0)}
        fields: dict[str, Any] = {name: value for name, (value, neutral) in given.items() if value != neutral}
        return fields if self.clip is None else {**fields, "clip": list(self.clip)}


def composite_bounds(composite: Composite, parts: Iterable[Bounds]) -> Bounds:
    """Return the bounds of a composite's values.

    Args:
        composite: of routes.
        parts: bounds of those routes, in the order of `routes_of`.
    """
    found = [*parts]
    if isinstance(composite, WeightedSum):
        scaled = [
            Shaping(part.weight).bounds(one) for part, one in zip(composite.parts, found, strict=True) if part.weight
        ]
        return sum(low for low, _ in scaled), sum(high for _, high in scaled)
    if isinstance(composite, Gate):
        found = [found[1], (composite.otherwise, composite.otherwise)]
    if composite.failed_part == "zero" and isinstance(composite, Majority | Cascade | Gate):
        found.append((0.0, 0.0))
    return min(low for low, _ in found), max(high for _, high in found)
