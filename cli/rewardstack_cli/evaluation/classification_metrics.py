"""Compute metrics of the agreement of scores with labels.

An undefined metric is None; an undefined curve or list of bins is empty. `LabeledScores` counts scores one by one, in
constant memory.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_VALUES = 10_000
"""Maximum number of different scores to count for the ROC curve and its area."""
BIT_COUNTS = (24, 20, 16, 14, 12, 11, 10, 9, 8, 6, 4)
"""Precisions in significant bits, from high to low.

If there are more than `MAX_VALUES` different scores, the scores for the ROC curve are rounded down to the first of
these precisions that leaves at most `MAX_VALUES` different scores. 4 bits leave more only if the scores span more than
a hundred orders of magnitude.
"""


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
        """The share of responses whose score agrees with the label (accuracy)."""
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
        right: share (not number) of the rows whose response is right; None without rows.
    """

    low: float
    high: float
    rows: int
    mean: float | None
    right: float | None


class LabeledScores:
    """Counts scores of responses together with the labels of the responses.

    Args:
        threshold: minimum score; a response with at least this score counts as scored right.
        bins: number of calibration bins, of equal width over [0, 1].
    """

    def __init__(self, threshold: float, bins: int) -> None:
        self._threshold = threshold
        # Not index * (1 / bins): 3 * 0.1 is slightly more than 0.3, so a score of 0.3 would be in the bin below.
        self._edges = [index / bins for index in range(bins + 1)]
        self._confusion = {(scored_right, right): 0 for scored_right in (True, False) for right in (True, False)}
        self._bin_counts = [[0, 0] for _ in range(bins)]
        """Numbers of wrong and of right responses of each bin."""
        self._sums = [0.0] * bins
        """Sum of the scores of each bin."""
        self._squared_error = 0.0
        self._are_probabilities = True
        self._counts: dict[float, list[int]] = {}
        """Numbers of wrong and of right responses by score, after `_round_down`."""
        self._bits: int | None = None
        """Number of significant bits of the counted scores; None for exact scores."""

    def add(self, value: float, is_right: bool) -> None:
        """Count a score.

        Args:
            value: the score; finite.
            is_right: whether the response is right according to its label.
        """
        self._confusion[value >= self._threshold, is_right] += 1
        if 0 <= value <= 1:
            index = min(bisect_right(self._edges, value), len(self._sums)) - 1
            self._bin_counts[index][is_right] += 1
            self._sums[index] += value
            self._squared_error += (value - is_right) ** 2
        else:
            self._are_probabilities = False
        self._counts.setdefault(self._round_down(value), [0, 0])[is_right] += 1
        if len(self._counts) > MAX_VALUES:
            self._reduce_bits()

    def _round_down(self, value: float) -> float:
        """Round a score down to `_bits` significant bits; return it unchanged if `_bits` is None.

        Rounding down to many bits and then to fewer bits gives the same value as rounding down to fewer bits directly.
        This does not hold for rounding to the nearest value.
        """
        if self._bits is None:
            return value
        mantissa, exponent = math.frexp(value)
        return math.ldexp(math.floor(math.ldexp(mantissa, self._bits)), exponent - self._bits)

    def _reduce_bits(self) -> None:
        """Round the counted scores down to fewer bits, until at most `MAX_VALUES` different ones are left."""
        counts = self._counts
        for bits in BIT_COUNTS if self._bits is None else BIT_COUNTS[BIT_COUNTS.index(self._bits) + 1 :]:
            self._bits, self._counts = bits, {}
            for value, (wrong, right) in counts.items():
                count = self._counts.setdefault(self._round_down(value), [0, 0])
                count[0], count[1] = count[0] + wrong, count[1] + right
            if len(self._counts) <= MAX_VALUES:
                return

    def confusion(self) -> Confusion:
        """Count responses by label and by whether their score is at least the threshold."""
        pairs = (True, True), (True, False), (False, False), (False, True)
        return Confusion(*(self._confusion[pair] for pair in pairs))

    def brier(self) -> float | None:
        """Return the mean squared difference of score and label (Brier, 1950).

        None if there are no scores, or if a score is outside [0, 1].
        """
        rows = sum(self._confusion.values())
        return self._squared_error / rows if rows and self._are_probabilities else None

    def bins(self) -> list[Bin]:
        """Return the calibration bins; empty if there are no scores, or if a score is outside [0, 1]."""
        if not self._are_probabilities or not self._counts:
            return []
        bins = []
        for low, high, (wrong, right), total in zip(
            self._edges, self._edges[1:], self._bin_counts, self._sums, strict=False
        ):
            rows = wrong + right
            bins.append(Bin(low, high, rows, _share(total, rows), _share(right, rows)))
        return bins

    def _counts_by_score(self) -> NDArray[np.int64]:
        """Return the numbers of wrong and right responses for each score, highest score first.

        Empty if all responses are wrong, or all are right.
        """
        counts = np.array([self._counts[value] for value in sorted(self._counts, reverse=True)], dtype=np.int64)
        return counts if counts.size and counts.sum(axis=0).all() else np.zeros((0, 2), dtype=np.int64)

    def roc(self) -> list[tuple[float, float]]:
        """Return the ROC curve from (0, 0) to (1, 1), with one point for each different score.

        Returns:
            The points (false positive rate, true positive rate); empty if there are no right or no wrong responses.
        """
        counts = self._counts_by_score()
        if not len(counts):
            return []
        rates = np.cumsum(counts, axis=0) / counts.sum(axis=0)
        return [(0.0, 0.0), *((float(false_rate), float(true_rate)) for false_rate, true_rate in rates)]

    def auc(self) -> float | None:
        """Return the area under the ROC curve; None if there are no right or no wrong responses.

        The area is the share of pairs of a right and a wrong response in which the right response has the higher score,
        where a tie counts as half a pair: the Mann-Whitney statistic (1947) divided by the number of pairs.
        """
        counts = self._counts_by_score()
        if not len(counts):
            return None
        wrong, right = counts.T
        right_above = np.cumsum(right) - right / 2
        return float((wrong * right_above).sum() / (wrong.sum() * right.sum()))

    def summary(self) -> dict[str, Any]:
        """Return all metrics as a dict of JSON types.

        `right` is the number of right responses. `bits` is the number of significant bits of the scores in `roc` and
        `auc`; None for exact scores.
        """
        counts, bins = self.confusion(), self.bins()
        return {
            "rows": sum(counts),
            "right": counts.true_positive + counts.false_negative,
            "agreement": counts.agreement,
            "confusion": counts._asdict(),
            "precision": counts.precision,
            "recall": counts.recall,
            "auc": self.auc(),
            "brier": self.brier(),
            "calibration_error": calibration_error(bins),
            "bins": [one._asdict() for one in bins],
            "roc": self.roc(),
            "bits": self._bits,
        }


def calibration_error(bins: list[Bin]) -> float | None:
    """Return the expected calibration error: the mean of |mean score - share right| over bins, weighted by rows.

    See Guo et al., On Calibration of Modern Neural Networks (2017), equation 3. None without rows.
    """
    rows = sum(one.rows for one in bins)
    gaps = (one.rows * abs(one.mean - one.right) for one in bins if one.mean is not None and one.right is not None)
    return sum(gaps) / rows if rows else None


def mcnemar(first_alone: int, second_alone: int) -> float | None:
    """Return the exact two-sided p-value of McNemar's test (1947) for two ways to score the same rows.

    The null hypothesis is that both ways agree with the labels equally often.

    Args:
        first_alone: number of rows where only the first score agrees with the label.
        second_alone: number of rows where only the second score agrees with the label.

    Returns:
        The binomial probability of a split at least this uneven; None if both numbers are 0.
    """
    pairs = first_alone + second_alone
    if not pairs:
        return None
    tail_count = sum(math.comb(pairs, count) for count in range(min(first_alone, second_alone) + 1))
    return min(1.0, 2 * tail_count / 2**pairs)


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None
