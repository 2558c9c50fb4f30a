import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core import types
from numba.extending import intrinsic
from scipy.special import expit

from clml._support import simd as _simd
from clml._support.compiled import compiled
from clml._support.simd import (
    COUNTED,
    LANES,
    ROWS,
    activate_lanes,
    add_decisions,
    add_ratios,
    address,
    count_lanes,
    decide_lanes,
    multiply_lanes,
    multiply_sparse,
)

KINDS = [np.float32, np.float64]


@compiled
def multiply(rows, weights, out):
    sizes = weights.shape
    multiply_lanes(
        address(rows, 0), address(weights, 0), address(out, 0), sizes[0], sizes[1]
    )


@compiled
def activate(values, out):
    activate_lanes(address(values, 0), address(out, 0), values.shape[1])


@compiled
def count(scores, limits, counts):
    n = scores.shape[0]
    count_lanes(address(scores, 0), n, address(limits, 0), address(counts, 0))


@compiled
def decide(scores, threshold, counts):
    decide_lanes(address(scores, 0), scores.shape[0], threshold, address(counts, 0))


@compiled
def add_up_decisions(predicted, hits, n_relevant, weight, totals):
    add_decisions(
        address(predicted, 0), address(hits, 0), n_relevant, weight, address(totals, 0)
    )


@compiled
def add_up_ratios(above, below, weight, totals):
    n = above.shape[0]
    add_ratios(address(above, 0), address(below, 0), n, weight, address(totals, 0))


@compiled
def add_rows(data, places, matrix, out):
    multiply_sparse(
        address(data, 0),
        address(places, 0),
        data.shape[0],
        address(matrix, 0),
        matrix.shape[1],
        address(out, 0),
    )


@compiled
def third(array):
    return array[2], address(array, 2)[0]


def normal(shape, dtype, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def test_address_counts_entries():
    value, found = third(np.arange(5.0))
    assert value == found == 2.0


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("inputs", [1, 2, 21])
@pytest.mark.parametrize("outputs", [1, 2, 3, 4, 5, 8, 101])
def test_products_of_every_lane(inputs, outputs, dtype):
    rows = normal((ROWS, inputs, LANES), dtype)
    weights = normal((inputs, outputs, LANES), dtype, seed=1)
    out = np.full((ROWS, outputs, LANES), np.nan, dtype)
    multiply(rows, weights, out)
    expected = np.einsum("ria,ija->rja", rows.astype(float), weights.astype(float))
    np.testing.assert_allclose(out, expected, 0, 50 * np.finfo(dtype).eps)


@settings(deadline=None)
@given(st.integers(2, 60), st.sampled_from(KINDS), st.integers(0, 99))
def test_activation_is_as_accurate_as_its_precision(n, dtype, seed):
    scale = 10.0 ** np.random.default_rng(seed).uniform(-3, 3)
    values = normal((ROWS, n, LANES), dtype, seed) * dtype(scale)
    out = np.full((ROWS, n + 1, LANES), np.nan, dtype)
    activate(values, out)
    exact = values.astype(np.longdouble)
    centred = exact - exact.mean(axis=1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(axis=1, keepdims=True)) + 1e-10
    z = centred / deviation
    error = np.abs(out[:, :n] / expit(z.astype(float)) - 1)
    # In the sigmoid's tail an error of z is as large; that of the mean counts more the
    # further entries are from 0, in deviations.
    furthest = np.abs(exact).max(axis=1, keepdims=True) / deviation
    assert (error < (8 + 8 * np.abs(z) + 8 * furthest) * np.finfo(dtype).eps).all()
    assert (out[:, n] == 1).all()


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("n", [2, 20, 64])
def test_sigmoid_as_far_as_standardised_entries_can_be(n, dtype):
    """One entry away from all others is at √(n − 1), the furthest there is."""
    values = np.zeros((ROWS, n, LANES), dtype)
    values[:, 0] = 1
    values[1] = -values[1]
    out = np.empty((ROWS, n + 1, LANES), dtype)
    activate(values, out)
    furthest = (1 - 1 / n) / (np.sqrt(n - 1.0) / n + 1e-10)
    tolerance = np.finfo(dtype).eps * (8 + 8 * furthest)
    np.testing.assert_allclose(out[0, 0], expit(furthest), rtol=tolerance)
    np.testing.assert_allclose(out[1, 0], expit(-furthest), rtol=tolerance)


@intrinsic
def exponential_of_lanes(typingctx, x, out):
    def generate(context, builder, signature, arguments):
        v = _simd._Vectors(builder, x.dtype)
        first = _simd._whole(0)
        v.store(_simd._exponential(v, v.load(arguments[0], first)), arguments[1], first)
        return context.get_dummy_value()

    return types.void(x, out), generate


@compiled
def exponential(x, out):
    for i in range(0, x.shape[0], LANES):
        exponential_of_lanes(address(x, i), address(out, i))


@pytest.mark.parametrize("dtype", KINDS)
def test_exponential_is_exact_to_a_few_last_bits(dtype):
    x = np.linspace(-_simd.MOST_EXPONENT, _simd.MOST_EXPONENT, 2**16).astype(dtype)
    x[:3] = [0.0, -0.0, np.nan]
    out = np.empty_like(x)
    exponential(x, out)
    expected = np.exp(x.astype(np.longdouble))
    np.testing.assert_allclose(
        out, expected.astype(float), rtol=4 * np.finfo(dtype).eps
    )
    assert np.isnan(out[2])
    assert (out[:2] == 1).all()


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("value", [0.0, 1.0, -3.7, 1e30])
def test_equal_entries_become_a_half(value, dtype):
    out = np.empty((ROWS, 8, LANES), dtype)
    activate(np.full((ROWS, 7, LANES), value, dtype), out)
    np.testing.assert_array_equal(out[:, :7], 0.5)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_its_lane(bad, dtype):
    values = normal((ROWS, 5, LANES), dtype)
    expected = np.empty((ROWS, 6, LANES), dtype)
    activate(values, expected)
    values[2, 3, 7] = bad
    out = np.empty_like(expected)
    activate(values, out)
    assert np.isnan(out[2, :5, 7]).all()
    out[2, :5, 7] = expected[2, :5, 7]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", KINDS)
def test_counts_with_ties_infinities_and_nan(dtype):
    generator = np.random.default_rng(0)
    scores = generator.integers(-2, 3, (30, LANES)).astype(dtype)
    scores[0], scores[1], scores[2, 4] = np.inf, -np.inf, np.nan
    limits = generator.integers(-2, 3, (COUNTED, LANES)).astype(dtype)
    limits[1, 0] = np.inf
    counts = np.empty((COUNTED, LANES), np.int32)
    count(scores, limits, counts)
    np.testing.assert_array_equal(counts, (scores[:, None] >= limits).sum(axis=0))
    decided = np.empty((2, LANES), np.int32)
    decide(scores, dtype(0), decided)
    np.testing.assert_array_equal(decided[0], (scores > 0).sum(axis=0))
    np.testing.assert_array_equal(decided[1], np.isnan(scores).sum(axis=0))
    count(scores[:0], limits, counts)
    assert not counts.any()


def test_totals_are_those_of_plain_code_bit_for_bit():
    generator = np.random.default_rng(0)
    predicted, hits = generator.integers(0, 9, (2, LANES)).astype(np.int32)
    before = generator.random((4, LANES))
    weight, n = 0.1, 7
    totals = before.copy()
    add_up_decisions(predicted, hits, n, weight, totals)
    values = np.stack([predicted + n - 2 * hits, hits, predicted, np.full(LANES, n)])
    np.testing.assert_array_equal(totals, before + weight * values)

    above, below = generator.integers(1, 9, (2, 5, LANES)).astype(np.int32)
    totals = before[0].copy()
    add_up_ratios(above, below, weight, totals)
    mean = np.zeros(LANES)
    for j in range(5):
        mean += above[j] / below[j]
    np.testing.assert_array_equal(totals, before[0] + weight * (mean / 5))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("width", [1, 3, 8, 20])
@pytest.mark.parametrize("n", [0, 1, 6])
def test_sparse_rows(n, width, index, dtype):
    matrix = normal((9, width, LANES), dtype)
    data = normal(n, dtype, seed=1)
    places = np.random.default_rng(2).permutation(9)[:n].astype(index)
    out = normal((width, LANES), dtype, seed=3)
    expected = out + np.einsum("e,ewa->wa", data.astype(float), matrix[places])
    add_rows(data, places, matrix, out)
    np.testing.assert_allclose(out, expected, 0, 50 * np.finfo(dtype).eps)
