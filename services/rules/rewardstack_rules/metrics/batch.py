"""The type of the rewards that `metrics.rewards` counts. Unlike that module, this one needs no prometheus_client."""

from __future__ import annotations

from typing import NamedTuple


class Rewards(NamedTuple):
    """The rewards of one route in a batch.

    Args:
        bounds: the lowest and the highest value that the route can have.
        values: the rewards of samples with the status `ok` or `fallback`.
        parts: the values of each part of the rewards, by the part's name; the number of names per route is limited.
        groups: the rewards of each group of samples for the same prompt, by the group's digest.
    """

    bounds: tuple[float, float]
    values: list[float]
    parts: dict[str, list[float]]
    groups: dict[bytes, list[float]]
