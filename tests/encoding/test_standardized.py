"""Standardised numbers, as scikit-learn has them."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from clml.encoding import Standardized


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_as_scikit_learn(sparse, weighted):
    generator = np.random.default_rng(0)
    X = generator.normal(3, 2, (50, 4)) * (generator.random((50, 4)) < 0.5)
    X = sp.csr_array(X) if sparse else X
    weight = generator.random(50) if weighted else None
    scaler = StandardScaler(with_mean=not sparse).fit(X, sample_weight=weight)
    found, wanted = Standardized().fit(X, weight).apply(X), scaler.transform(X)
    if sparse:
        found, wanted = found.toarray(), wanted.toarray()
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_columns_of_0_and_1():
    X = np.array([[0.0], [1.0], [1.0], [0.0]])
    np.testing.assert_array_equal(Standardized().fit(X).apply(X), X)
    scaled = Standardized(indicators="scaled")
    np.testing.assert_array_equal(scaled.fit(X).apply(X), 2 * X - 1)
    rows = sp.csr_array(X)
    np.testing.assert_array_equal(scaled.fit(rows).apply(rows).toarray(), 2 * X)
    # What was 0 and 1 may hold something else later.
    np.testing.assert_array_equal(
        Standardized().fit(X).apply([[7], [-1e300]]).ravel(), np.float32([7, -1e6])
    )


def test_two_other_values_are_standardised():
    X = np.array([[2.0], [6.0]])
    np.testing.assert_array_equal(Standardized().fit(X).apply(X), [[-1.0], [1.0]])


def test_later_rows_are_bounded():
    fitted = Standardized().fit(np.array([[0.0], [1e-30], [3e-30]]))
    np.testing.assert_array_equal(
        fitted.apply([[1e30], [-1.7e308]]).ravel(), np.float32([1e6, -1e6])
    )


def test_sparse_numbers_are_divided_and_no_more():
    """Taking the mean off and adding it again would cost digits."""
    X = sp.csr_array(np.array([[0.0], [3.0], [1e-9], [7e8]]))
    fitted = Standardized().fit(X)
    wanted = (X.toarray() / X.toarray().std()).astype(np.float32)
    np.testing.assert_array_equal(fitted.shift, 0)
    np.testing.assert_allclose(fitted.apply(X).toarray(), wanted, rtol=2e-7)
