import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from clml._maps.platt import fit_platt
from clml.losses import RowTargets


def problem(seed, n=60, n_labels=3, scale=1.0, noise=1.0):
    generator = np.random.default_rng(seed)
    truth = generator.normal(size=(n, n_labels)) - 0.5
    scores = scale * (truth + noise * generator.normal(size=truth.shape) + 0.3)
    return scores, (truth > 0).astype(int)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("weighted", [False, True])
def test_is_logistic_regression_of_the_pooled_scores(scale, weighted):
    scores, Y = problem(0, scale=scale)
    weight = np.random.default_rng(1).integers(0, 4, len(Y)) if weighted else None
    found = fit_platt(scores, RowTargets.from_indicator(Y, weight))
    oracle = LogisticRegression(C=np.inf, tol=1e-10).fit(
        scores.reshape(-1, 1) / scale,
        Y.ravel(),
        None if weight is None else np.repeat(weight, 3),
    )
    assert found[0] * scale == pytest.approx(oracle.coef_[0, 0], rel=1e-4)
    assert found[1] == pytest.approx(oracle.intercept_[0], abs=1e-4)


@given(st.integers(0, 10_000), st.floats(0.1, 10), st.floats(-5, 5))
def test_does_not_depend_on_the_unit(seed, factor, offset):
    scores, Y = problem(seed, n=20)
    targets = RowTargets.from_indicator(Y)
    scale, bias = fit_platt(scores, targets)
    other_scale, other_bias = fit_platt(factor * scores + offset, targets)
    np.testing.assert_allclose(
        other_scale * (factor * scores + offset) + other_bias,
        scale * scores + bias,
        atol=1e-5,
    )


def test_rows_without_weight_do_not_count():
    scores, Y = problem(2)
    weight = np.r_[np.zeros(30), np.ones(30)]
    with_them = fit_platt(scores, RowTargets.from_indicator(Y, weight))
    without = fit_platt(scores[30:], RowTargets.from_indicator(Y[30:]))
    assert with_them == pytest.approx(without)


def test_separable_scores_get_a_finite_scale():
    Y = np.array([[0], [0], [1], [1]])
    scale, bias = fit_platt(Y - 0.5, RowTargets.from_indicator(Y))
    assert scale == pytest.approx(10 / 0.5)
    assert bias == pytest.approx(0, abs=1e-6)


def test_a_learner_worse_than_chance_is_not_turned():
    scores, Y = problem(3)
    scale, bias = fit_platt(-scores, RowTargets.from_indicator(Y))
    assert 0 < scale < 0.01
    prior = Y.mean()
    assert bias == pytest.approx(np.log(prior / (1 - prior)), abs=0.01)


@pytest.mark.parametrize(
    "scores, Y",
    [
        (np.full((4, 2), 0.1), np.eye(4, 2, dtype=int)),
        (np.arange(8.0).reshape(4, 2), np.zeros((4, 2), dtype=int)),
        (np.arange(8.0).reshape(4, 2), np.ones((4, 2), dtype=int)),
        (np.ones((1, 1)), np.ones((1, 1), dtype=int)),
    ],
    ids=["equal scores", "no positives", "all positives", "one row"],
)
def test_what_says_nothing_leaves_scores_as_they_are(scores, Y):
    assert fit_platt(scores, RowTargets.from_indicator(Y)) == (1.0, 0.0)
