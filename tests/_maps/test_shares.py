import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from clml._maps.shares import fit_shares
from clml.losses import RowTargets


def make_learners(n=200, m=3, k=2, seed=0):
    generator = np.random.default_rng(seed)
    logits = generator.normal(scale=2, size=(n, m, k))
    truth = generator.random((n, k)) < expit(0.9 * logits[:, 0] + 0.4 * logits[:, 1])
    return logits, truth.astype(int)


def test_many_rows_give_the_weights_of_logistic_regression():
    logits, Y = make_learners(n=20_000, m=2)
    shares = fit_shares(logits, RowTargets.from_indicator(Y))
    pooled = np.moveaxis(logits, 1, 2).reshape(-1, 2)
    oracle = LogisticRegression(C=np.inf).fit(pooled, Y.ravel())
    np.testing.assert_allclose(shares, oracle.coef_[0], atol=0.01)


def test_few_rows_say_little():
    logits, Y = make_learners(n=2)
    shares = fit_shares(logits, RowTargets.from_indicator(Y))
    np.testing.assert_allclose(shares, 1 / 3, atol=0.05)


def test_a_learner_that_is_wrong_is_dropped_and_not_turned_round():
    logits, Y = make_learners(n=4_000, m=2)
    logits[:, 1] = -2 * logits[:, 0]
    shares = fit_shares(logits, RowTargets.from_indicator(Y))
    assert shares[1] == 0.0
    assert shares[0] > 0.5


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 30), st.integers(1, 4), st.integers(1, 3), st.integers(0, 99))
def test_never_negative_whatever_the_rows(n, m, k, seed):
    logits, Y = make_learners(n, max(m, 2), k, seed)
    shares = fit_shares(logits[:, :m], RowTargets.from_indicator(Y))
    assert shares.shape == (m,)
    assert (shares >= 0).all() and np.isfinite(shares).all()
    if m == 1:
        assert shares[0] == 1.0


def test_absent_rows_and_the_unit_of_weights_do_not_matter():
    logits, Y = make_learners()
    weight = np.arange(200) % 3
    given_rows = RowTargets.from_indicator(Y, weight)
    kept = weight > 0
    expected = fit_shares(logits, given_rows)
    for rows, targets in [
        (logits, RowTargets.from_indicator(Y, 7.0 * weight)),
        (logits[kept], RowTargets.from_indicator(Y[kept], weight[kept])),
    ]:
        np.testing.assert_allclose(fit_shares(rows, targets), expected, atol=1e-4)


def test_no_row_of_weight():
    logits, Y = make_learners()
    targets = RowTargets.from_indicator(Y, np.zeros(200))
    assert fit_shares(logits, targets) == pytest.approx(1 / 3)


def test_huge_logits():
    logits, Y = make_learners()
    shares = fit_shares(1e6 * logits, RowTargets.from_indicator(Y))
    assert np.isfinite(shares).all()
