"""Normal quantiles of ranks."""

import numpy as np
import pytest
from scipy.stats import norm, rankdata
from sklearn.preprocessing import QuantileTransformer

from clml.encoding import Quantiles


def test_ranks_of_rows_are_scipys():
    X = np.random.default_rng(0).integers(0, 12, (60, 3)) * 0.7
    wanted = norm.ppf((rankdata(X, axis=0) - 0.5) / 60)
    found = Quantiles().fit(X).apply(X)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n_quantiles", [100, 1000])
def test_nearly_as_scikit_learn(n_quantiles):
    X = np.random.default_rng(0).lognormal(size=(2000, 2))
    other = QuantileTransformer(
        n_quantiles=n_quantiles, output_distribution="normal", random_state=0
    ).fit(X)
    inner = (X > np.quantile(X, 0.02, axis=0)) & (X < np.quantile(X, 0.98, axis=0))
    found = Quantiles(n_quantiles).fit(X).apply(X)
    assert np.abs(found - other.transform(X))[inner].max() < 0.03


def test_bounded_and_constant_beyond_the_training_rows():
    X = np.arange(3.0)[:, None]
    fitted = Quantiles().fit(X, [1e-9, 1, 1e-9])
    encoded = fitted.apply([[-1e30], [0.0], [1.0], [2.0], [1e30]]).ravel()
    np.testing.assert_allclose(encoded[[0, 1]], norm.ppf(1e-7), rtol=1e-6)
    np.testing.assert_allclose(encoded[[3, 4]], -norm.ppf(1e-7), rtol=1e-6)
    np.testing.assert_allclose(encoded[2], 0, atol=1e-7)


def test_interpolated_between():
    X = np.array([[0.0], [4.0], [5.0]])
    low, middle, _ = Quantiles().fit(X).apply(X).ravel()
    found = Quantiles().fit(X).apply([[1.0]])[0, 0]
    np.testing.assert_allclose(found, 0.75 * low + 0.25 * middle, rtol=1e-6)


def test_values_a_rounding_apart_are_one_knot():
    X = np.array([[0.3], [0.1 + 0.2], [1.0]])
    fitted = Quantiles().fit(X)
    assert fitted.knots.tolist() == [0.3, 1.0]
    assert np.isfinite(fitted.apply(X)).all()
    chain = 1 + np.arange(100)[:, None] * np.finfo(float).eps
    assert np.isfinite(Quantiles().fit(chain).apply(chain)).all()


def test_few_quantiles():
    X = np.arange(101.0)[:, None]
    fitted = Quantiles(5).fit(X)
    assert fitted.knots.tolist() == [0.0, 25.0, 50.0, 75.0, 100.0]
    np.testing.assert_allclose(fitted.levels, norm.ppf((fitted.knots + 0.5) / 101))
