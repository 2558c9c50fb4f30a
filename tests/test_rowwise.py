"""Products whose rows do not depend on each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clml._rowwise import rowwise_product


def matrices(n, depth, width, dtype, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, depth)).astype(dtype)
    return X, generator.normal(size=(depth, width)).astype(dtype)


def test_worked_example():
    X = np.array([[1.0, 2.0], [0.0, -1.0]])
    product = rowwise_product(X, np.array([[3.0, 1.0], [0.5, 4.0]]))
    np.testing.assert_array_equal(product, [[4.0, 9.0], [-0.5, -4.0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 6, 255, 256, 300])
@pytest.mark.parametrize("depth", [1, 3, 4, 256, 259, 600])
def test_equals_the_product_of_numpy(depth, width, dtype):
    X, matrix = matrices(21, depth, width, dtype)
    found = rowwise_product(X, matrix)
    assert found.dtype == dtype
    exact = X.astype(np.float64) @ matrix.astype(np.float64)
    size = np.abs(X).astype(np.float64) @ np.abs(matrix).astype(np.float64)
    # Sums of some hundreds, of sums: far fewer roundings than terms.
    assert (np.abs(found - exact) <= 32 * np.finfo(dtype).eps * size).all()


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
