import csv
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

from clml.datasets import make_bayes_multilabel

GAP = Path(__file__).parents[2] / "benchmarks" / "results" / "bayes_gap.csv"


def test_is_a_dataset_like_any_other():
    data = make_bayes_multilabel(200, 3, n_features=7, random_state=0)
    assert data.X.shape == (200, 7) and data.X.dtype == np.float64
    assert data.Y.shape == (200, 3) and data.Y.dtype == np.int64
    assert len(data.feature_names) == len(data.categorical) == data.n_features == 7
    assert len(data.label_names) == data.n_labels == 3
    assert data.n_instances == 200
    assert not data.categorical.any()
    assert_allclose(data.cardinality, data.Y.sum(axis=1).mean())
    assert data.source == "make_bayes_multilabel"
    assert data.truth.n_features == 7 and data.truth.n_labels == 3


def test_a_seed_gives_the_distribution_and_the_rows():
    data, again, other = (make_bayes_multilabel(random_state=s) for s in (0, 0, 1))
    assert_array_equal(data.X, again.X)
    assert_array_equal(data.Y, again.Y)
    assert not np.array_equal(data.truth.last, other.truth.last)
    more = make_bayes_multilabel(2000, random_state=0)
    assert_array_equal(data.truth.last, more.truth.last)


@pytest.mark.parametrize("density", [0.1, 1 / 3, 0.8])
@pytest.mark.parametrize("noise", [0.01, 0.3, 1.0])
def test_labels_have_the_density(density, noise):
    data = make_bayes_multilabel(4000, density=density, noise=noise, random_state=0)
    # Four standard errors of 4000 rows, of the reference rows as many.
    assert_allclose(data.Y.mean(axis=0), density, atol=4 * 0.5 / 4000**0.5)


def test_noise_goes_from_certain_to_nothing():
    hamming = []
    for noise in (0.0, 0.001, 0.1, 0.2, 0.3, 0.5, 1.0):
        truth = make_bayes_multilabel(1, noise=noise, random_state=0).truth
        hamming.append(truth.bayes_losses(truth.sample(1000, 0)[0])[0])
    assert hamming[0] < 1e-3
    assert (np.diff(hamming) > 0).all()
    assert_allclose(hamming[-1], 1 / 3, atol=1e-9)


def test_pure_noise_ignores_the_features():
    truth = make_bayes_multilabel(1, noise=1.0, random_state=0).truth
    X = truth.sample(50, 0)[0]
    assert_allclose(truth.marginals(X), 1 / 3, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_defaults_are_neither_trivial_nor_linear(seed):
    data = make_bayes_multilabel(5000, random_state=seed)
    X = data.truth.sample(2000, seed + 1)[0]
    bayes = data.truth.bayes_losses(X)
    assert 0.1 < bayes[0] < 0.2 and bayes[1] > 0.05 and bayes[2] > 0.1
    assert_allclose(data.density, 1 / 3, atol=0.03)
    logistic = MultiOutputClassifier(LogisticRegression()).fit(data.X, data.Y)
    scores = np.stack([p[:, 1] - 0.5 for p in logistic.predict_proba(X)], axis=1)
    assert (data.truth.expected_losses(X, scores) > 1.1 * bayes).all()


@pytest.mark.parametrize("n_labels", [1, 2, 12])
@pytest.mark.parametrize("n_features", [1, 3])
def test_smallest_and_largest_shapes(n_labels, n_features):
    data = make_bayes_multilabel(20, n_labels, n_features=n_features, random_state=0)
    losses = data.truth.bayes_losses(data.X)
    assert losses.shape == (3,)
    assert ((losses >= 0) & (losses <= 1)).all()
    if n_labels == 1:
        assert losses[1] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_samples": 0}, ValueError, "n_samples must be at least 1, got 0"),
        ({"n_samples": 2.0}, TypeError, "n_samples must be an integer, got 2.0"),
        ({"n_features": 0}, ValueError, "n_features must be at least 1, got 0"),
        ({"n_labels": 0}, ValueError, "n_labels must be at least 1, got 0"),
        ({"n_labels": 13}, ValueError, "at most 12, got 13: exact risks go through"),
        ({"n_labels": True}, TypeError, "n_labels must be an integer, got True"),
        ({"dependence": 1.1}, ValueError, r"dependence must lie in \[0, 1\], got 1.1"),
        ({"dependence": "x"}, TypeError, "dependence must be a number"),
        ({"noise": -0.1}, ValueError, r"noise must lie in \[0, 1\], got -0.1"),
        ({"noise": float("nan")}, ValueError, "noise must lie in"),
        ({"density": 1}, ValueError, r"density must lie in \(0, 1\), got 1"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        make_bayes_multilabel(**arguments)


def test_gap_of_the_network_is_as_documented():
    with GAP.open(newline="") as file:
        rows = {
            (int(r["seed"]), r["scores"]): np.array(
                [float(r[name]) for name in ("hamming", "lrap", "micro_f1")]
            )
            for r in csv.DictReader(file)
        }
    for seed in range(5):
        bayes = rows[seed, "Bayes value"]
        log_odds = rows[seed, "network: log-odds"]
        shifted = rows[seed, "network: log-odds, bias for micro-F1"]
        assert log_odds[0] == bayes[0] and shifted[2] == bayes[2]
        assert 0.002 <= log_odds[1] - bayes[1] <= 0.0135
        assert 0 < rows[seed, "network: fitted to LRAP"][1] - bayes[1] <= 0.0009
    # The table is of the distribution as it is now.
    truth = make_bayes_multilabel(1, random_state=0).truth
    X = truth.sample(20_000, np.random.default_rng([0, 2]))[0]
    assert_allclose(truth.bayes_losses(X), rows[0, "Bayes value"], atol=1e-5)
