import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from clml.network.kernels import activate, sparse_product

DTYPES = [np.float32, np.float64]


def plain(values):
    """The definition; a row's C entries lie along the second axis from the end."""
    values = values.astype(np.float64)
    centred = values - values.mean(axis=-2, keepdims=True)
    return 1 / (1 + np.exp(-centred / (values.std(axis=-2, keepdims=True) + 1e-10)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_by_hand(dtype):
    # Mean 2, population deviation 1: −1 and 1.
    out = np.empty((1, 3, 1), dtype)
    activate(np.array([[[1.0], [3.0]]], dtype), out)
    expected = [1 / (1 + np.e), 1 / (1 + 1 / np.e), 1]
    assert_allclose(out[0, :, 0], expected, 1e-6 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("c", [2, 7, 20])
def test_equals_the_plain_definition(dtype, c):
    rng = np.random.default_rng(0)
    values = (100 * rng.normal(size=(3, c, 5)) + 7).astype(dtype)
    out = np.full((3, c + 1, 5), np.nan, dtype)
    before = values.copy()
    activate(values, out)
    assert_allclose(out[:, :-1], plain(values), 2e-5 if dtype == np.float32 else 1e-13)
    assert_array_equal(out[:, -1], 1)
    assert_array_equal(values, before)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1 / 3, -7.3, 1e-30, 12345.678])
@pytest.mark.parametrize("c", [2, 3, 20])
def test_a_constant_row_is_half(dtype, value, c):
    # Nothing to standardise: 0, and no rounding of the mean blown up to 1.
    out = np.empty((1, c + 1, 1), dtype)
    activate(np.full((1, c, 1), value, dtype), out)
    assert_array_equal(out[:, :-1], 0.5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_nan_stays_in_its_row(dtype):
    values = np.random.default_rng(2).normal(size=(1, 4, 3)).astype(dtype)
    values[0, 2, 1] = np.nan
    out = np.empty((1, 5, 3), dtype)
    activate(values, out)
    assert np.isnan(out[0, :-1, 1]).all()
    assert_allclose(out[0, :-1, ::2], plain(values[0, :, ::2]), 1e-5)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize(("start", "stop"), [(0, 6), (2, 5), (5, 6), (3, 3)])
def test_sparse_product(index, start, stop):
    X = sp.random_array((6, 4), density=0.4, rng=0, format="csr")
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    matrix = np.random.default_rng(3).normal(size=(5, 7))
    out = np.full((stop - start, 7), np.nan)
    sparse_product(X.data, X.indices, X.indptr, start, stop - start, matrix, out)
    expected = X.toarray()[start:stop] @ matrix[:-1] + matrix[-1]
    assert_allclose(out, expected, 1e-13, 1e-14)
