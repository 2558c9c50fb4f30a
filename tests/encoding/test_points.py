"""Points: quantiles, ranks and moments against plain Python and NumPy."""

from fractions import Fraction

import numpy as np
import pytest
from encoding_twins import (
    exact_deviation,
    exact_mean,
    exact_quantile,
    mid_rank,
    sorted_points,
)
from hypothesis import given
from hypothesis import strategies as st

from clml.encoding._points import (
    Points,
    apart,
    compressed,
    distinct,
    kept_apart,
    merged,
    moments,
    offsets_of,
    quantiles,
    ranked,
)

columns = st.lists(
    st.tuples(st.integers(-6, 6), st.integers(1, 4)), min_size=1, max_size=25
)


def points_of(values, weights=None):
    order = np.argsort(values, kind="stable")
    weights = np.ones(len(values)) if weights is None else np.asarray(weights, float)
    return distinct(
        np.asarray(values, float)[order], weights[order], np.array([0, len(values)])
    )


def test_distinct_of_several_columns():
    points = distinct(
        np.array([-0.0, 0.0, 5.0, 5.0, 5.0, 7.0]),
        np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        np.array([0, 0, 3, 3, 6, 6]),
    )
    np.testing.assert_array_equal(points.offsets, [0, 0, 2, 2, 4, 4])
    np.testing.assert_array_equal(points.values, [0.0, 5.0, 5.0, 7.0])
    np.testing.assert_array_equal(points.weights, [3.0, 3.0, 9.0, 6.0])
    assert not np.signbit(points.values).any()


def test_no_values_at_all():
    points = distinct(np.empty(0), np.empty(0), np.zeros(3, np.int64))
    np.testing.assert_array_equal(points.counts, [0, 0])
    for found in moments(*merged(points, points)):
        np.testing.assert_array_equal(found, [0.0, 0.0])


@given(columns, st.integers(1, 9), st.sampled_from([1e-30, 0.125, 1.0, 1e30]))
def test_quantiles_equal_the_twin(column, of, unit):
    values, weights = np.array(column, float).T
    values *= unit
    parts = np.arange(of + 1)
    found = quantiles(points_of(values, weights), np.array([0]), parts, of)[0]
    twin = sorted_points(values, weights)
    assert found.tolist() == [exact_quantile(twin, Fraction(int(t), of)) for t in parts]
    repeated = np.repeat(values, weights.astype(int))
    public = np.quantile(repeated, parts / of, method="averaged_inverted_cdf")
    if of in (1, 2, 4, 8):  # other shares are no float64
        np.testing.assert_allclose(found, public, rtol=1e-15)


@given(columns, st.sampled_from([0.1, 1 / 3, 1e-200, 1e200]))
def test_quantiles_do_not_depend_on_the_unit_of_weights(column, unit):
    values, weights = np.array(column, float).T
    parts = np.arange(9)
    a = quantiles(points_of(values, weights), np.array([0]), parts, 8)
    b = quantiles(points_of(values, weights * unit), np.array([0]), parts, 8)
    np.testing.assert_array_equal(a, b)


@given(columns, st.integers(2, 8))
def test_ranks_equal_the_twin(column, most):
    values, weights = np.array(column, float).T
    found, ranks, offsets = ranked(points_of(values, weights), np.array([0]), most)
    twin = sorted_points(values, weights)
    assert offsets.tolist() == [0, found.size]
    assert found.size <= most
    assert (found[0], found[-1]) == (twin[0][0], twin[-1][0])
    if len(twin) <= most:
        assert found.tolist() == [x for x, _ in twin]
    np.testing.assert_allclose(ranks, [mid_rank(twin, x) for x in found], rtol=1e-14)


@given(columns, st.sampled_from([1e-300, 1e-30, 0.125, 1.0, 1e30, 1e300]))
def test_moments_equal_the_twin(column, unit):
    values, weights = np.array(column, float).T
    weight, mean, deviation = moments(*points_of(values * unit, weights))
    twin = sorted_points(values * unit, weights)
    size = unit * 6
    assert weight[0] == weights.sum()
    assert abs(mean[0] - float(exact_mean(twin))) <= 1e-15 * size
    wanted = exact_deviation(twin) if values.any() else 0.0
    assert abs(deviation[0] - wanted) <= 1e-15 * size


def test_a_large_mean_costs_no_digits():
    values = 1e9 + np.random.default_rng(0).normal(size=1000)
    _, mean, deviation = moments(*points_of(values))
    np.testing.assert_allclose(mean, values.mean(), rtol=1e-15)
    np.testing.assert_allclose(deviation, values.std(), rtol=1e-7)


def twin_compressed(values, weights, most):
    total = sum(weights)
    groups, below = [], 0.0
    for i, (x, w) in enumerate(zip(values, weights, strict=True)):
        stretch = min(int((below + w / 2) / total * (most - 2)), most - 3)
        if i in (0, len(values) - 1):
            stretch = -1 - i
        if not groups or groups[-1][0] != stretch:
            groups.append((stretch, []))
        groups[-1][1].append((x, w))
        below += w
    result = []
    for _, members in groups:
        whole, so_far = sum(w for _, w in members), 0
        for x, w in members:
            so_far += w
            if so_far >= whole / 2:
                result.append((x, whole))
                break
    return result


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=60),
    st.integers(4, 20),
    st.booleans(),
)
def test_compressed_points_say_nearly_the_same(weights, most, heavy):
    weights = np.array(weights, float)
    if heavy:
        weights[len(weights) // 2] = 1000
    n = weights.size
    # A column that is not compressed lies on either side.
    points = Points(
        np.concatenate([[7.0], np.arange(n), [8.0]]),
        np.concatenate([[1.0], weights, [1.0]]),
        np.array([0, 1, n + 1, n + 2]),
    )
    few = compressed(points, most)
    assert (few.counts <= most).all()
    if n > most:
        assert few.values.base is None  # a view would keep what was there before
    assert (few.counts[0], few.counts[2]) == (1, 1)
    values, kept = (a[1:-1] for a in (few.values, few.weights))
    assert kept.sum() == weights.sum()
    assert (values[0], values[-1]) == (0, n - 1)
    shares = np.cumsum(weights) / weights.sum()
    found = np.array([kept[values <= x].sum() for x in range(n)]) / weights.sum()
    assert (np.abs(shares - found) <= 1 / (most - 2) + 1e-12).all()
    if heavy:
        assert n // 2 in values
    if n > most:
        assert list(zip(values, kept, strict=True)) == twin_compressed(
            range(n), weights, most
        )


def test_merged_points():
    a, b = points_of([1.0, 2.0]), points_of([2.0, 3.0], [5, 1])
    both = merged(a, b)
    np.testing.assert_array_equal(both.values, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(both.weights, [1.0, 6.0, 1.0])


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.3, 0.1 + 0.2, False),
        (1.0, 1.0 + 1e-14, True),
        (0.0, 1e-280, False),
        (0.0, 1e-260, True),
        (-1.7e308, 1.7e308, True),
        (5.0, 5.0, False),
        (np.nan, np.nan, False),
    ],
)
def test_apart(low, high, expected):
    assert apart(np.array([low]), np.array([high]))[0] == expected


def test_steps_of_rounding_add_up():
    steps = 1 + np.arange(100) * np.finfo(float).eps
    keep = kept_apart(steps, np.array([0, 100]))
    assert 2 <= keep.sum() < 20
    np.testing.assert_array_equal(offsets_of(np.array([1, 0])), [0, 1, 1])
