"""What is counted while samples are scored. A server passes `metrics.counters`; without one nothing is counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from rewardstack.score import Score, Usage


class Counters(Protocol):
    """Counts what scoring does."""

    def count_scores(self, scores: Iterable[Score]) -> None:
        """Counts the samples of a call."""

    def count_spent(self, route: str, usage: Usage) -> None:
        """Counts a request to a judge or an embedding server that is sent, or the tokens that a reply took."""

    def count_unwritten(self, values: int) -> None:
        """Counts values that the result cache was to hold and does not."""

    def count_distrusted(self, values: int) -> None:
        """Counts values that the result cache had and that were not believed."""

    def count_compared(self, by: Iterable[str]) -> None:
        """Counts answers of mathematics, by what compared them."""

    def count_code(self, counts: Mapping[str, int]) -> None:
        """Counts the tests that a sample's program ran, by verdict, and the milliseconds of CPU (`cpu_ms`)."""


def _ignore(*counted: object) -> None:
    """Counts nothing."""


class _Uncounted:
    """Counts nothing."""

    count_scores = count_spent = count_unwritten = staticmethod(_ignore)
    count_distrusted = count_compared = count_code = staticmethod(_ignore)


UNCOUNTED: Counters = _Uncounted()
