"""CLIF as an estimator."""

import math
import os
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.special import expit
from sklearn.datasets import make_multilabel_classification

from clml.baselines._clif import CLIFClassifier
from clml.baselines._label_graph import label_graph
from clml.datasets import iterative_train_test_split, load_dataset
from clml.losses import loss_values


@pytest.fixture(scope="module")
def scaled_data(small_data):
    X, Y = small_data
    return (X - X.mean(axis=0)) / X.std(axis=0), Y


@pytest.fixture(scope="module")
def fitted(scaled_data):
    return quick(threshold=0.3).fit(*scaled_data)


def graph_of(Y):
    """The graph of rows of equal weight; its own tests are elsewhere."""
    y = torch.tensor(Y, dtype=torch.float64)
    return label_graph(y, torch.ones(len(Y), dtype=torch.float64)).numpy()


def quick(**parameters):
    return CLIFClassifier(
        **{"embedding_dim": 8, "max_epochs": 3, "random_state": 0} | parameters
    )


def test_threshold_shifts_decisions_and_not_probabilities(fitted, scaled_data):
    X, _ = scaled_data
    p, decision = fitted.predict_proba(X), fitted.decision_function(X)
    np.testing.assert_allclose(expit(decision + math.log(0.3 / 0.7)), p)
    np.testing.assert_array_equal(fitted.predict(X), p > 0.3)
    np.testing.assert_array_equal(fitted.predict(X), decision > 0)
    assert (fitted.predict(X) != (p > 0.5)).any()


def test_threshold_may_change_after_fitting(fitted, scaled_data):
    X, _ = scaled_data
    other = pickle.loads(pickle.dumps(fitted)).set_params(threshold=0.5)
    np.testing.assert_array_equal(other.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(other.predict(X), other.predict_proba(X) > 0.5)
    with pytest.raises(ValueError, match=r"'threshold' .* Got 1 instead"):
        other.set_params(threshold=1).predict(X)


def test_threshold_of_a_single_output(scaled_data):
    X, Y = scaled_data
    y = np.array(["no", "yes"])[Y[:, 0]]
    clf = quick(threshold=0.8).fit(X, y)
    p = clf.predict_proba(X)
    assert p.shape == (len(X), 2)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(clf.predict(X) == "yes", p[:, 1] > 0.8)
    np.testing.assert_array_equal(clf.decision_function(X) > 0, p[:, 1] > 0.8)
    assert ((p[:, 1] > 0.5) != (p[:, 1] > 0.8)).any()


def test_epochs_are_judged_at_the_threshold(scaled_data):
    X, Y = scaled_data
    clf = quick(threshold=0.3).fit(X[:80], Y[:80], X_val=X[80:], y_val=Y[80:])
    best = {
        name.removeprefix("validation_"): values[clf.best_epoch_ - 1]
        for name, values in clf.history_.items()
    }
    scores = clf.decision_function(X[80:])
    logits = scores + math.log(0.3 / 0.7)
    # Trained in single precision and predicting in double.
    for names, values in (
        (["hamming", "lrap"], scores),
        (["binary_cross_entropy"], logits),
    ):
        np.testing.assert_allclose(
            [best[name] for name in names],
            loss_values(Y[80:], values, names),
            rtol=1e-5,
        )
    order = [name for name in clf.history_ if name.startswith("validation")]
    assert order == [
        "validation_lrap",
        "validation_hamming",
        "validation_binary_cross_entropy",
    ]
    assert (clf.history_["validation_lrap"] >= best["lrap"] - 1e-5).all()


def test_same_seed_same_weights(fitted, scaled_data):
    again = quick(threshold=0.3).fit(*scaled_data)
    other = quick(threshold=0.3, random_state=1).fit(*scaled_data)
    assert again.weights_.keys() == fitted.weights_.keys()
    for name, w in fitted.weights_.items():
        assert type(w) is np.ndarray and w.dtype == np.float32
        np.testing.assert_array_equal(w, again.weights_[name])
    for name in ("label_input", "shared.weight", "gin0.norm0.mean"):
        assert (other.weights_[name] != fitted.weights_[name]).any()


def test_graph_and_label_input_are_not_trained(scaled_data):
    X, Y = scaled_data
    clf = quick(validation_fraction=0, random_state=3).fit(X, Y)
    np.testing.assert_allclose(clf.weights_["graph"], graph_of(Y), rtol=1e-6)
    longer = quick(validation_fraction=0, random_state=3, max_epochs=5).fit(X, Y)
    for name in ("graph", "label_input"):
        np.testing.assert_array_equal(longer.weights_[name], clf.weights_[name])
    assert (longer.weights_["gin0.epsilon"] != clf.weights_["gin0.epsilon"]).any()


def test_row_weights_reach_the_graph(scaled_data):
    X, Y = scaled_data
    weight = np.random.default_rng(0).integers(1, 4, size=len(X))
    clf = quick(validation_fraction=0, max_epochs=1).fit(X, Y, sample_weight=weight)
    expected = graph_of(np.repeat(Y, weight, axis=0))
    np.testing.assert_allclose(clf.weights_["graph"], expected, rtol=1e-5)


def test_pickle(fitted, scaled_data):
    X, _ = scaled_data
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(
        copy.decision_function(X), fitted.decision_function(X)
    )


def test_sparse_equals_dense(scaled_data):
    X, Y = scaled_data
    X = np.where(X > 0, X, 0.0)
    dense, sparse = quick().fit(X, Y), quick().fit(sp.csr_array(X), Y)
    np.testing.assert_array_equal(
        sparse.decision_function(sp.csr_array(X)), dense.decision_function(X)
    )


@pytest.mark.filterwarnings("ignore:.*labels are constant in the training rows")
@pytest.mark.parametrize(
    "change",
    ["one label", "rows without labels", "rows with all", "constant columns", "twins"],
)
def test_corner_cases_are_finite(scaled_data, change):
    X, Y = (a[:40].copy() for a in scaled_data)
    if change == "one label":
        Y = Y[:, :1]
    elif change == "rows without labels":
        Y[:35] = 0
    elif change == "rows with all":
        Y[:] = 1
    elif change == "constant columns":
        X[:, 1:] = 2.0
    else:
        X[:], Y[:] = X[0], Y[0]
    clf = quick().fit(X, Y)
    assert np.isfinite(clf.decision_function(X)).all()
    assert clf.predict(X).shape == Y.shape
    assert all(np.isfinite(w).all() for w in clf.weights_.values())
    if change == "rows with all":
        # Each label comes with every other, always.
        np.testing.assert_array_equal(clf.weights_["graph"], 1 - np.eye(4))


def test_label_never_positive(scaled_data):
    X, Y = scaled_data
    Y = Y.copy()
    Y[:, 2] = 0
    with pytest.warns(UserWarning, match="1 of 4 labels are constant"):
        clf = quick(max_epochs=10).fit(X, Y)
    assert (clf.weights_["graph"][2] == 0).all()
    assert (clf.predict(X)[:, 2] == 0).all()


def test_one_row_a_batch(scaled_data):
    X, Y = (a[:12] for a in scaled_data)
    clf = quick(batch_size=1, max_epochs=2).fit(X, Y)
    assert np.isfinite(clf.decision_function(X)).all()


def test_a_row_does_not_depend_on_those_beside_it(fitted, scaled_data):
    X, _ = scaled_data
    together = fitted.decision_function(X)
    alone = np.concatenate([fitted.decision_function(x[None]) for x in X[:5]])
    np.testing.assert_allclose(alone, together[:5], rtol=1e-9)


def test_nan_is_refused(fitted, scaled_data):
    X, Y = scaled_data
    X = X.copy()
    X[0, 0] = np.nan
    for call in (lambda: quick().fit(X, Y), lambda: fitted.predict(X)):
        with pytest.raises(ValueError, match="NaN"):
            call()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("embedding_dim", 0),
        ("graph_weight", -1.0),
        ("n_feature_layers", 0),
        ("threshold", 0.0),
        ("threshold", 1.0),
    ],
)
def test_bad_parameters(name, value, scaled_data):
    with pytest.raises(ValueError, match=f"'{name}' parameter of CLIFClassifier"):
        quick(**{name: value}).fit(*scaled_data)


@pytest.mark.parametrize("name", sorted(CLIFClassifier.PRESETS))
def test_presets(name):
    clf = CLIFClassifier.from_preset(name, max_epochs=7)
    assert clf.max_epochs == 7
    clf._validate_params()
    assert clf.get_params().items() >= CLIFClassifier.PRESETS[name].items()


def test_preset_by_name():
    clf = CLIFClassifier.from_preset("tmc2007")
    assert (clf.embedding_dim, clf.graph_weight) == (256, 1.0)
    assert (clf.n_feature_layers, clf.threshold) == (2, 0.3)
    assert len(CLIFClassifier.PRESETS) == 14
    with pytest.raises(ValueError, match=r"no preset 'nonsense'.*bookmarks, cal500"):
        CLIFClassifier.from_preset("nonsense")


def test_learns_to_rank():
    X, Y = make_multilabel_classification(
        n_samples=300, n_features=15, n_classes=6, n_labels=2, random_state=0
    )
    X = (X - X[:200].mean(axis=0)) / X[:200].std(axis=0)
    clf = CLIFClassifier(max_epochs=15, random_state=0).fit(X[:200], Y[:200])
    frequencies = np.tile(Y[:200].mean(axis=0), (100, 1))
    ours, baseline = (
        loss_values(Y[200:], scores, ("lrap",))[0]
        for scores in (clf.decision_function(X[200:]), frequencies)
    )
    assert ours < baseline - 0.1


def test_one_label_can_be_learnt():
    X = np.random.default_rng(0).normal(size=(150, 3))
    y = (X[:, 0] > 0).astype(int)
    clf = CLIFClassifier(max_epochs=40, random_state=0).fit(X[:100], y[:100])
    assert clf.score(X[100:], y[100:]) > 0.9


@pytest.mark.skipif("CLML_DATA" not in os.environ, reason="CLML_DATA is not set")
def test_emotions():
    data = load_dataset("emotions")
    X, X_test, Y, Y_test = iterative_train_test_split(
        data.X, data.Y, test_size=0.3, refine=False, random_state=100
    )
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    clf = CLIFClassifier(max_epochs=10, random_state=0).fit((X - mean) / deviation, Y)
    scores = clf.decision_function((X_test - mean) / deviation)
    # An independent run of the method: 0.191 with deviation 0.008 between splits.
    assert loss_values(Y_test, scores, ("lrap",))[0] < 0.23
