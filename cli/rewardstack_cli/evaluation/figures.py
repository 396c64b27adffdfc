"""Figures of scores against labels: pure functions over arrays. What is not defined is None, never 0 or NaN.

`values` are scores, of shape (n,); `labels` whether a response is right, of shape (n,), bool.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Labels = NDArray[np.bool_]


class Confusion(NamedTuple):
    """How often responses that are right or wrong were taken for right or wrong.

    Args:
        true_positive: right ones taken for right.
        false_positive: wrong ones taken for right.
        true_negative: wrong ones taken for wrong.
        false_negative: right ones taken for wrong.
    """

    true_positive: int
    false_positive: int
    true_negative: int
    false_negative: int

    @property
    def agreement(self) -> float | None:
        """The share of responses taken for what they are."""
        return _share(self.true_positive + self.true_negative, sum(self))

    @property
    def precision(self) -> float | None:
        """Of what was taken for right, the share that is."""
        return _share(self.true_positive, self.true_positive + self.false_positive)

    @property
    def recall(self) -> float | None:
        """Of what is right, the share taken for it."""
        return _share(self.true_positive, self.true_positive + self.false_negative)


class Bin(NamedTuple):
    """Scores of one interval: [low, high), the last one with its end.

    Args:
        low: where it begins.
        high: where it ends.
        rows: scores in it.
        mean: theirs; None where there are none.
        right: the share of them whose response is right; None where there are none.
    """

    low: float
    high: float
    rows: int
    mean: float | None
    right: float | None


def confusion(values: Values, labels: Labels, threshold: float) -> Confusion:
    """The counts where a score of `threshold` or more takes a response for right."""
    taken = values >= threshold
    pairs = (taken & labels, taken & ~labels, ~taken & ~labels, ~taken & labels)
    return Confusion(*(int(np.count_nonzero(pair)) for pair in pairs))


def auc(values: Values, labels: Labels) -> float | None:
    """The area under the ROC curve: how often a right response scores above a wrong one, ties counted by half.

    That is the statistic of Mann and Whitney (1947), by ranks, over the number of pairs. None with one class alone.
    """
    right = int(np.count_nonzero(labels))
    wrong = len(labels) - right
    if not right or not wrong:
        return None
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return float((ranks[labels].sum() - right * (right + 1) / 2) / (right * wrong))


def roc(values: Values, labels: Labels) -> list[tuple[float, float]]:
    """The points (false positive rate, true positive rate) of the ROC curve, from (0, 0) to (1, 1), one a score.

    Returns:
        The points; empty with one class alone.
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
    """Whether there are scores and all of them are within [0, 1]; elsewhere neither error below is defined."""
    return bool(len(values) and values.min() >= 0 and values.max() <= 1)


def brier(values: Values, labels: Labels) -> float | None:
    """The mean squared distance of score and label (Brier, 1950); None unless all scores are within [0, 1]."""
    return float(np.mean((values - labels) ** 2)) if are_probabilities(values) else None


def bins(values: Values, labels: Labels, count: int) -> list[Bin]:
    """The scores in `count` bins of equal width over [0, 1]; empty unless all of them are within it."""
    if not are_probabilities(values):
        return []
    edges = np.arange(count + 1) / count  # whose 0.3 is what a judge says, which that of linspace is not
    places = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, count - 1)
    found = []
    for at in range(count):
        here = places == at
        rows = int(np.count_nonzero(here))
        mean = float(values[here].mean()) if rows else None
        found.append(Bin(float(edges[at]), float(edges[at + 1]), rows, mean, _share(int(labels[here].sum()), rows)))
    return found


def calibration_error(found: list[Bin]) -> float | None:
    """The expected calibration error: the bins' distance of mean score and share of right, weighted by their rows.

    Guo et al., On Calibration of Modern Neural Networks (2017), equation 3. None without bins.
    """
    rows = sum(one.rows for one in found)
    gaps = (one.rows * abs(one.mean - one.right) for one in found if one.mean is not None and one.right is not None)
    return sum(gaps) / rows if rows else None


def mcnemar(first_alone: int, second_alone: int) -> float | None:
    """The exact two-sided p of McNemar's test (1947): are two settings right equally often?

    Args:
        first_alone: rows that only the first setting takes for what they are.
        second_alone: rows that only the second does.

    Returns:
        The binomial probability of a split at least so uneven; None where the settings differ in no row.
    """
    pairs = first_alone + second_alone
    if not pairs:
        return None
    tail = sum(math.comb(pairs, count) for count in range(min(first_alone, second_alone) + 1))
    return min(1.0, 2 * tail / 2**pairs)


def summary(values: Values, labels: Labels, threshold: float, count: int) -> dict[str, Any]:
    """All figures of one set of scores, for JSON.

    Args:
        values: scores.
        labels: of the same responses.
        threshold: from which a score takes a response for right.
        count: of bins.
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
