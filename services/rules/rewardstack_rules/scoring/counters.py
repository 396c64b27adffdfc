"""The interface of counters for scoring. Servers and workers use `metrics.counters`; the default counts nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from rewardstack.score import Score, Usage
from rewardstack_rules.metrics.batch import Rewards


class Counters(Protocol):
    """Counters for scoring."""

    def count_scores(self, scores: Sequence[Score], routes: Sequence[str]) -> None:
        """Count scored samples; `routes` has the metric label of each sample."""

    def count_rewards(self, routes: Mapping[str, Rewards]) -> None:
        """Count the rewards of a batch, by route."""

    def count_usage(self, route: str, usage: Usage) -> None:
        """Count the requests to, and tokens of, a route's judge, reward model or embedding server."""

    def count_cache_write_errors(self, values: int) -> None:
        """Count values that could not be written to the result cache."""

    def count_rejected_cache_values(self, values: int) -> None:
        """Count values from the result cache that were rejected."""

    def count_stretch(self, seconds: float) -> None:
        """Note the longest time for which the event loop has handled no other sample."""

    def count_comparisons(self, by: Iterable[str]) -> None:
        """Count comparisons of math answers.

        Args:
            by: label of each answer: `undecided` if the answer counts as wrong only because a comparison reached its
                limits; `values` for all other answers, right or wrong.
        """

    def count_code(self, counts: Mapping[str, int]) -> None:
        """Count the tests of a sample's program, by verdict. `counts` can also have `cpu_ms` and `launcher_died`."""


def _ignore(*values: object) -> None:
    """Count nothing."""


class _NoCounters:
    """Counts nothing."""

    count_scores = count_rewards = count_usage = count_cache_write_errors = staticmethod(_ignore)
    count_rejected_cache_values = count_stretch = count_comparisons = count_code = staticmethod(_ignore)


NO_COUNTERS: Counters = _NoCounters()
