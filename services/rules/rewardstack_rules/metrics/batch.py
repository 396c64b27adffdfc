"""`Rewards`: what is counted of a batch, without prometheus_client, which a trainer that runs rules does not have."""

from __future__ import annotations

from typing import NamedTuple


class Rewards(NamedTuple):
    """The rewards of one route in a batch.

    Args:
        bounds: the lowest and the highest value that the route can have.
        values: the rewards of samples with the status `ok` or `fallback`.
        parts: the values of the rewards' parts, by the part's name; a small fixed set of names per route.
        groups: the rewards of each group of samples that answer the same prompt, by the group's digest.
    """

    bounds: tuple[float, float]
    values: list[float]
    parts: dict[str, list[float]]
    groups: dict[bytes, list[float]]
