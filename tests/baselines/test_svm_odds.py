"""Margins and what turns them into log-odds."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.calibration import CalibratedClassifierCV
from sklearn.svm import SVC

from clml.baselines._svm_odds import _draw_folds, fit_sigmoid, fit_svm_odds


def test_machine_by_hand():
    # The widest margin lies half way between -1 and 3; with a C this large nothing
    # may be inside.
    rows, y = np.array([[-1.0], [-2], [3], [5]]), np.array([0, 0, 1, 1])
    model = fit_svm_odds(rows, y, 1e6, np.random.RandomState(0))
    np.testing.assert_allclose(model.coef, [0.5])
    assert model.intercept == pytest.approx(-0.5)


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_sigmoid_by_hand(shift):
    # At -1 a quarter of the rows is present, at 1 three quarters of them. Platt's
    # targets, 5/6 and 1/6 for four rows each, draw that to 1/3 and 2/3.
    scores = np.repeat([-1.0, 1.0], 4) + shift
    y = np.array([0, 0, 0, 1, 1, 1, 1, 0])
    slope, offset = fit_sigmoid(scores, y)
    assert slope == pytest.approx(np.log(2), rel=1e-6)
    assert offset + slope * shift == pytest.approx(0, abs=1e-6)


def test_scores_that_are_worse_than_chance_are_turned():
    slope, _ = fit_sigmoid(np.array([2.0, 1, -1, -2]), np.array([0, 0, 1, 1]))
    assert slope < 0


def test_scores_that_say_nothing():
    slope, offset = fit_sigmoid(np.full(10, 0.1), np.arange(10) < 2)
    assert slope == 0
    # Targets 3/4 of two rows and 1/10 of eight.
    share = (2 * 0.75 + 8 * 0.1) / 10
    assert offset == pytest.approx(np.log(share / (1 - share)))


@pytest.mark.parametrize("seed", range(3))
def test_sigmoid_is_at_a_minimum(seed):
    generator = np.random.default_rng(seed)
    scores = generator.normal(3, 100, size=60)
    y = (scores + generator.normal(size=60) * 80 > 20).astype(np.uint8)
    n1, n0 = y.sum(), (1 - y).sum()
    target = np.where(y, (n1 + 1) / (n1 + 2), 1 / (n0 + 2))

    def loss(point):
        z = point[0] * scores / 100 + point[1]
        return (np.logaddexp(0, z) - target * z).mean()

    slope, offset = fit_sigmoid(scores, y)
    gradient = approx_fprime([slope * 100, offset], loss, 1e-6)
    np.testing.assert_allclose(gradient, 0, atol=1e-5)


def test_as_scikit_learn_on_the_same_folds():
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(80, 4))
    y = (rows[:, 0] + generator.normal(size=80) > 0.5).astype(np.uint8)
    model = fit_svm_odds(rows, y, 1.0, np.random.RandomState(5))
    fold = _draw_folds(y, np.random.RandomState(5))
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(5)]
    oracle = CalibratedClassifierCV(
        SVC(kernel="linear"), method="sigmoid", cv=splits, ensemble=False
    ).fit(rows, y)
    z = model.slope * (rows @ model.coef + model.intercept) + model.offset
    np.testing.assert_allclose(
        1 / (1 + np.exp(-z)), oracle.predict_proba(rows)[:, 1], atol=1e-4
    )


@pytest.mark.parametrize("n", [2, 3, 12, 101])
def test_folds_are_even_in_both_classes(n):
    y = (np.arange(n) % 4 == 0).astype(np.uint8)
    fold = _draw_folds(y, np.random.RandomState(0))
    n_folds = min(n, 5)
    for rows in (np.arange(n), np.flatnonzero(y), np.flatnonzero(1 - y)):
        counts = np.bincount(fold[rows], minlength=n_folds)
        assert len(counts) == n_folds
        assert np.ptp(counts) <= 1


def test_one_row_of_a_class():
    """In the fold that leaves it out there is nothing to learn from."""
    rows, y = np.array([[0.0], [1], [2], [9]]), np.array([0, 0, 0, 1])
    model = fit_svm_odds(rows, y, 1.0, np.random.RandomState(0))
    assert np.isfinite([*model.coef, model.intercept, model.slope, model.offset]).all()
