"""Metrics of an evaluation against scikit-learn's and SciPy's, over seeded cases.

Both take a second to import: the tests that need them do, not every process that collects tests.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rewardstack_cli.evaluation import classification_metrics
from rewardstack_cli.evaluation.classification_metrics import BIT_COUNTS, LabeledScores, calibration_error, mcnemar
from tests.support.table import Table

Values = NDArray[np.float64]
Labels = NDArray[np.bool_]
STEPS = 24
"""Scores are odd multiples of 1 / 48: there are ties, and none lies on the edge of a bin, which scikit-learn counts for
the bin below."""
CASES = [
    # seed, scores, share of right responses, threshold, bins, highest score
    (0, 2, 0.5, 0.5, 10, 1.0),
    (1, 7, 0.3, 0.5, 10, 1.0),
    (2, 40, 0.5, 0.5, 10, 1.0),
    (3, 40, 0.9, 0.2, 7, 1.0),
    (4, 500, 0.5, 0.8, 15, 1.0),
    (5, 500, 0.05, 0.5, 1, 1.0),
    (6, 60, 0.4, 0.5, 100, 1.0),
    (7, 60, 0.4, 0.5, 10, 0.4),
    (8, 3000, 0.6, 13 / 48, 10, 1.0),
]


def drawn(seed: int, count: int, share: float, highest: float) -> tuple[Values, Labels]:
    """Scores that tell something of labels, of which both classes are there."""
    random = np.random.default_rng(seed)
    labels = random.random(count) < share
    labels[:2] = True, False
    steps = np.clip(random.integers(0, STEPS, count) + 4 * labels, 0, STEPS * highest - 1)
    values: Values = (steps.astype(np.int64) + 0.5) / STEPS
    return values, labels


def counted(values: Values, labels: Labels, threshold: float = 0.5, bins: int = 10) -> LabeledScores:
    """These scores, counted one by one."""
    scores = LabeledScores(threshold, bins)
    for value, label in zip(values.tolist(), labels.tolist(), strict=True):
        scores.add(value, label)
    return scores


def defined(value: float) -> Any:
    """What a figure has to be where scikit-learn says `value`: None for NaN."""
    return None if math.isnan(value) else pytest.approx(value, abs=1e-12)


@pytest.fixture(scope="module")
def metrics() -> Any:
    """scikit-learn's figures; importing them takes a second, which is not that of a test."""
    from sklearn import metrics  # type: ignore[import-untyped]

    return metrics


@pytest.mark.parametrize(("seed", "count", "share", "threshold", "_bins", "highest"), CASES)
def test_confusion(
    seed: int, count: int, share: float, threshold: float, _bins: int, highest: float, metrics: Any
) -> None:
    """Counts, agreement, precision and recall at a threshold are scikit-learn's, None where it has NaN."""
    values, labels = drawn(seed, count, share, highest)
    taken, found = values >= threshold, counted(values, labels, threshold).confusion()
    counts = metrics.confusion_matrix(labels, taken, labels=[False, True]).ravel().tolist()
    assert [found.true_negative, found.false_positive, found.false_negative, found.true_positive] == counts
    assert found.agreement == defined(metrics.accuracy_score(labels, taken))
    assert found.precision == defined(metrics.precision_score(labels, taken, zero_division=np.nan))
    assert found.recall == defined(metrics.recall_score(labels, taken, zero_division=np.nan))


@pytest.mark.parametrize(("seed", "count", "share", "_threshold", "_bins", "highest"), CASES)
def test_roc(seed: int, count: int, share: float, _threshold: float, _bins: int, highest: float, metrics: Any) -> None:
    """The curve has scikit-learn's points, one a score, and its area is the same, ties and all."""
    values, labels = drawn(seed, count, share, highest)
    across, up, _ = metrics.roc_curve(labels, values, drop_intermediate=False)
    found = counted(values, labels)
    assert np.allclose(found.roc(), np.stack([across, up], axis=1), rtol=0, atol=1e-12)
    assert found.auc() == defined(metrics.roc_auc_score(labels, values))


@pytest.mark.parametrize(("seed", "count", "share", "_threshold", "bins", "highest"), CASES)
def test_calibration(
    seed: int, count: int, share: float, _threshold: float, bins: int, highest: float, metrics: Any
) -> None:
    """The Brier score is scikit-learn's; so is each bin, and the error is theirs, weighted by the rows in them."""
    from sklearn.calibration import calibration_curve  # type: ignore[import-untyped]

    values, labels = drawn(seed, count, share, highest)
    right, mean = calibration_curve(labels, values, n_bins=bins)
    rows, _ = np.histogram(values, np.linspace(0, 1, bins + 1))
    scores = counted(values, labels, bins=bins)
    found = scores.bins()
    assert scores.brier() == defined(metrics.brier_score_loss(labels, values))
    assert [one.rows for one in found] == rows.tolist()
    assert [one.mean for one in found if one.rows] == [defined(value) for value in mean]
    assert [one.right for one in found if one.rows] == [defined(value) for value in right]
    error = np.average(np.abs(mean - right), weights=rows[rows > 0])
    assert calibration_error(found) == defined(error)


def test_bins_without_scores() -> None:
    """An empty bin has neither a mean nor a share, and weighs nothing."""
    values, labels = np.array([0.05, 0.05, 0.95]), np.array([False, True, True])
    found = counted(values, labels, bins=4).bins()
    assert [(one.rows, one.mean, one.right) for one in found[1:3]] == [(0, None, None)] * 2
    assert calibration_error(found) == pytest.approx((2 * 0.45 + 0.05) / 3)


def test_edges_of_bins() -> None:
    """A score on an edge is of the bin that begins there, and 1 of the last one."""
    values = np.linspace(0, 1, 11)
    found = counted(values, np.ones(11, np.bool_)).bins()
    assert [one.rows for one in found] == [1] * 9 + [2]


@pytest.mark.parametrize("label", [True, False])
def test_one_class(label: bool) -> None:
    """With responses that are all right, or all wrong, there is no curve and no area; the other figures stand."""
    values, labels = np.array([0.25, 0.25, 0.75]), np.full(3, label)
    found = counted(values, labels).summary()
    assert (found["auc"], found["roc"]) == (None, [])
    assert found["agreement"] == pytest.approx(1 / 3 if label else 2 / 3)
    assert found["recall"] == (pytest.approx(1 / 3) if label else None)
    assert found["brier"] == pytest.approx(np.mean((values - label) ** 2))
    assert found["calibration_error"] is not None


@pytest.mark.parametrize("outside", [-0.1, 1.1, 7.0])
def test_scores_that_are_no_probabilities(outside: float) -> None:
    """With a score outside [0, 1] neither the Brier score nor calibration is defined; what asks for order alone is."""
    found = counted(np.array([outside, 0.5]), np.array([outside > 0.5, outside < 0.5])).summary()
    assert (found["brier"], found["calibration_error"], found["bins"]) == (None, None, [])
    assert found["auc"] == 1


def test_no_scores() -> None:
    """Of no scores no figure is defined, and none is 0."""
    found = counted(np.array([]), np.array([], np.bool_)).summary()
    names = ("agreement", "precision", "recall", "auc", "brier", "calibration_error")
    assert [found[name] for name in names] == [None] * len(names)
    assert (found["rows"], found["bins"], found["roc"]) == (0, [], [])


def test_mcnemar(table: Table) -> None:
    """The p of two settings is SciPy's exact two-sided one of a fair coin."""
    from scipy.stats import binomtest  # type: ignore[import-untyped]

    small = ((one, other) for one in range(7) for other in range(7) if one + other)
    for first, second in (*small, (40, 60), (600, 700), (3000, 3000)):
        with table.case(f"{first} {second}"):
            expected = binomtest(first, first + second).pvalue
            assert mcnemar(first, second) == pytest.approx(expected, rel=1e-9)


def test_mcnemar_without_a_difference() -> None:
    """Where the settings differ in no row there is nothing to test."""
    assert mcnemar(0, 0) is None


@pytest.mark.parametrize("tenth", range(10))
def test_tenths(tenth: int) -> None:
    """A score as judges write it, 0.3 or 0.7, is of the bin that begins there."""
    found = counted(np.array([float(f"0.{tenth}")]), np.array([True])).bins()
    assert [one.rows for one in found].index(1) == tenth


def test_many_different_scores(monkeypatch: pytest.MonkeyPatch, metrics: Any) -> None:
    """Of more scores than are counted one by one, the curve is that of cut ones, in whichever order they come; all
    other figures are exact."""
    monkeypatch.setattr(classification_metrics, "MAX_VALUES", 500)
    random = np.random.default_rng(1)
    labels = random.random(3000) < 0.5
    values = np.clip(random.normal(0.4 + 0.2 * labels, 0.2), 0, 1)
    found, backwards = counted(values, labels).summary(), counted(values[::-1], labels[::-1]).summary()
    assert found["bits"] in BIT_COUNTS
    assert len(found["roc"]) <= 501
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(labels, values), abs=2e-3)
    assert found["agreement"] == defined(metrics.accuracy_score(labels, values >= 0.5))
    assert found["brier"] == pytest.approx(metrics.brier_score_loss(labels, values), abs=1e-9)
    assert [backwards[name] for name in ("bits", "auc", "roc")] == [found[name] for name in ("bits", "auc", "roc")]
