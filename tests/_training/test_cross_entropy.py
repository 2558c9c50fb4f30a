import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import f1_score, log_loss

from clml._training.cross_entropy import (
    best_f1_threshold,
    cross_entropy,
    fit_cross_entropy,
)
from clml.datasets import make_bayes_multilabel


def test_cross_entropy_by_hand():
    # ln 2 for a logit of 0; ln(1 + e^-3) for 3 at a relevant label.
    logits, labels = np.array([[0.0, 3.0]]), np.array([[0, 1]])
    expected = (np.log(2) + np.log1p(np.exp(-3))) / 2
    assert_allclose(cross_entropy(logits, labels), expected)
    assert cross_entropy(np.array([[800.0]]), np.array([[1]])) == 0


def test_cross_entropy_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(40, 1)), rng.integers(2, size=(40, 1))
    expected = log_loss(labels.ravel(), 1 / (1 + np.exp(-logits.ravel())))
    assert_allclose(cross_entropy(logits, labels), expected)


def test_learns_and_keeps_the_best_epoch():
    data = make_bayes_multilabel(1500, noise=0.2, random_state=0)
    X = data.truth.sample(1000, 1)[0]
    network = fit_cross_entropy(data.X, data.Y, max_epochs=60)
    found = data.truth.expected_losses(X, network.decision_function(X))
    assert (found < 1.3 * data.truth.bayes_losses(X)).all()
    assert network.best_epoch == network.curve[:, 1].argmin()
    assert len(network.curve) <= 60


def test_stops_early_and_repeats():
    data = make_bayes_multilabel(100, noise=1.0, random_state=0)
    X = data.X.copy()
    one, two = (fit_cross_entropy(data.X, data.Y, patience=3) for _ in range(2))
    assert len(one.curve) == one.best_epoch + 4 < 300
    assert_array_equal(one.theta, two.theta)
    assert_array_equal(data.X, X)


@pytest.mark.parametrize("seed", range(5))
def test_the_threshold_for_micro_f1_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(15, 3)).round(1)  # with ties
    Y = (logits + rng.normal(size=logits.shape) > 0.5).astype(int)

    def f1(threshold):
        return f1_score(Y, logits > threshold, average="micro")

    every = np.concatenate([np.unique(logits) - 0.05, [logits.max() + 1]])
    best = best_f1_threshold(logits, Y)
    assert np.isclose(f1(best), max(f1(threshold) for threshold in every))


def test_the_threshold_where_no_label_is_positive():
    assert np.isfinite(best_f1_threshold(np.zeros((3, 2)), np.zeros((3, 2))))
