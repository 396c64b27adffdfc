"""What a recipe has made of its data sets, before it is written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from rewardstack_cli.data.rows import Row
from rewardstack_cli.recipes.dataset import Dataset

T = TypeVar("T")


class Dropped:
    """The rows of the input that are in no output, by the reason."""

    def __init__(self) -> None:
        self._places: dict[str, list[str]] = defaultdict(list)

    def add(self, reason: str, row: Row) -> None:
        """Notes one."""
        self._places[reason].append(row.place)

    def record(self) -> dict[str, dict[str, Any]]:
        """By reason how many, and where the first one stands."""
        return {why: {"rows": len(places), "first": places[0]} for why, places in sorted(self._places.items())}


@dataclass(frozen=True)
class Prepared:
    """Rows to be written.

    Args:
        sources: the data sets that were read.
        splits: the rows of each, in order; they are counted by the `label` in their `extra_info`, where there is one.
        settings: what was chosen beside the seed, for the report.
        dropped: what was left out.
    """

    sources: list[Dataset]
    splits: dict[str, list[dict[str, Any]]]
    settings: dict[str, Any]
    dropped: Dropped = field(default_factory=Dropped)


def split_by_share(groups: Sequence[T], share: float, random: Random) -> dict[str, list[T]]:
    """Groups in random order, the given share of them for the test.

    Args:
        groups: that belong into one split each.
        share: from 0 to below 1; above 0 it is at least one group, as long as another is left for training.
        random: decides.
    """
    shuffled = list(groups)
    random.shuffle(shuffled)
    count = round(share * len(shuffled))
    if share:
        count = min(max(count, 1), len(shuffled) - 1)
    return {"train": shuffled[count:], "test": shuffled[:count]}
