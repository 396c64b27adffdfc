"""The rows that a recipe returns for writing, the input rows that it dropped, and a train-test split."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from rewardstack_cli.data.rows import Row
from rewardstack_cli.recipes.dataset import Dataset

T = TypeVar("T")


class DroppedRows:
    """Input rows that are not in the output, by reason."""

    def __init__(self) -> None:
        self._places: dict[str, list[str]] = defaultdict(list)

    def add(self, reason: str, row: Row) -> None:
        """Record a dropped row."""
        self._places[reason].append(row.location)

    def record(self) -> dict[str, dict[str, Any]]:
        """Return for each reason how many rows were dropped, and the location of the first of them."""
        return {why: {"rows": len(places), "first": places[0]} for why, places in sorted(self._places.items())}


@dataclass(frozen=True)
class Prepared:
    """Rows to write.

    Args:
        sources: the data sets that were read.
        splits: rows of each split, in order; the report counts the rows by the `label` in their `extra_info`, if any.
        settings: options of the recipe other than the seed, for the report.
        dropped: the dropped rows.
    """

    sources: list[Dataset]
    splits: dict[str, list[dict[str, Any]]]
    settings: dict[str, Any]
    dropped: DroppedRows = field(default_factory=DroppedRows)


def split_by_share(groups: Sequence[T], share: float, random: Random) -> dict[str, list[T]]:
    """Shuffle the groups and split them into train and test.

    Args:
        groups: the groups; a group stays in one split.
        share: share of the test split, from 0 to below 1. If it is above 0, and there are at least two groups, each
            split gets at least one group.
        random: random number generator.
    """
    shuffled = list(groups)
    random.shuffle(shuffled)
    count = round(share * len(shuffled))
    if share:
        count = min(max(count, 1), len(shuffled) - 1)
    return {"train": shuffled[count:], "test": shuffled[:count]}
