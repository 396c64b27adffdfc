"""A bounded memory of the most recently used scores."""

from __future__ import annotations

from collections import OrderedDict

from rewardstack.score import Score


class Memory:
    """Least recently used first out; not for several threads at once.

    Args:
        size: scores kept; 0 keeps none.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._scores: OrderedDict[str, Score] = OrderedDict()

    def get(self, key: str) -> Score | None:
        """The score under `key`, None where there is none."""
        score = self._scores.get(key)
        if score is not None:
            self._scores.move_to_end(key)
        return score

    def put(self, key: str, score: Score) -> None:
        """Keeps `score` under `key`."""
        if not self.size:
            return
        self._scores[key] = score
        self._scores.move_to_end(key)
        if len(self._scores) > self.size:
            self._scores.popitem(last=False)
