import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clml._support.products import (
    PANEL,
    aligned,
    product,
    room_for_products,
    spread_rows,
    transposed_product,
)

sizes = st.integers(1, 2 * PANEL + 3)
deep = st.one_of(st.integers(1, 9), st.integers(250, 520))


def drawn(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def multiplied(a, b):
    """Return the product in memory full of NaN, so that no entry is left as it was."""
    room = room_for_products([len(b), b.shape[1]], len(a))
    room[:] = np.nan
    out = np.full((len(a), b.shape[1]), np.nan, np.float32)
    product(a, b, room, out)
    return out


def multiplied_transposed(a, b):
    room = room_for_products([a.shape[1], b.shape[1]], len(a))
    room[:] = np.nan
    out = np.full((a.shape[1], b.shape[1]), np.nan, np.float32)
    transposed_product(a, b, room, out)
    return out


@given(rows=st.integers(1, 20), depth=deep, columns=sizes)
def test_equals_the_product_of_numpy(rows, depth, columns):
    a, b = drawn(0, rows, depth), drawn(1, depth, columns)
    expected = a.astype(np.float64) @ b
    np.testing.assert_allclose(multiplied(a, b), expected, atol=1e-4)
    turned = np.ascontiguousarray(a.T)
    np.testing.assert_allclose(multiplied_transposed(turned, b), expected, atol=1e-4)


def test_takes_a_transposed_factor():
    a, b = drawn(0, 5, 7), drawn(1, 90, 7)
    room = room_for_products([90, 7], 5)
    out = np.empty((5, 90), np.float32)
    product(a, b.T, room, out)
    np.testing.assert_allclose(out, a @ b.T, atol=1e-5)


@pytest.mark.parametrize("columns", [40, PANEL, 3 * PANEL + 5])
def test_rows_have_the_same_bits_in_any_company(columns):
    a, b = drawn(0, 23, 300), drawn(1, 300, columns)
    whole = multiplied(a, b)
    for i in (0, 5, 6, 22):
        np.testing.assert_array_equal(multiplied(a[i : i + 1], b)[0], whole[i])


def test_a_number_that_is_not_finite_stays_in_its_row_and_column():
    a, b = drawn(0, 9, 10), drawn(1, 10, 70)
    a[4, 3], b[2, 69] = np.inf, np.nan
    found = multiplied(a, b)
    assert np.isnan(found[:, 69]).all()
    assert not np.isfinite(found[4]).any()
    rest = np.delete(found[:, :69], 4, axis=0)
    np.testing.assert_allclose(rest, np.delete(a, 4, 0) @ b[:, :69], atol=1e-5)


def test_takes_rows_that_are_apart():
    a = spread_rows(8, 64)
    a[:] = drawn(0, 8, 64)
    assert a.strides == (320, 4)
    b = drawn(1, 64, 20)
    np.testing.assert_array_equal(multiplied(a, b), multiplied(a.copy(), b))
    b = drawn(1, 8, 20)
    turned = multiplied_transposed(a, b)
    np.testing.assert_array_equal(turned, multiplied_transposed(a.copy(), b))


def test_memory_begins_at_a_line_of_the_cache():
    for size in (1, 7, 64):
        memory = aligned((size, 3), np.dtype(np.float64))
        assert memory.ctypes.data % 64 == 0
        assert memory.shape == (size, 3)
