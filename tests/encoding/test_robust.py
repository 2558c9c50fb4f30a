"""Clipped numbers: median and quartiles as scikit-learn has them."""

import numpy as np
from sklearn.preprocessing import RobustScaler

from clml.encoding import Robust


def test_as_scikit_learn():
    # With 4 m + 1 rows all definitions of quartiles are the same row.
    X = np.random.default_rng(0).standard_cauchy((41, 5))
    fitted = Robust(limit=1e6).fit(X)
    scaler = RobustScaler(unit_variance=True).fit(X)
    np.testing.assert_allclose(fitted.shift, scaler.center_, rtol=1e-14)
    np.testing.assert_allclose(fitted.scale, scaler.scale_, rtol=1e-14)
    np.testing.assert_allclose(fitted.apply(X), scaler.transform(X), rtol=1e-5)


def test_the_limit():
    X = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]])
    scale = 2 / 1.3489795003921634
    encoded = Robust(limit=2.0).fit(X).apply([[4.0], [1e30], [-1e300]]).ravel()
    u = 1 / scale
    np.testing.assert_allclose(encoded, [u / np.sqrt(1 + u**2 / 4), 2, -2], rtol=1e-6)


def test_quartiles_that_coincide():
    X = np.array([[0.0]] * 8 + [[1.0], [9.0]])
    fitted = Robust().fit(X)
    assert fitted.shift[0] == 0
    np.testing.assert_allclose(fitted.scale[0], X.std(), rtol=1e-14)
    # Those that differ by rounding coincide.
    X = np.array([[0.3]] * 3 + [[0.1 + 0.2]] * 3 + [[2.0]])
    np.testing.assert_allclose(Robust().fit(X).scale[0], X.std(), rtol=1e-14)


def test_weights():
    X = np.arange(10.0)[:, None]
    weight = np.arange(10)
    a, b = Robust().fit(X, weight), Robust().fit(np.repeat(X, weight, axis=0))
    assert (a.shift[0], a.scale[0]) == (b.shift[0], b.scale[0])
