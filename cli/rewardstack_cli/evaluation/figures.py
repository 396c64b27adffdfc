"""Figures of scores against labels. Undefined figures are None, never 0 or NaN.

`Scores` counts scores one by one, in memory that does not grow with their number.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_VALUES = 10_000
"""Maximum number of different scores that are counted exactly for the ROC curve and its area."""
BITS = (24, 20, 16, 14, 12, 11, 10, 9, 8, 6, 4)
"""Leading bits to which scores are cut for the curve: the first number that leaves at most `MOST_VALUES` scores."""


class Confusion(NamedTuple):
    """Numbers of responses by label and score; a response is scored right if its score reaches the threshold.

    Args:
        true_positive: number of right responses that are scored right.
        false_positive: number of wrong responses that are scored right.
        true_negative: number of wrong responses that are scored wrong.
        false_negative: number of right responses that are scored wrong.
    """

    true_positive: int
    false_positive: int
    true_negative: int
    false_negative: int

    @property
    def agreement(self) -> float | None:
        """The share of responses whose score agrees with the label."""
        return _share(self.true_positive + self.true_negative, sum(self))

    @property
    def precision(self) -> float | None:
        """The share of right responses among the responses that are scored right."""
        return _share(self.true_positive, self.true_positive + self.false_positive)

    @property
    def recall(self) -> float | None:
        """The share of right responses that are scored right."""
        return _share(self.true_positive, self.true_positive + self.false_negative)


class Bin(NamedTuple):
    """The scores in one interval [low, high); the last interval includes its upper bound.

    Args:
        low: lower bound.
        high: upper bound.
        rows: number of scores in the interval.
        mean: mean score; None without rows.
        right: share of rows whose response is right; None without rows.
    """

    low: float
    high: float
    rows: int
    mean: float | None
    right: float | None


class Scores:
    """Scores of responses and the labels of the same responses.

    Args:
        threshold: score from which a response counts as right.
        bins: number of calibration bins, of equal width over [0, 1].
    """

    def __init__(self, threshold: float, bins: int) -> None:
        self._threshold = threshold
        self._edges = [at / bins for at in range(bins + 1)]  # 3 / 10 is exactly the float 0.3, as a judge writes it
        self._confusion = {(taken, right): 0 for taken in (True, False) for right in (True, False)}
        self._in_bins = [[0, 0] for _ in range(bins)]
        """Numbers of wrong and of right responses of each bin."""
        self._sums = [0.0] * bins
        self._squares = 0.0
        self._are_probabilities = True
        self._counts: dict[float, list[int]] = {}
        """Numbers of wrong and of right responses by score, which is cut to `_bits` unless that is None."""
        self._bits: int | None = None

    def add(self, value: float, right: bool) -> None:
        """Count a score.

        Args:
            value: the score; finite.
            right: whether the response is right according to its label.
        """
        self._confusion[value >= self._threshold, right] += 1
        if 0 <= value <= 1:
            at = min(bisect_right(self._edges, value), len(self._sums)) - 1
            self._in_bins[at][right] += 1
            self._sums[at] += value
            self._squares += (value - right) ** 2
        else:
            self._are_probabilities = False
        self._counts.setdefault(self._cut(value), [0, 0])[right] += 1
        if len(self._counts) > MOST_VALUES:
            self._cut_more()

    def _cut(self, value: float) -> float:
        """Return a score without the bits after the first `_bits`; unlike rounding, this can be done in steps."""
        if self._bits is None:
            return value
        mantissa, exponent = math.frexp(value)
        return math.ldexp(math.floor(math.ldexp(mantissa, self._bits)), exponent - self._bits)

    def _cut_more(self) -> None:
        counts = self._counts
        for bits in BITS if self._bits is None else BITS[BITS.index(self._bits) + 1 :]:
            self._bits, self._counts = bits, {}
            for value, (wrong, right) in counts.items():
                count = self._counts.setdefault(self._cut(value), [0, 0])
                count[0], count[1] = count[0] + wrong, count[1] + right
            if len(self._counts) <= MOST_VALUES:
                return

    def confusion(self) -> Confusion:
        """Count responses by label and by whether their score is at least the threshold."""
        pairs = (True, True), (True, False), (False, False), (False, True)
        return Confusion(*(self._confusion[pair] for pair in pairs))

    def brier(self) -> float | None:
        """Return the mean squared difference of score and label (Brier, 1950); None unless all scores are in [0, 1]."""
        rows = sum(self._confusion.values())
        return self._squares / rows if rows and self._are_probabilities else None

    def bins(self) -> list[Bin]:
        """Return the calibration bins; empty unless there are scores and all are in [0, 1]."""
        if not self._are_probabilities or not self._counts:
            return []
        found = []
        for low, high, (wrong, right), total in zip(
            self._edges, self._edges[1:], self._in_bins, self._sums, strict=False
        ):
            rows = wrong + right
            found.append(Bin(low, high, rows, _share(total, rows), _share(right, rows)))
        return found

    def _by_score(self) -> NDArray[np.int64]:
        """Return the numbers of wrong and right responses by score, the highest first; empty if a class has none."""
        counts = np.array([self._counts[value] for value in sorted(self._counts, reverse=True)], dtype=np.int64)
        return counts if counts.size and counts.sum(axis=0).all() else np.zeros((0, 2), dtype=np.int64)

    def roc(self) -> list[tuple[float, float]]:
        """Return the ROC curve from (0, 0) to (1, 1), with one point for each different score.

        Returns:
            The points (false positive rate, true positive rate); empty if there are no right or no wrong responses.
        """
        counts = self._by_score()
        if not len(counts):
            return []
        rates = np.cumsum(counts, axis=0) / counts.sum(axis=0)
        return [(0.0, 0.0), *((float(across), float(up)) for across, up in rates)]

    def auc(self) -> float | None:
        """Return the area under the ROC curve: how often a right response outscores a wrong one; a tie counts as half.

        It is the Mann-Whitney statistic (1947) divided by the number of pairs. None if there are no right or no wrong
        responses.
        """
        counts = self._by_score()
        if not len(counts):
            return None
        wrong, right = counts.T
        above = np.cumsum(right) - right / 2
        return float((wrong * above).sum() / (wrong.sum() * right.sum()))

    def summary(self) -> dict[str, Any]:
        """Return all figures, as a JSON object."""
        counts, found = self.confusion(), self.bins()
        return {
            "rows": sum(counts),
            "right": counts.true_positive + counts.false_negative,
            "agreement": counts.agreement,
            "confusion": counts._asdict(),
            "precision": counts.precision,
            "recall": counts.recall,
            "auc": self.auc(),
            "brier": self.brier(),
            "calibration_error": calibration_error(found),
            "bins": [one._asdict() for one in found],
            "roc": self.roc(),
            "bits": self._bits,
        }


def calibration_error(found: list[Bin]) -> float | None:
    """Return the expected calibration error: |mean score - share right| of the bins, weighted by their rows.

    Guo et al., On Calibration of Modern Neural Networks (2017), equation 3. None without rows.
    """
    rows = sum(one.rows for one in found)
    gaps = (one.rows * abs(one.mean - one.right) for one in found if one.mean is not None and one.right is not None)
    return sum(gaps) / rows if rows else None


def mcnemar(first_alone: int, second_alone: int) -> float | None:
    """Return the exact two-sided p-value of McNemar's test (1947) that two settings are equally often right.

    Args:
        first_alone: number of rows where only the first setting agrees with the label.
        second_alone: number of rows where only the second setting agrees with the label.

    Returns:
        The binomial probability of a split at least this uneven; None if both numbers are 0.
    """
    pairs = first_alone + second_alone
    if not pairs:
        return None
    tail = sum(math.comb(pairs, count) for count in range(min(first_alone, second_alone) + 1))
    return min(1.0, 2 * tail / 2**pairs)


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None
