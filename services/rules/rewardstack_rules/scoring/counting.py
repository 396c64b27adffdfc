"""The interface of counters for scoring. A server passes `metrics.counters`; by default nothing is counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from rewardstack.score import Score, Usage
from rewardstack_rules.metrics.batch import Rewards


class Counters(Protocol):
    """Counters for scoring."""

    def count_scores(self, scores: Sequence[Score], routes: Sequence[str]) -> None:
        """Count scored samples; `routes` has the label of each."""

    def count_rewards(self, routes: Mapping[str, Rewards]) -> None:
        """Count the rewards of a batch, by route."""

    def count_spent(self, route: str, usage: Usage) -> None:
        """Count requests sent to a judge or an embedding server; if `usage` has none, count the tokens of one reply."""

    def count_unwritten(self, values: int) -> None:
        """Count values that were not written to the result cache."""

    def count_distrusted(self, values: int) -> None:
        """Count values from the result cache that were rejected."""

    def count_compared(self, by: Iterable[str]) -> None:
        """Count compared math answers, by the method of comparison."""

    def count_code(self, counts: Mapping[str, int]) -> None:
        """Count the tests of a sample's program, by verdict; `cpu_ms` and `launcher_died` are also keys of `counts`."""


def _ignore(*counted: object) -> None:
    """Count nothing."""


class _Uncounted:
    """Counts nothing."""

    count_scores = count_rewards = count_spent = count_unwritten = staticmethod(_ignore)
    count_distrusted = count_compared = count_code = staticmethod(_ignore)


UNCOUNTED: Counters = _Uncounted()
