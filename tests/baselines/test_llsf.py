"""LLSF as an estimator."""

import os

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression
from sklearn.metrics import f1_score, label_ranking_average_precision_score
from sklearn.model_selection import KFold
from sklearn.preprocessing import normalize

from clml.baselines import LLSFClassifier
from clml.datasets import load_dataset


def problem(n=150, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 6))
    noise = generator.normal(size=(n, 3))
    Y = X[:, :3] + 0.5 * X[:, [3]] + 0.3 * noise > np.array([-0.5, 0, 1])
    return X, Y.astype(int)


def test_without_penalties_it_is_linear_regression():
    X, Y = problem()
    clf = LLSFClassifier(alpha=0, beta=0, max_iter=5000, tol=0).fit(X, Y)
    oracle = LinearRegression().fit(X, Y)
    np.testing.assert_allclose(clf.coef_.T, oracle.coef_, atol=1e-8)
    np.testing.assert_allclose(clf.intercept_, oracle.intercept_, atol=1e-8)
    np.testing.assert_allclose(
        clf.decision_function(X), 4 * (oracle.predict(X) - 0.5), atol=1e-7
    )


def test_without_intercept():
    X, Y = problem()
    clf = LLSFClassifier(
        alpha=0, beta=0, fit_intercept=False, max_iter=5000, tol=0
    ).fit(X, Y)
    oracle = LinearRegression(fit_intercept=False).fit(X, Y)
    np.testing.assert_allclose(clf.coef_.T, oracle.coef_, atol=1e-8)
    assert clf.intercept_.tolist() == [0, 0, 0]


def test_objective_is_that_of_the_weights():
    X, Y = problem()
    clf = LLSFClassifier(alpha=2.0, beta=3.0).fit(X, Y)
    residual = X @ clf.coef_ + clf.intercept_ - Y
    lengths = np.linalg.norm(Y, axis=0)
    R = 1 - (Y.T @ Y) / np.outer(lengths, lengths)
    expected = (
        0.5 * (residual**2).sum()
        + np.trace(R @ clf.coef_.T @ clf.coef_)
        + 3 * np.abs(clf.coef_).sum()
    )
    assert clf.objective_[-1] == pytest.approx(expected)
    assert clf.n_iter_ == len(clf.objective_) - 1


def test_features_of_a_label_are_found():
    X, Y = problem(400)
    X = np.hstack([X, np.random.default_rng(9).normal(size=(400, 10))])
    clf = LLSFClassifier(alpha=0.1, beta=25, max_iter=2000, tol=0).fit(X, Y)
    expected = np.zeros((16, 3), bool)
    expected[[0, 1, 2], [0, 1, 2]] = expected[3] = True
    np.testing.assert_array_equal(clf.coef_ != 0, expected)


def test_labels_that_differ_are_kept_apart():
    """A larger alpha makes the weights of labels that seldom meet more opposed."""
    X, Y = problem()

    def products(alpha):
        W = LLSFClassifier(alpha=alpha, beta=0, max_iter=2000).fit(X, Y).coef_
        return np.triu(W.T @ W, 1).sum()

    assert products(10.0) < products(1.0) < products(0.0)


def test_start_matters_to_a_short_search_alone():
    X, Y = problem()
    starts = [
        LLSFClassifier(gamma=g, max_iter=1).fit(X, Y).coef_ for g in (0.1, 1000.0)
    ]
    assert np.abs(starts[0] - starts[1]).max() > 1e-3
    ends = [
        LLSFClassifier(gamma=g, max_iter=5000, tol=0).fit(X, Y).coef_
        for g in (0.1, 1000.0)
    ]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-8)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_weight_of_two_is_two_rows(fit_intercept):
    X, Y = problem()
    weight = np.arange(150) % 3
    clf = LLSFClassifier(fit_intercept=fit_intercept)
    weighted = clf.fit(X, Y, weight).decision_function(X)
    repeated = clf.fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0))
    np.testing.assert_allclose(weighted, repeated.decision_function(X), rtol=1e-9)


@pytest.mark.parametrize("weight", [None, np.linspace(0, 2, 150)])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_sparse_is_dense(weight, fit_intercept):
    X, Y = problem()
    X = np.where(X > 0, X, 0.0)
    clf = LLSFClassifier(fit_intercept=fit_intercept)
    dense = clf.fit(X, Y, weight).decision_function(X)
    for kind in (sp.csr_array, sp.csr_matrix):
        sparse = clf.fit(kind(X), sp.csr_array(Y), weight)
        assert type(sparse.coef_) is np.ndarray
        np.testing.assert_allclose(sparse.decision_function(kind(X)), dense, rtol=1e-9)


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_constant_labels(value, fit_intercept):
    X, Y = problem()
    clf = LLSFClassifier(fit_intercept=fit_intercept)
    alone = clf.fit(X, Y[:, [0, 2]]).decision_function(X)
    Y[:, 1] = value
    with pytest.warns(UserWarning, match="1 of 3 labels are constant"):
        clf.fit(X, Y)
    assert (clf.predict(X)[:, 1] == value).all()
    assert not clf.coef_[:, 1].any()
    np.testing.assert_allclose(clf.decision_function(X)[:, [0, 2]], alone)


@pytest.mark.filterwarnings("ignore:.*labels are constant")
def test_nothing_but_constant_labels():
    X, Y = problem()
    clf = LLSFClassifier().fit(X, np.ones_like(Y))
    assert clf.predict(X).all()
    assert clf.n_iter_ == 1


def test_constant_features():
    Y = problem()[1]
    clf = LLSFClassifier().fit(np.ones((150, 2)), Y)
    np.testing.assert_allclose(clf.intercept_, Y.mean(axis=0))
    assert not clf.coef_.any()


def test_no_least_value():
    X, Y = problem()
    with pytest.warns(UserWarning, match=r"negative.*alpha=1000"):
        clf = LLSFClassifier(alpha=1000, beta=0.01).fit(np.hstack([X, X]), Y)
    assert np.isfinite(clf.coef_).all()


def test_values_too_large():
    X, Y = problem()
    with pytest.raises(ValueError, match="Scale X first"):
        LLSFClassifier().fit(X * 1e200, Y)


def test_presets():
    clf = LLSFClassifier.from_preset("Medical", max_iter=7)
    assert (clf.alpha, clf.beta, clf.gamma) == (0.125, 0.125, 0.1)
    assert (clf.fit_intercept, clf.max_iter) == (False, 7)
    with pytest.raises(ValueError, match=r"no preset 'nonsense'.*cal500"):
        LLSFClassifier.from_preset("nonsense")


@pytest.mark.parametrize(
    "arguments",
    [
        {"alpha": -1.0},
        {"beta": -1.0},
        {"gamma": 0.0},
        {"fit_intercept": 2},
        {"max_iter": 0},
        {"tol": -1.0},
    ],
)
def test_bad_arguments(arguments):
    (name,) = arguments
    with pytest.raises(ValueError, match=f"The '{name}' parameter"):
        LLSFClassifier(**arguments).fit(*problem())


@pytest.mark.filterwarnings("ignore:.*labels are constant")
@pytest.mark.skipif(not os.environ.get("CLML_DATA"), reason="CLML_DATA is not set")
def test_medical_with_the_settings_of_its_authors():
    data = load_dataset("medical")
    X, Y = normalize(data.X), data.Y
    train, test = next(KFold(5, shuffle=True, random_state=0).split(X))
    clf = LLSFClassifier.from_preset("medical").fit(X[train], Y[train])
    scores = clf.decision_function(X[test])
    assert label_ranking_average_precision_score(Y[test], scores) > 0.85
    assert f1_score(Y[test], scores > 0, average="micro") > 0.75
