"""Figures of scores against labels, as pure functions over arrays. Undefined figures are None, never 0 or NaN.

`values` are the scores, of shape (n,); `labels` say whether each response is right, of shape (n,), bool.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Labels = NDArray[np.bool_]


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


def confusion(values: Values, labels: Labels, threshold: float) -> Confusion:
    """Count responses by label and by whether their score is at least `threshold`."""
    taken = values >= threshold
    pairs = (taken & labels, taken & ~labels, ~taken & ~labels, ~taken & labels)
    return Confusion(*(int(np.count_nonzero(pair)) for pair in pairs))


def auc(values: Values, labels: Labels) -> float | None:
    """Return the area under the ROC curve: how often a right response outscores a wrong one; a tie counts as half.

    It is computed from ranks: the Mann-Whitney statistic (1947) divided by the number of pairs. None if there are no
    right or no wrong responses.
    """
    right = int(np.count_nonzero(labels))
    wrong = len(labels) - right
    if not right or not wrong:
        return None
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return float((ranks[labels].sum() - right * (right + 1) / 2) / (right * wrong))


def roc(values: Values, labels: Labels) -> list[tuple[float, float]]:
    """Return the ROC curve from (0, 0) to (1, 1), with one point for each distinct score.

    Returns:
        The points (false positive rate, true positive rate); empty if there are no right or no wrong responses.
    """
    right = int(np.count_nonzero(labels))
    wrong = len(labels) - right
    if not right or not wrong:
        return []
    order = np.argsort(-values, kind="stable")
    last = np.append(np.flatnonzero(np.diff(values[order])), len(values) - 1)
    hits, alarms = np.cumsum(labels[order])[last], np.cumsum(~labels[order])[last]
    return [(0.0, 0.0), *((float(x / wrong), float(y / right)) for x, y in zip(alarms, hits, strict=True))]


def are_probabilities(values: Values) -> bool:
    """Return whether there are scores and all are within [0, 1]; else Brier score and calibration are undefined."""
    return bool(len(values) and values.min() >= 0 and values.max() <= 1)


def brier(values: Values, labels: Labels) -> float | None:
    """Return the mean squared difference of score and label (Brier, 1950); None unless all scores are in [0, 1]."""
    return float(np.mean((values - labels) ** 2)) if are_probabilities(values) else None


def bins(values: Values, labels: Labels, count: int) -> list[Bin]:
    """Sort the scores into `count` bins of equal width over [0, 1]; empty unless all scores are in [0, 1]."""
    if not are_probabilities(values):
        return []
    edges = np.arange(count + 1) / count  # 3 / 10 is exactly the float 0.3, as a judge writes it; linspace differs
    places = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, count - 1)
    found = []
    for at in range(count):
        here = places == at
        rows = int(np.count_nonzero(here))
        mean = float(values[here].mean()) if rows else None
        found.append(Bin(float(edges[at]), float(edges[at + 1]), rows, mean, _share(int(labels[here].sum()), rows)))
    return found


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


def summary(values: Values, labels: Labels, threshold: float, count: int) -> dict[str, Any]:
    """Return all figures of one set of scores, as a JSON object.

    Args:
        values: the scores.
        labels: the labels of the same responses.
        threshold: score from which a response counts as right.
        count: number of calibration bins.
    """
    counts, found = confusion(values, labels, threshold), bins(values, labels, count)
    return {
        "rows": len(values),
        "right": int(np.count_nonzero(labels)),
        "agreement": counts.agreement,
        "confusion": counts._asdict(),
        "precision": counts.precision,
        "recall": counts.recall,
        "auc": auc(values, labels),
        "brier": brier(values, labels),
        "calibration_error": calibration_error(found),
        "bins": [one._asdict() for one in found],
        "roc": roc(values, labels),
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
