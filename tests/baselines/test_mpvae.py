"""MPVAE as an estimator."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logit
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import f1_score

from clml.baselines import MPVAEClassifier
from clml.baselines._criteria import macro_f1_at_best
from clml.losses import loss_values

QUICK = {"latent_dim": 4, "n_samples": 5, "max_epochs": 15, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    X, Y = make_multilabel_classification(
        n_samples=600, n_features=20, n_classes=5, n_labels=2, random_state=3
    )
    X = (X - X[:300].mean(axis=0)) / X[:300].std(axis=0)
    return X[:300], X[300:], Y[:300], Y[300:]


@pytest.fixture(scope="module")
def fitted(data):
    return MPVAEClassifier(batch_size=60, **QUICK).fit(data[0], data[2])


def test_learns(data, fitted):
    _, X_test, Y_train, Y_test = data
    frequencies = np.tile(logit(Y_train.mean(axis=0)), (len(Y_test), 1))
    names = ("lrap", "hamming")
    base = loss_values(Y_test, frequencies, names)
    found = loss_values(Y_test, fitted.decision_function(X_test), names)
    assert (found < np.array(base) - [0.1, 0.05]).all()


def test_the_best_epoch_has_the_best_macro_f1(fitted):
    criterion = fitted.history_["validation_macro_f1"]
    assert criterion[fitted.best_epoch_ - 1] <= criterion.min() + 1e-5


def test_criterion_by_hand():
    # At 0.5 the label is predicted for none; from 0.3 on for both that have it.
    logits, Y = logit([[0.4], [0.3], [0.2], [0.05]]), np.array([[1], [1], [0], [0]])
    found = macro_f1_at_best(logits, Y.astype(np.uint8))
    assert found == {"macro_f1": 0}
    # Three of four thresholds between them are no better than all: 2 · 2 / 6.
    turned = macro_f1_at_best(-logits, Y.astype(np.uint8))
    assert turned["macro_f1"] == pytest.approx(1 - 2 / 3)


def test_criterion_is_the_best_of_27():
    random = np.random.default_rng(0)
    Y, p = random.integers(2, size=(50, 3)), random.random((50, 3))
    grid = [0.01 * i for i in range(1, 10)] + [0.05 * i for i in range(2, 20)]
    best = max(f1_score(Y, p > t, average="macro") for t in grid)
    found = macro_f1_at_best(logit(p), Y.astype(np.uint8))["macro_f1"]
    assert len(grid) == 27
    assert found == pytest.approx(1 - best)


def test_threshold_moves_decisions_alone(data, fitted):
    X = data[1]
    probability = fitted.predict_proba(X)
    moved = MPVAEClassifier(**QUICK)
    moved.__dict__.update(fitted.__dict__)
    moved.set_params(threshold=0.3)
    np.testing.assert_array_equal(moved.predict_proba(X), probability)
    np.testing.assert_array_equal(moved.predict(X), probability > 0.3)


def test_rate_falls_by_stretches():
    plan = MPVAEClassifier(rate_decay=0.5, n_stretches=4, max_epochs=8)._plan(100)
    rates = [plan.rate(e) for e in (0, 1.9, 2, 3.9, 4, 7.9)]
    assert rates == [1, 1, 0.5, 0.5, 0.25, 0.125]


def test_rank_is_the_number_of_labels_unless_given(small_data):
    one_epoch = {**QUICK, "max_epochs": 1}
    assert MPVAEClassifier(**one_epoch).fit(*small_data).network_.rank == 4
    clf = MPVAEClassifier(rank=2, **one_epoch).fit(*small_data)
    assert clf.weights_["factor"].shape == (4, 2)


def test_same_seed_same_weights(small_data):
    a, b = (MPVAEClassifier(**QUICK).fit(*small_data).weights_ for _ in range(2))
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])


def test_sparse_is_dense(small_data):
    X, Y = small_data
    X = np.where(X > 4, X, 0.0)
    dense = MPVAEClassifier(**QUICK).fit(X, Y)
    sparse = MPVAEClassifier(**QUICK).fit(sp.csr_array(X), sp.csr_array(Y))
    np.testing.assert_array_equal(
        sparse.decision_function(sp.csr_array(X)), dense.decision_function(X)
    )


@pytest.mark.parametrize("one_dimensional", [False, True])
def test_one_label(one_dimensional):
    X = np.random.default_rng(0).normal(size=(100, 3))
    y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
    target = y if one_dimensional else y[:, None]
    clf = MPVAEClassifier(**QUICK).fit(X, target)
    assert clf.predict(X).shape == target.shape
    assert (clf.predict(X) == target).mean() > 0.9


@pytest.mark.filterwarnings("ignore:.*labels are constant in the training rows")
def test_constant_labels_and_full_rows():
    X = np.tile([[1.0, 0.0, 2.0], [1.0, 0.0, -2.0]], (20, 1))
    Y = np.tile([[1, 0, 0, 1], [0, 1, 0, 1]], (20, 1))
    Y[:5], Y[5:8, :3] = 1, 0
    clf = MPVAEClassifier(**QUICK).fit(X, Y)
    scores = clf.decision_function(X)
    assert np.isfinite(scores).all()
    assert (scores[:, 3] > scores[:, 2]).all()


def test_presets():
    clf = MPVAEClassifier.from_preset("yeast")
    assert (clf.learning_rate, clf.max_epochs) == (6e-4, 800)
    assert (clf.likelihood_weight, clf.ranking_weight) == (0.1, 20.0)
    assert (clf.rate_decay, clf.n_stretches) == (0.8, 4)
    with pytest.raises(ValueError, match=r"no preset 'nonsense'.*scene"):
        MPVAEClassifier.from_preset("nonsense")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("latent_dim", 0),
        ("rank", 0),
        ("likelihood_weight", -1.0),
        ("ranking_weight", -1.0),
        ("divergence_weight", -1.0),
        ("dropout", 1.0),
        ("n_samples", 0),
        ("rate_decay", 0.0),
        ("n_stretches", 0),
        ("threshold", 1.0),
    ],
)
def test_refused_parameters(name, value, small_data):
    with pytest.raises(ValueError, match=f"The '{name}' parameter"):
        MPVAEClassifier(**{name: value}).fit(*small_data)
