"""The objective of LLSF, and that the search ends where its conditions say."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from clml.baselines._label_specific_lasso import (
    LabelSpecificLasso,
    label_distances,
    shrink,
    solve_lasso,
)


def data(n=60, d=6, K=4, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d))
    Y = (X[:, :K] + generator.normal(size=(n, K)) > 0.3).astype(float)
    return X, Y


def problem(X, Y, alpha, beta):
    products = Y.T @ Y
    return LabelSpecificLasso(
        X.T @ X, X.T @ Y, float((Y**2).sum()), label_distances(products), alpha, beta
    )


def slow_objective(X, Y, W, alpha, beta):
    """As the paper writes it, entry by entry."""
    total = 0.0
    for i in range(len(X)):
        for k in range(Y.shape[1]):
            total += 0.5 * (X[i] @ W[:, k] - Y[i, k]) ** 2
    for j in range(Y.shape[1]):
        for k in range(Y.shape[1]):
            lengths = np.linalg.norm(Y[:, j]) * np.linalg.norm(Y[:, k])
            r = 1 - Y[:, j] @ Y[:, k] / lengths
            total += 0.5 * alpha * r * (W[:, j] @ W[:, k])
    return total + beta * np.abs(W).sum()


def test_distances_by_hand():
    # Cosines: 1/√2 of the first two, 0 of those that never meet.
    Y = np.array([[1.0, 1, 0], [1, 0, 0], [0, 0, 1]])
    c = 1 - 1 / np.sqrt(2)
    expected = [[0, c, 1], [c, 0, 1], [1, 1, 0]]
    np.testing.assert_allclose(label_distances(Y.T @ Y), expected)


def test_distances_of_equal_labels_are_not_negative():
    Y = np.repeat(np.random.default_rng(0).integers(0, 2, size=(50, 1)), 5, axis=1)
    distances = label_distances((Y.T @ Y).astype(float))
    assert (distances >= 0).all()
    np.testing.assert_allclose(distances, 0, atol=1e-12)


def test_shrink_by_hand():
    assert shrink(np.array([[-3.0, -1, 0], [0.5, 1, 2]]), 1).tolist() == [
        [-2, 0, 0],
        [0, 0, 1],
    ]


@pytest.mark.parametrize(("alpha", "beta"), [(0, 0), (3, 0), (0, 2), (1.5, 0.7)])
def test_objective(alpha, beta):
    X, Y = data()
    W = np.random.default_rng(1).normal(size=(6, 4))
    expected = slow_objective(X, Y, W, alpha, beta)
    assert problem(X, Y, alpha, beta).objective(W) == pytest.approx(expected)


def test_gradient():
    X, Y = data()
    W = np.random.default_rng(1).normal(size=(6, 4))
    smooth = problem(X, Y, 1.5, 0)
    found = approx_fprime(W.ravel(), lambda w: smooth.objective(w.reshape(6, 4)), 1e-6)
    np.testing.assert_allclose(smooth.gradient(W).ravel(), found, atol=1e-3)


def test_steepness_is_the_norm_of_the_map():
    X, Y = data()
    one = problem(X, Y, 2.5, 0)
    whole = np.kron(one.gram, np.eye(4)) + 2.5 * np.kron(np.eye(6), one.distances)
    assert one.steepness() == pytest.approx(np.linalg.norm(whole, 2))


def test_without_similarity_it_is_the_lasso():
    from sklearn.linear_model import Lasso

    X, Y = data()
    one = problem(X, Y, 0, 4.0)
    found, _ = solve_lasso(one, one.ridge(0.1), 10_000, 0)
    oracle = Lasso(4.0 / len(X), fit_intercept=False, tol=1e-10).fit(X, Y)
    np.testing.assert_allclose(found, oracle.coef_.T, atol=1e-6)
    assert (found == 0).any()


def test_without_penalties_it_is_least_squares():
    X, Y = data()
    one = problem(X, Y, 0, 0)
    found, _ = solve_lasso(one, np.zeros((6, 4)), 10_000, 0)
    np.testing.assert_allclose(found, np.linalg.lstsq(X, Y)[0], atol=1e-6)


@pytest.mark.parametrize("alpha", [0.5, 5.0])
@pytest.mark.parametrize("seed", range(3))
def test_conditions_of_optimality(alpha, seed):
    """The gradient is -β sign(w) where a weight is not 0, and within ±β where it is."""
    X, Y = data(seed=seed)
    beta = 3.0
    one = problem(X, Y, alpha, beta)
    W, _ = solve_lasso(one, one.ridge(0.1), 20_000, 0)
    gradient = one.gradient(W)
    used = W != 0
    assert 0 < used.sum() < used.size
    np.testing.assert_allclose(gradient[used], -beta * np.sign(W[used]), atol=1e-5)
    assert (np.abs(gradient[~used]) <= beta + 1e-5).all()


@pytest.mark.parametrize("alpha", [0.0, 1.0, 100.0])
def test_objectives_only_fall(alpha):
    X, Y = data()
    one = problem(X, Y, alpha, 1.0)
    W, objectives = solve_lasso(one, one.ridge(0.1), 300, 0)
    assert len(objectives) > 3
    assert (np.diff(objectives) <= 0).all()
    assert objectives[0] == one.objective(one.ridge(0.1))
    assert objectives[-1] == one.objective(W)


def test_acceleration_saves_steps():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(80, 10)) * np.logspace(0, -2, 10)
    Y = (generator.random((80, 3)) > 0.5).astype(float)
    one = problem(X, Y, 0.0, 0.0)
    least = solve_lasso(one, np.linalg.lstsq(X, Y)[0], 1, 0)[1][-1]
    accelerated = solve_lasso(one, np.zeros((10, 3)), 200, 0)[1][-1]
    W, plain = np.zeros((10, 3)), 0.0
    for _ in range(200):
        W = W - one.gradient(W) / one.steepness()
    plain = one.objective(W)
    assert accelerated - least < 0.2 * (plain - least)


def test_it_ends_where_the_objective_is_negative():
    # With two equal features W may be anything that cancels, and R rewards weights
    # of different signs without end.
    X, Y = data()
    X = np.hstack([X, X])
    one = problem(X, Y, 1000.0, 0.01)
    _, objectives = solve_lasso(one, one.ridge(0.1), 10_000, 0)
    assert objectives[-1] < 0 < objectives[-2]
    assert len(objectives) < 100


def test_tolerance_and_steps_at_most():
    X, Y = data()
    one = problem(X, Y, 1.0, 1.0)
    _, loose = solve_lasso(one, one.ridge(50), 1000, 0.1)
    assert loose[-2] - loose[-1] <= 0.1
    assert all(np.diff(loose[:-1]) < -0.1)
    assert len(solve_lasso(one, one.ridge(50), 3, 0)[1]) == 4
