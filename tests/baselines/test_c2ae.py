"""C2AE as an estimator."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.datasets import make_multilabel_classification

from clml.baselines._c2ae import C2AEClassifier
from clml.losses import loss_values

QUICK = {"n_units": 32, "max_epochs": 40, "learning_rate": 1e-3, "random_state": 0}
# Small batches, so that an epoch is more than a step.
STEPS = {"n_units": 64, "max_epochs": 60, "batch_size": 60, "random_state": 0}


def tensor(values):
    return torch.tensor(np.asarray(values, dtype=np.float64))


@pytest.fixture(scope="module")
def data():
    """300 rows to train on and 300 to test on, 5 labels, scaled."""
    X, Y = make_multilabel_classification(
        n_samples=600, n_features=20, n_classes=5, n_labels=2, random_state=3
    )
    X = (X - X[:300].mean(axis=0)) / X[:300].std(axis=0)
    return X[:300], X[300:], Y[:300], Y[300:]


@pytest.fixture(scope="module")
def fitted(data):
    X, _, Y, _ = data
    return C2AEClassifier(**STEPS).fit(X, Y)


def test_learns(data, fitted):
    _, X_test, Y_train, Y_test = data
    frequencies = np.tile(Y_train.mean(axis=0), (len(Y_test), 1))
    base = loss_values(Y_test, frequencies, ("lrap",))[0]
    lrap = loss_values(Y_test, fitted.decision_function(X_test), ("lrap",))[0]
    assert lrap < base - 0.1


def test_training_is_what_the_history_says(fitted):
    history = fitted.history_
    assert fitted.n_epochs_ == 60  # no patience
    assert history["train_loss"][-1] < 0.5 * history["train_loss"][0]
    criterion = history["validation_micro_f1_and_macro_f1"]
    # Nearer than the loop's tolerance is equal, and the earlier one stays.
    assert criterion[fitted.best_epoch_ - 1] <= criterion.min() + 1e-5


def test_latent_labels_become_orthonormal(data):
    X, _, Y, _ = data
    c2ae = C2AEClassifier(validation_fraction=0, **STEPS).fit(X, Y)
    weights = {k: tensor(w) for k, w in c2ae.weights_.items()}
    for z in (
        c2ae.network_._latent_labels(weights, tensor(Y)),
        c2ae.network_._latent_features(weights, tensor(X)),
    ):
        # In a batch, 60 of 300 rows; 0 would be 4 away from the identity.
        assert ((z.T @ z * 60 / 300 - torch.eye(4)) ** 2).sum() < 0.5


def test_weights_are_plain_arrays_and_travel(data, fitted):
    X = data[1]
    assert all(type(w) is np.ndarray for w in fitted.weights_.values())
    assert {w.dtype for w in fitted.weights_.values()} == {np.dtype(np.float32)}
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(
        copy.decision_function(X), fitted.decision_function(X)
    )


def test_same_seed_same_weights(small_data):
    X, Y = small_data
    a, b = (C2AEClassifier(**QUICK).fit(X, Y).weights_ for _ in range(2))
    other = C2AEClassifier(**{**QUICK, "random_state": 1}).fit(X, Y).weights_
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])
    assert any((a[name] != other[name]).any() for name in a)


def test_sparse_equals_dense(small_data):
    X, Y = small_data
    X = np.where(X > 4, X, 0.0)
    X[:, 2] = 0
    dense = C2AEClassifier(**QUICK).fit(X, Y)
    sparse = C2AEClassifier(**QUICK).fit(sp.csr_array(X), sp.csr_array(Y))
    np.testing.assert_array_equal(
        sparse.decision_function(sp.csr_array(X)), dense.decision_function(X)
    )


def test_batches_are_topped_up_and_the_rate_decays():
    # Fifty epochs, as the authors have: the rate falls after each.
    c2ae = C2AEClassifier(rate_decay=0.5, batch_size=70, max_epochs=50)
    plan = c2ae._plan(100)
    assert plan.equal_batches
    assert plan.batch_size == 70
    rates = [plan.rate(epochs) for epochs in (0, 0.9, 1, 1.5, 3)]
    assert rates == [1, 1, 0.5, 0.5, 0.125]
    w = torch.zeros(1, requires_grad=True)
    assert [g["lr"] for g in plan.optimiser({"w": w}).param_groups] == [1e-4]
    # Over any number of epochs it falls as far, fifty times.
    longer = C2AEClassifier(rate_decay=0.5, max_epochs=200)._plan(100)
    assert [longer.rate(epochs) for epochs in (0, 3.9, 4, 199)] == [1, 1, 0.5, 0.5**49]


@pytest.mark.parametrize(
    ("n_rows", "n_epochs"),
    [(332, 1000), (500, 1000), (501, 500), (1353, 334), (2500, 200), (100_000, 200)],
)
def test_a_thousand_steps_and_two_hundred_epochs_at_least(n_rows, n_epochs):
    assert C2AEClassifier()._n_epochs(n_rows) == n_epochs
    assert C2AEClassifier(max_epochs=7)._n_epochs(n_rows) == 7


@pytest.mark.parametrize("one_dimensional", [False, True])
def test_one_label_is_learnt(one_dimensional):
    random = np.random.default_rng(0)
    X = random.normal(size=(100, 3))
    y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
    target = y if one_dimensional else y[:, None]
    c2ae = C2AEClassifier(**QUICK).fit(X, target)
    assert c2ae.predict(X).shape == target.shape
    assert (c2ae.predict(X) == target).mean() > 0.9


def test_rows_with_all_labels_or_none():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    Y = np.zeros((60, 3), dtype=int)
    Y[X[:, 0] > 0] = 1
    c2ae = C2AEClassifier(**QUICK).fit(X, Y)
    assert np.isfinite(c2ae.decision_function(X)).all()
    assert np.isfinite(c2ae.history_["train_loss"]).all()


@pytest.mark.filterwarnings("ignore:.*labels are constant in the training rows")
def test_constant_labels_constant_columns_and_equal_rows():
    X = np.tile([[1.0, 0.0, 2.0], [1.0, 0.0, -2.0]], (20, 1))
    Y = np.tile([[1, 0, 0, 1], [0, 1, 0, 1]], (20, 1))
    c2ae = C2AEClassifier(batch_size=8, **QUICK).fit(X, Y)
    scores = c2ae.decision_function(X)
    np.testing.assert_array_equal(scores[:, 0] > scores[:, 1], Y[:, 0] > Y[:, 1])
    assert (scores[:, 3] > scores[:, 2]).all()


def test_one_row():
    c2ae = C2AEClassifier(validation_fraction=0, **QUICK)
    with pytest.warns(UserWarning, match="2 of 2 labels are constant"):
        c2ae.fit([[1.0, 2.0]], np.array([[1, 0]]))
    scores = c2ae.decision_function([[1.0, 2.0]])
    assert scores[0, 0] > scores[0, 1]


def test_presets():
    c2ae = C2AEClassifier.from_preset("mirflickr", alpha=2.0)
    assert (c2ae.batch_size, c2ae.max_epochs, c2ae.alpha) == (500, 50, 2.0)
    with pytest.raises(ValueError, match=r"no preset 'nonsense'.*mirflickr"):
        C2AEClassifier.from_preset("nonsense")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("latent_ratio", 0.0),
        ("alpha", -1.0),
        ("n_units", 0),
        ("rate_decay", 0.0),
        ("rate_decay", 1.1),
        ("weight_decay", -1e-3),
    ],
)
def test_refused_parameters(name, value, small_data):
    with pytest.raises(ValueError, match=f"The '{name}' parameter"):
        C2AEClassifier(**{name: value}).fit(*small_data)


def test_refuses_missing_values(small_data):
    X, Y = small_data
    X = X.copy()
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        C2AEClassifier(**QUICK).fit(X, Y)
