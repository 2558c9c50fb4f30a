"""Summaries: merged from parts they are those of all rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.preprocessing import StandardScaler

from clml.encoding import ColumnKind, ColumnSummary, _summary

numbers = st.sampled_from([np.nan, 0.0, 0.0, 0.0, -0.0, 1.0, 1.0, -2.5, 3.0, 7.25])
matrices = hnp.arrays(np.float64, (12, 3), elements=numbers)
weights = hnp.arrays(np.float64, 12, elements=st.integers(0, 3))
FIELDS = ("weight", "missing", "mean", "deviation", "exact", "low", "high", "kinds")


def assert_same(a, b):
    """Hold two summaries together bit for bit."""
    assert a.total == b.total
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), name)
    for mine, other in zip(a.points, b.points, strict=True):
        np.testing.assert_array_equal(mine, other)


def test_by_hand():
    X = np.array([[1.0, np.nan, 0.0], [3.0, np.nan, 1.0], [8.0, np.nan, np.nan]])
    summary = ColumnSummary.of(X, [1, 1, 2])
    assert summary.total == 4
    np.testing.assert_array_equal(summary.weight, [4.0, 0.0, 2.0])
    np.testing.assert_array_equal(summary.missing, [0.0, 4.0, 2.0])
    np.testing.assert_array_equal(summary.mean, [5.0, 0.0, 0.5])
    np.testing.assert_allclose(summary.deviation, [np.std([1, 3, 8, 8]), 0.0, 0.5])
    np.testing.assert_array_equal(summary.low, [1.0, np.nan, 0.0])
    np.testing.assert_array_equal(summary.points.weights, [1, 1, 2, 1, 1])
    assert summary.n_inputs == 3


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([np.nan, np.nan, np.nan], ColumnKind.EMPTY),
        ([2.0, 2.0, np.nan], ColumnKind.CONSTANT),
        ([0.3, 0.1 + 0.2, 0.3], ColumnKind.CONSTANT),
        ([0.0, 1e-290, 1e-280], ColumnKind.CONSTANT),
        ([1.0, 1.0, 1.0], ColumnKind.CONSTANT),
        ([0.0, 1.0, np.nan], ColumnKind.INDICATOR),
        ([-0.0, 0.0, 1.0], ColumnKind.INDICATOR),
        ([0.0, 2.0, 0.0], ColumnKind.TWO_VALUED),
        ([0.0, 1.0, 2.0], ColumnKind.NUMBER),
        ([-1e308, 0.0, 1e308], ColumnKind.NUMBER),
    ],
)
def test_kinds(column, kind):
    assert ColumnSummary.of(np.array(column)[:, None]).kinds == [kind]


@given(matrices, weights, st.integers(0, 12), st.booleans())
def test_parts_merge_to_the_whole(X, weight, cut, sparse):
    rows = sp.csr_array(X) if sparse else X
    parts = [
        ColumnSummary.of(rows[some], weight[some])
        for some in (slice(0, cut), slice(cut, None))
    ]
    whole = ColumnSummary.of(rows, weight)
    assert_same(parts[0].merged(parts[1]), whole)
    assert_same(parts[1].merged(parts[0]), whole)


@given(matrices, weights, st.randoms())
def test_weights_are_frequencies_and_order_does_not_matter(X, weight, random):
    repeated = np.repeat(np.arange(12), weight.astype(int))
    random.shuffle(repeated)
    assert_same(ColumnSummary.of(X[repeated]), ColumnSummary.of(X, weight))


@given(matrices, weights, st.booleans())
def test_sparse_counts_what_is_not_stored(X, weight, unweighted):
    weight = None if unweighted else weight
    sparse = sp.csc_matrix(X)
    sparse.data = sparse.data.copy()
    summary = ColumnSummary.of(sparse, weight)
    assert summary.sparse
    assert_same(summary, ColumnSummary.of(X, weight))


def test_stored_zeros_and_weights_that_round():
    X = sp.csr_array(([0.0, 5.0], ([0, 1], [0, 0])), shape=(3, 2))
    summary = ColumnSummary.of(X, [0.1, 0.2, 0.3])
    np.testing.assert_allclose(summary.weight, [0.6, 0.6])
    np.testing.assert_allclose(summary.points.weights, [0.4, 0.2, 0.6])
    # What remains of 1e17 + 1 is nothing, and yet there is a row.
    X = sp.csr_array(np.array([[5.0], [0.0]]))
    assert ColumnSummary.of(X, [1e17, 1.0]).points.values.tolist() == [0.0, 5.0]


@given(
    hnp.arrays(np.float64, (15, 2), elements=st.floats(-100, 100, width=32)),
    st.sampled_from([1e-30, 1.0, 1e30]),
)
def test_moments_as_scikit_learn_has_them(X, unit):
    weight = np.arange(15.0)
    scaler = StandardScaler().fit(X, sample_weight=weight)
    summary = ColumnSummary.of(X * unit, weight)
    np.testing.assert_allclose(summary.mean, scaler.mean_ * unit, atol=1e-12 * unit)
    np.testing.assert_allclose(
        summary.deviation**2, scaler.var_ * unit**2, rtol=1e-9, atol=1e-11 * unit**2
    )


def test_more_values_than_are_kept(monkeypatch):
    monkeypatch.setattr(_summary, "MOST_VALUES", 50)
    generator = np.random.default_rng(0)
    X = np.column_stack([generator.normal(size=1000), generator.integers(0, 9, 1000)])
    whole = ColumnSummary.of(X)
    parts = [ColumnSummary.of(X[i::8]) for i in range(8)]
    while len(parts) > 1:
        parts = [a.merged(b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    (merged,) = parts
    for summary in (whole, merged):
        np.testing.assert_array_equal(summary.exact, [False, True])
        assert (summary.points.counts <= 50).all()
        np.testing.assert_allclose(summary.mean, X.mean(axis=0), rtol=1e-13)
        np.testing.assert_allclose(summary.deviation, X.std(axis=0), rtol=1e-13)
        np.testing.assert_array_equal(summary.low, X.min(axis=0))
        np.testing.assert_array_equal(summary.high, X.max(axis=0))
        np.testing.assert_array_equal(summary.weight, [1000.0, 1000.0])
        values, weight, offsets = summary.points
        shares = np.cumsum(weight[: offsets[1]]) / 1000
        true = [(X[:, 0] <= x).mean() for x in values[: offsets[1]]]
        # Parts of 125 rows were compressed, and then three times what they merge to.
        assert np.abs(shares - true).max() <= (1 if summary is whole else 4) / 48
    empty = ColumnSummary.of(X[:0])
    assert_same(empty.merged(whole), whole)
    assert_same(whole.merged(empty), whole)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_same_however_columns_are_cut(monkeypatch, sparse):
    generator = np.random.default_rng(0)
    X = generator.integers(0, 4, (30, 7)) * generator.random((30, 7))
    X[generator.random((30, 7)) < 0.2] = np.nan
    X[:, 3] = 0
    X = sp.csr_array(X) if sparse else X
    weight = generator.random(30)
    whole = ColumnSummary.of(X, weight)
    for together in (1, 60, 100):
        monkeypatch.setattr(_summary, "TOGETHER", together)
        assert_same(ColumnSummary.of(X, weight), whole)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_infinity_is_refused_by_column(make):
    X = np.array([[0.0, 1.0, np.nan], [1.0, -np.inf, 2.0]])
    with pytest.raises(ValueError, match=r"X must hold finite.*infinity in column 1"):
        ColumnSummary.of(make(X))
    assert ColumnSummary.of(make(X), [1, 0]).total == 1  # counts for nothing


def test_what_does_not_merge():
    X = np.ones((2, 3))
    summary = ColumnSummary.of(X)
    with pytest.raises(ValueError, match="got 2 dense columns beside 3 dense"):
        summary.merged(ColumnSummary.of(X[:, :2]))
    with pytest.raises(ValueError, match="got 3 sparse columns beside 3 dense"):
        summary.merged(ColumnSummary.of(sp.csr_array(X)))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_nothing_to_summarise(make):
    assert ColumnSummary.of(make(np.ones((3, 0)))).kinds == []
    assert ColumnSummary.of(make(np.ones((0, 2)))).kinds == [ColumnKind.EMPTY] * 2


def test_the_largest_numbers():
    top = np.finfo(np.float64).max
    summary = ColumnSummary.of(np.array([[top], [-top]]))
    np.testing.assert_array_equal(summary.mean, [0.0])
    np.testing.assert_array_equal(summary.deviation, [top])


@pytest.mark.parametrize("shape", [(50, 1), (50, 3)])
def test_rows_stay_as_they_are(shape):
    """Also those whose columns lie side by side already, and those of a frame."""
    X = np.asfortranarray(np.random.default_rng(0).normal(size=shape))
    before = X.copy()
    ColumnSummary.of(X)
    np.testing.assert_array_equal(X, before)
    X.flags.writeable = False
    ColumnSummary.of(X)
