"""Moments of columns: merged from parts they are those of all rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clml.network import Moments, Scaling


def test_by_hand():
    a = Moments.of(np.array([[1.0, 5.0], [3.0, 5.0]]))
    b = Moments.of(np.array([[8.0, 5.0]]))
    merged = a + b
    assert merged.weight == 3
    np.testing.assert_allclose(merged.mean, [4.0, 5.0])
    np.testing.assert_allclose(merged.deviation, [np.std([1, 3, 8]), 0.0])
    np.testing.assert_array_equal(merged.low, [1.0, 5.0])
    np.testing.assert_array_equal(merged.high, [8.0, 5.0])
    np.testing.assert_array_equal(merged.constant, [False, True])


@given(
    hnp.arrays(np.float64, (12, 2), elements=st.floats(-1e6, 1e6, width=32)),
    st.integers(1, 11),
    st.booleans(),
    st.sampled_from([1e-200, 1.0, 1e150]),
)
def test_parts_merge_to_the_whole(X, cut, sparse, unit):
    X = X * unit
    weight = np.arange(1.0, 13.0)
    rows = sp.csr_array(X) if sparse else X
    merged = Moments.of(rows[:cut], weight[:cut]) + Moments.of(rows[cut:], weight[cut:])
    whole = Moments.of(rows, weight)
    assert merged.weight == whole.weight
    size = np.abs(X).max(axis=0)
    for name in ("mean", "deviation", "low", "high"):
        a, b = getattr(merged, name), getattr(whole, name)
        assert (np.abs(a - b) <= 1e-13 * size).all(), name
    for mine, other in zip(
        vars(Scaling.from_moments(merged)).values(),
        vars(Scaling.fit(rows, weight)).values(),
        strict=True,
    ):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-12 * size.max())


def test_a_large_mean_costs_no_digits():
    generator = np.random.default_rng(0)
    X = 1e9 + generator.normal(size=(1000, 1))
    parts = [Moments.of(X[i : i + 10]) for i in range(0, 1000, 10)]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged + part
    np.testing.assert_allclose(merged.deviation, X.std(axis=0), rtol=1e-6)


def test_the_largest_numbers():
    top = np.finfo(np.float64).max
    merged = Moments.of(np.array([[top]])) + Moments.of(np.array([[-top]]))
    np.testing.assert_array_equal(merged.mean, [0.0])
    np.testing.assert_array_equal(merged.deviation, [top])


@pytest.mark.parametrize("value", [1e-290, 0.0])
def test_numbers_too_small_to_scale_are_constant(value):
    merged = Moments.of(np.array([[value]])) + Moments.of(np.array([[0.0]]))
    assert merged.constant.all()
