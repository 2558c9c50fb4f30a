import os
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.preprocessing import StandardScaler

from clml.baselines._dela import DELAClassifier, DELANetwork, step_rate
from clml.datasets import iterative_train_test_split, load_dataset
from clml.losses import loss_values

# Schedule and optimiser


@pytest.mark.parametrize(
    ("epochs", "step", "warmup", "expected"),
    [
        (0, None, 0, 1),
        (199.9, None, 0, 1),
        (0, None, 40, 0),
        (10, None, 40, 0.25),
        (40, None, 40, 1),
        (200, None, 40, 1),
        (3.99, 4, 0, 1),
        (4, 4, 0, 0.5),
        (12.5, 4, 0, 0.125),
        (1.5, 3, 2, 0.75),
        (4.9, 3, 2, 1),
        (5, 3, 2, 0.5),
    ],
)
def test_rates(epochs, step, warmup, expected):
    assert step_rate(epochs, step, warmup) == expected
    plan = DELAClassifier(rate_step=step, warmup_epochs=warmup)._plan(100)
    assert plan.rate(epochs) == expected


def test_gates_have_a_learning_rate_of_their_own():
    clf = DELAClassifier(learning_rate=0.01, gate_rate_ratio=0.1)
    network = DELANetwork(3, 2, 4, 1.0, 0.0, 0.5, narrow=5, wide=6)
    weights = network.initial(torch.zeros(1, 2), torch.ones(1), torch.Generator())
    others, gates = clf._optimiser(weights).param_groups
    assert [id(w) for w in gates["params"]] == [
        id(weights[f"gate.{name}"]) for name in ("table", "weight", "bias")
    ]
    assert len(others["params"]) == len(weights) - 3
    assert others["lr"] == 0.01
    assert gates["lr"] == pytest.approx(0.001)
    assert others["betas"] == gates["betas"] == (0.9, 0.999)


def test_weight_decay_is_part_of_the_gradient():
    # Adam divides what decays by its size: a step of the learning rate, whereas
    # decoupled decay would take 1e-2 × 1e-4 × 4 away.
    weights = {
        "mean.bias": torch.tensor([4.0], requires_grad=True),
        "gate.bias": torch.tensor([-4.0], requires_grad=True),
    }
    optimiser = DELAClassifier(learning_rate=1e-2)._optimiser(weights)
    for w in weights.values():
        w.grad = torch.zeros_like(w)
    optimiser.step()
    assert weights["mean.bias"].item() == pytest.approx(3.99, abs=1e-5)
    assert weights["gate.bias"].item() == pytest.approx(-3.99, abs=1e-5)


# The estimator


@pytest.fixture(scope="module")
def scaled_data():
    X, Y = make_multilabel_classification(
        n_samples=300, n_features=12, n_classes=5, n_labels=2, random_state=0
    )
    return StandardScaler().fit_transform(X), Y


def quick(**parameters):
    defaults = {"latent_dim": 8, "max_epochs": 2, "random_state": 0}
    return DELAClassifier(**defaults | parameters)


def test_it_learns(scaled_data):
    X, Y = scaled_data
    train, test = slice(0, 200), slice(200, None)
    clf = DELAClassifier(max_epochs=25, random_state=0).fit(X[train], Y[train])
    frequencies = np.tile(Y[train].mean(axis=0), (100, 1))
    (by_frequency,) = loss_values(Y[test], frequencies, ("lrap",))
    (loss,) = loss_values(Y[test], clf.decision_function(X[test]), ("lrap",))
    assert loss < by_frequency - 0.1
    lrap = clf.history_["validation_lrap"]
    assert lrap[clf.best_epoch_ - 1] == pytest.approx(lrap.min(), abs=1e-5)


def test_same_seed_same_weights(scaled_data):
    X, Y = scaled_data
    a, b, other = (quick(random_state=s, dropout=0.2).fit(X, Y) for s in (0, 0, 1))
    assert a.weights_.keys() == b.weights_.keys()
    for name, w in a.weights_.items():
        assert type(w) is np.ndarray
        assert w.dtype == np.float32
        np.testing.assert_array_equal(w, b.weights_[name])
        assert (w != other.weights_[name]).any()


def test_pickled_it_predicts_the_same(scaled_data):
    X, Y = scaled_data
    clf = quick().fit(X, Y)
    copy = pickle.loads(pickle.dumps(clf))
    assert copy.network_ == clf.network_ == DELANetwork(12, 5, 8, 1.0, 0.0, 0.5)
    np.testing.assert_array_equal(copy.decision_function(X), clf.decision_function(X))


def test_parameters_reach_the_network(scaled_data):
    X, Y = scaled_data
    parameters = {"latent_dim": 3, "beta": 2, "dropout": 0.1, "gate_floor": 1}
    clf = quick(**parameters).fit(X, Y)
    assert clf.network_ == DELANetwork(12, 5, 3, 2.0, 0.1, 1.0)
    assert clone(clf).get_params() == clf.get_params()


def test_gates_stay_without_a_learning_rate(scaled_data):
    X, Y = scaled_data
    still, moving = (quick(gate_rate_ratio=r).fit(X, Y).weights_ for r in (0, 1))
    assert (still["gate.bias"] == 2).all()
    assert (moving["gate.bias"] != 2).any()


def test_warm_up_begins_without_a_step(scaled_data):
    X, Y = scaled_data
    weights = [
        quick(max_epochs=1, batch_size=10_000, warmup_epochs=n).fit(X, Y).weights_
        for n in (0, 1)
    ]
    assert (weights[0]["gate.bias"] != 2).any()
    assert (weights[1]["gate.bias"] == 2).all()


def test_sparse_rows_are_dense_ones(scaled_data):
    X, Y = scaled_data
    X = np.where(X > 0, X, 0)
    dense, sparse = quick().fit(X, Y), quick().fit(sp.csr_array(X), Y)
    np.testing.assert_allclose(
        sparse.decision_function(sp.csr_array(X)), dense.decision_function(X), atol=1e-4
    )


@pytest.mark.parametrize(
    "parameters",
    [
        {"batch_size": 1},
        {"latent_dim": 1},
        {"validation_fraction": 0.0},
        {"beta": 0.0},
        {"gate_floor": 1.0},
    ],
    ids=lambda parameters: next(iter(parameters)),
)
def test_extreme_parameters(scaled_data, parameters):
    X, Y = scaled_data
    clf = quick(**parameters).fit(X[:40], Y[:40])
    assert np.isfinite(clf.decision_function(X)).all()
    assert np.isfinite(clf.history_["train_loss"]).all()


def test_one_label(scaled_data):
    X, Y = scaled_data
    clf = quick(max_epochs=5).fit(X, Y[:, :1])
    assert clf.predict_proba(X).shape == (300, 1)
    plain = quick(max_epochs=5).fit(X, np.where(Y[:, 0], "yes", "no"))
    assert (
        plain.predict(X).tolist()
        == np.where(clf.predict(X)[:, 0], "yes", "no").tolist()
    )


def test_constant_labels_columns_and_equal_rows(scaled_data):
    X, Y = scaled_data[0].copy(), scaled_data[1].copy()
    X[:, 3] = 1.0
    Y[:, 0], Y[:, 1] = 0, 1
    X, Y = np.repeat(X[:60], 3, axis=0), np.repeat(Y[:60], 3, axis=0)
    with pytest.warns(UserWarning, match="2 of 5 labels are constant"):
        clf = quick(max_epochs=20).fit(X, Y)
    assert not clf.predict(X)[:, 0].any()
    assert clf.predict(X)[:, 1].all()


def test_rows_with_all_labels_and_with_none(scaled_data):
    X, _ = scaled_data
    Y = np.repeat((X[:, :1] > 0).astype(int), 3, axis=1)
    clf = quick(max_epochs=20).fit(X, Y)
    assert (clf.predict(X) == Y).mean() > 0.9


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gate_floor": 0.0}, "'gate_floor' parameter"),
        ({"gate_floor": 1.1}, "'gate_floor' parameter"),
        ({"beta": -1.0}, "'beta' parameter"),
        ({"latent_dim": 0}, "'latent_dim' parameter"),
        ({"dropout": 1.0}, "'dropout' parameter"),
        ({"gate_rate_ratio": -1.0}, "'gate_rate_ratio' parameter"),
        ({"rate_step": 0}, "'rate_step' parameter"),
        ({"warmup_epochs": -1}, "'warmup_epochs' parameter"),
    ],
    ids=lambda value: "" if isinstance(value, str) else str(value),
)
def test_bad_parameters(scaled_data, parameters, message):
    with pytest.raises(ValueError, match=message):
        quick(**parameters).fit(*scaled_data)


def test_nan_is_refused(scaled_data):
    X, Y = scaled_data[0].copy(), scaled_data[1]
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        quick().fit(X, Y)


# Presets


@pytest.mark.parametrize("name", sorted(DELAClassifier.PRESETS))
def test_presets_train(scaled_data, name):
    X, Y = scaled_data
    clf = DELAClassifier.from_preset(name, max_epochs=1, random_state=0)
    assert clf.fit(X[:60], Y[:60]).predict(X).shape == Y.shape


def test_presets_are_those_published():
    assert DELAClassifier.PRESETS["rcv1subset1"] == {
        "max_epochs": 50,
        "learning_rate": 3e-3,
        "beta": 1e-3,
        "dropout": 0.7,
        "rate_step": 3,
        "warmup_epochs": 2,
    }
    assert len(DELAClassifier.PRESETS) == 10
    tmc = DELAClassifier.from_preset("tmc2007", batch_size=64)
    assert (tmc.latent_dim, tmc.gate_rate_ratio, tmc.rate_step) == (64, 0.1, 1)
    assert (tmc.batch_size, tmc.dropout, tmc.weight_decay) == (64, 0.0, 1e-4)
    with pytest.raises(
        ValueError, match=r"no preset 'nonsense'.*bookmarks, corel16k001"
    ):
        DELAClassifier.from_preset("nonsense")


# Real data


@pytest.mark.skipif("CLML_DATA" not in os.environ, reason="CLML_DATA is not set")
def test_emotions():
    """Runs of our own gave 0.191, 0.315, 0.185, each ± 0.02."""
    data = load_dataset("emotions")
    X, X_test, Y, Y_test = iterative_train_test_split(
        data.X, data.Y, test_size=0.3, refine=False, random_state=100
    )
    scaler = StandardScaler().fit(X)
    clf = DELAClassifier(max_epochs=30, random_state=0).fit(scaler.transform(X), Y)
    scores = clf.decision_function(scaler.transform(X_test))
    losses = loss_values(Y_test, scores, ("hamming", "micro_f1", "lrap"))
    assert (losses < [0.23, 0.38, 0.23]).all()
