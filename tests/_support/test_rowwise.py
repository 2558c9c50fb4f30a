"""Products whose rows do not depend on each other."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from clml._support.rowwise import Packed, PackedTable


def rowwise_product(X, matrix):
    return Packed(matrix).product(X)


def matrices(n, depth, width, dtype, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, depth)).astype(dtype)
    return X, generator.normal(size=(depth, width)).astype(dtype)


def test_worked_example():
    X = np.array([[1.0, 2.0], [0.0, -1.0]])
    product = rowwise_product(X, np.array([[3.0, 1.0], [0.5, 4.0]]))
    np.testing.assert_array_equal(product, [[4.0, 9.0], [-0.5, -4.0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 6, 17, 40, 64, 300])
@pytest.mark.parametrize("depth", [1, 3, 256, 259, 600])
def test_equals_the_product_of_numpy(depth, width, dtype):
    X, matrix = matrices(21, depth, width, dtype)
    found = rowwise_product(X, matrix)
    assert found.dtype == dtype
    exact = X.astype(np.float64) @ matrix.astype(np.float64)
    size = np.abs(X).astype(np.float64) @ np.abs(matrix).astype(np.float64)
    # Sums of some hundreds, of sums: far fewer roundings than terms.
    assert (np.abs(found - exact) <= 32 * np.finfo(dtype).eps * size).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 17, 64, 300])
@pytest.mark.parametrize("depth", [1, 259])
def test_sums_of_absolute_differences(depth, width, dtype):
    X, matrix = matrices(20, depth, width, dtype)
    found = Packed(matrix).sums(X, absolute=True)[:, :width]
    assert found.dtype == dtype
    exact = np.abs(X[:, :, None].astype(np.float64) - matrix).sum(axis=1)
    np.testing.assert_allclose(found, exact, rtol=32 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(
        Packed(matrix).sums(X[13:14], absolute=True)[0, :width], found[13]
    )


@pytest.mark.parametrize("rectified", [False, True])
def test_a_layer(rectified):
    """A bias, and nothing below 0."""
    X, matrix = matrices(5, 7, 20, np.float32)
    bias = np.arange(20, dtype=np.float32) - 10
    expected = X @ matrix + bias
    if rectified:
        expected = np.maximum(expected, 0)
    for kind, rows in ((Packed, (X,)), (PackedTable, entries(X))):
        found = kind(matrix, bias, rectified).product(*rows)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def entries(X):
    rows = sp.csr_array(X)
    return rows.data, rows.indices, rows.indptr


@given(st.data())
def test_rows_of_a_table(data):
    """Rows of any number of entries: NumPy's product, and each row by itself."""
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    depth, width = data.draw(st.integers(1, 80)), data.draw(st.integers(1, 200))
    X, matrix = matrices(300, depth, width, dtype, seed=1)
    density = np.random.default_rng(2).random((300, 1))
    X[np.random.default_rng(3).random(X.shape) > density] = 0
    X[5] = 0
    table = PackedTable(matrix)
    found = table.product(*entries(X))
    assert found.shape == (300, width)
    tolerance = 100 * np.finfo(dtype).eps
    np.testing.assert_allclose(found, X @ matrix, rtol=0, atol=tolerance * depth)
    rows = data.draw(st.lists(st.integers(0, 299), max_size=20))
    np.testing.assert_array_equal(table.product(*entries(X[rows])), found[rows])


def test_what_is_no_row_of_the_matrix_is_refused():
    packed = Packed(np.ones((3, 2)))
    with pytest.raises(ValueError, match="X must be float64 of 3 columns, got float64"):
        packed.product(np.ones((5, 4)))
    with pytest.raises(ValueError, match="got float32 of shape"):
        packed.product(np.ones((5, 3), np.float32))


@given(st.data())
def test_rows_do_not_depend_on_each_other(data):
    width = data.draw(st.sampled_from([5, 300]))
    X, matrix = matrices(60, data.draw(st.integers(1, 300)), width, np.float32)
    whole = rowwise_product(X, matrix)
    rows = data.draw(st.lists(st.integers(0, 59), min_size=1, max_size=60))
    np.testing.assert_array_equal(rowwise_product(X[rows], matrix), whole[rows])


@pytest.mark.parametrize("width", [5, 300])
def test_layouts_of_memory(width):
    X, matrix = matrices(9, 40, width, np.float64)
    expected = rowwise_product(X, matrix)
    for given_X in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        for given_matrix in (np.asfortranarray(matrix), matrix.T.copy().T):
            found = rowwise_product(given_X, given_matrix)
            np.testing.assert_array_equal(found, expected)


def test_no_rows_and_no_columns():
    assert rowwise_product(np.empty((0, 3)), np.ones((3, 2))).shape == (0, 2)
    np.testing.assert_array_equal(
        rowwise_product(np.empty((2, 0)), np.empty((0, 300))), np.zeros((2, 300))
    )


@pytest.mark.parametrize("width", [5, 300])
def test_nan_and_infinity_stay_in_their_rows(width):
    X, matrix = matrices(10, 8, width, np.float32)
    expected = rowwise_product(X, matrix)
    X[3, 2], X[7, 0] = np.nan, np.inf
    found = rowwise_product(X, matrix)
    others = np.delete(np.arange(10), [3, 7])
    np.testing.assert_array_equal(found[others], expected[others])
    assert np.isnan(found[3]).all()
    assert np.isinf(found[7]).all()
