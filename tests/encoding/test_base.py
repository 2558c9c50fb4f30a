"""What all encodings have in common, held for each."""

import numpy as np
import pytest
import scipy.sparse as sp
from encoding_twins import ENCODINGS, twin_apply
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone

from clml.encoding import (
    Bins,
    ColumnSummary,
    Encoding,
    FittedEncoding,
    Quantiles,
    Robust,
    Standardized,
    _fitted,
)

each = pytest.mark.parametrize("encoding", ENCODINGS, ids=repr)
entries = st.sampled_from([np.nan, *range(-4, 9), 0, 0, 0, 0, 1, 1])
matrices = hnp.arrays(np.float64, (10, 3), elements=entries)
weights = hnp.arrays(np.float64, 10, elements=st.integers(0, 3)).filter(np.any)
units = st.sampled_from([1e-30, 0.1, 1.0, 1e30])
few = settings(max_examples=25)


@each
@few
@given(matrices, weights, matrices, units, st.booleans())
def test_equals_the_twin(encoding, train, weight, X, unit, sparse):
    train, X = train * unit, X * unit * 1.5
    rows = sp.csr_array(train) if sparse else train
    found = encoding.fit(rows, weight).apply(sp.csr_array(X) if sparse else X)
    assert sp.issparse(found) == sparse
    found = found.toarray() if sparse else found
    wanted = twin_apply(
        encoding, train.tolist(), weight.tolist(), X.tolist(), centred=not sparse
    )
    assert found.shape == (10, len(wanted[0]))
    np.testing.assert_allclose(
        found, np.array(wanted).reshape(found.shape), rtol=2e-6, atol=2e-6
    )


@each
@few
@given(
    hnp.arrays(np.float64, 9, elements=st.floats(-1e30, 1e30)),
    hnp.arrays(
        np.float64, 40, elements=st.floats(allow_nan=False, allow_infinity=False)
    ),
    st.booleans(),
)
def test_monotone_and_finite(encoding, column, x, sparse):
    column, x = column[:, None], np.sort(x)[:, None]
    x = np.concatenate([x, np.sort(np.concatenate([column, x]), axis=0)])
    fitted = encoding.fit(sp.csr_array(column) if sparse else column)
    assert np.isfinite(fitted.apply(column)).all()
    encoded = fitted.apply(x)
    assert np.isfinite(encoded).all()
    assert (np.abs(encoded) <= 2e6).all()
    for part in (encoded[:40], encoded[40:]):
        size = np.maximum(np.abs(part).max(initial=1.0), 1.0)
        assert (np.diff(part, axis=0) >= -2e-7 * size).all()


@each
@pytest.mark.parametrize("sparse", [False, True])
@few
@given(X=matrices, weight=weights, random=st.randoms())
def test_order_and_repetition_of_rows(encoding, sparse, X, weight, random):
    repeated = np.repeat(np.arange(10), weight.astype(int))
    random.shuffle(repeated)
    make = sp.csr_array if sparse else np.asarray
    a = encoding.fit(make(X), weight).state()
    b = encoding.fit(make(X[repeated])).state()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], name)


@each
@given(X=matrices)
@few
def test_rows_are_encoded_by_themselves(encoding, X):
    fitted = encoding.fit(X)
    whole = fitted.apply(X)
    assert whole.dtype == np.float32
    assert whole.flags.c_contiguous
    for i in range(10):
        np.testing.assert_array_equal(fitted.apply(X[i : i + 1])[0], whole[i])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_fitted, "_TOGETHER", 7)
        np.testing.assert_array_equal(fitted.apply(X), whole)


@each
@given(X=matrices)
@few
def test_sparse_rows(encoding, X):
    """They stay sparse, and equal dense ones that are encoded without centring."""
    rows = sp.csr_array(X)
    fitted = encoding.fit(rows)
    encoded = fitted.apply(rows)
    assert encoded.dtype == np.float32
    assert (encoded.data != 0).all()
    assert encoded.shape == (10, fitted.n_columns)
    np.testing.assert_array_equal(encoded.toarray(), fitted.apply(X))
    np.testing.assert_array_equal(fitted.apply(np.zeros((1, 3))), 0)
    # The dense encoding differs by what it makes of 0.
    dense = encoding.fit(X)
    difference = dense.apply(X) - dense.apply(np.zeros((1, 3)))
    known = np.repeat(~np.isnan(X), np.diff(dense._place), axis=1)
    np.testing.assert_allclose(
        encoded.toarray()[known], difference[known], rtol=1e-5, atol=1e-6
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_fitted, "_TOGETHER", 3)
        again = fitted.apply(rows)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(again, name), getattr(encoded, name))


@each
def test_kinds_of_sparse_matrices(encoding):
    X = np.array([[0.0, 3.0, 0.0], [2.0, 0.0, 1.0], [5.0, -1.0, np.nan]])
    fitted = encoding.fit(sp.coo_matrix(X))
    wanted = fitted.apply(X)
    for make in (sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.lil_matrix):
        encoded = fitted.apply(make(X))
        assert isinstance(encoded, sp.csr_matrix)
        np.testing.assert_array_equal(encoded.toarray(), wanted)
    for make in (sp.csr_array, sp.csc_array, sp.dok_array):
        encoded = fitted.apply(make(X))
        assert isinstance(encoded, sp.csr_array)
        np.testing.assert_array_equal(encoded.toarray(), wanted)
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = (
        a.astype(np.int64) for a in (wide.indices, wide.indptr)
    )
    np.testing.assert_array_equal(fitted.apply(wide).toarray(), wanted)


@each
def test_merged_parts_fit_as_the_whole(encoding):
    X = np.random.default_rng(0).integers(-5, 20, (60, 4)) * 0.1
    parts = [ColumnSummary.of(X[i : i + 7]) for i in range(0, 60, 7)]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merged(part)
    a, b = encoding.fit_summary(merged).state(), encoding.fit(X).state()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], name)


@each
def test_columns_that_say_nothing_take_no_column(encoding):
    X = np.array([[5.0, np.nan, 0.3, 0.0], [5.0, np.nan, 0.1 + 0.2, 0.0]])
    fitted = encoding.fit(X)
    assert (fitted.n_inputs, fitted.n_columns, fitted.names()) == (4, 0, [])
    assert fitted.apply(X * 7).shape == (2, 0)
    encoded = encoding.fit(sp.csr_array(X)).apply(sp.csr_array(X))
    assert encoded.shape == (2, 0)
    assert encoding.fit(X[:1]).n_columns == 0  # one row
    assert encoding.fit(X[:, :0]).apply(X[:, :0]).shape == (2, 0)
    assert fitted.apply(X[:0]).shape == (0, 0)


@each
def test_missing_values(encoding):
    X = np.array([[1.0, 0.0, 5.0], [np.nan, 1.0, 5.0], [3.0, np.nan, np.nan]])
    fitted = encoding.fit(X)
    assert fitted.names(["a", "b", "c"]) == [
        "a",
        "a is missing",
        "b",
        "b is missing",
        "c is missing",
    ]
    encoded = fitted.apply(X)
    np.testing.assert_array_equal(encoded[:, [1, 3, 4]], np.isnan(X))
    np.testing.assert_array_equal(encoded[1, 0], 0)
    np.testing.assert_array_equal(encoded[2, 2], 0)
    # Missing values of rows that count for nothing are not seen.
    assert not encoding.fit(X, [1, 0, 0]).missing.any()


@each
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_what_was_never_missing_is_the_median(encoding, form):
    """No member of a mixed ensemble may take it for an extreme value."""
    X = np.array(
        [[1.0, 0, 0, 7], [2, 1, 0, 7], [4, 1, 0, 9], [8, 1, 3, 7], [9, 1, 5, 9]]
    )
    fitted = encoding.fit(form(X))
    assert not fitted.missing.any()
    found = fitted.apply(form(np.full((1, 4), np.nan)))
    wanted = fitted.apply(form(np.median(X, axis=0, keepdims=True)))
    if form is sp.csr_array:
        found, wanted = found.toarray(), wanted.toarray()
    np.testing.assert_array_equal(found, wanted)


@each
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_refused(encoding, value):
    X = np.array([[1.0, 2.0], [2.0, 3.0], [4.0, 5.0]])
    bad = X.copy()
    bad[1, 1] = value
    fitted, sparse = encoding.fit(X), encoding.fit(sp.csr_array(X))
    for call in (encoding.fit, fitted.apply, sparse.apply):
        with pytest.raises(ValueError, match=r"X must hold finite.*column 1"):
            call(bad)
    with pytest.raises(ValueError, match=r"X must hold finite.*column 1"):
        sparse.apply(sp.csr_array(bad))


@each
@pytest.mark.parametrize(
    "dtype", [bool, np.int8, np.uint64, np.int64, np.float16, np.float32, object]
)
def test_types(encoding, dtype):
    X = np.array([[0, 3, 1], [1, 0, 0], [1, 7, 0], [0, 9, 1]]).astype(dtype)
    wanted = encoding.fit(X.astype(float)).apply(X.astype(float))
    np.testing.assert_array_equal(encoding.fit(X).apply(X), wanted)
    np.testing.assert_array_equal(encoding.fit(X.tolist()).apply(X.tolist()), wanted)
    fortran = np.asfortranarray(X)
    np.testing.assert_array_equal(encoding.fit(fortran).apply(fortran), wanted)
    if dtype not in (np.float16, object):
        sparse = sp.csr_array(X)
        wanted = encoding.fit(sparse.astype(float)).apply(sparse.astype(float))
        found = encoding.fit(sparse).apply(sparse)
        np.testing.assert_array_equal(found.toarray(), wanted.toarray())


@each
def test_extreme_numbers(encoding):
    single = np.finfo(np.float32)
    column = [single.max, -single.max, single.tiny, -single.tiny, 0.0, 1.0]
    mixed = [1e-30, 1e30, 1.0, -1e30, 2e-30, 5.0]
    double = np.finfo(np.float64)
    largest = [double.max, -double.max, 0.0, double.tiny, 5e-324, 1.0]
    X = np.array([column, mixed, largest]).T
    for rows in (X, X[:, :2].astype(np.float32), sp.csr_array(X)):
        for weight in (None, [1e-300, 1, 1e-300, 1, 1, 1e300]):
            encoded = encoding.fit(rows, weight).apply(rows)
            values = encoded.toarray() if sp.issparse(encoded) else encoded
            assert np.isfinite(values).all()
    # All 1e-30 apart, around 0: the unit does not matter.
    generator = np.random.default_rng(0)
    X = generator.normal(size=(50, 2))
    np.testing.assert_allclose(
        encoding.fit(X * 2.0**-100).apply(X * 2.0**-100),
        encoding.fit(X).apply(X),
        rtol=1e-6,
    )


@each
def test_inputs_are_left_alone(encoding):
    X = np.array([[1.0, np.nan], [2.0, 0.0], [4.0, -0.0]])
    X.setflags(write=False)
    weight = np.array([1.0, 2.0, 0.0])
    weight.setflags(write=False)
    encoding.fit(X, weight).apply(X)
    rows = sp.csr_array(([5.0, 1.0, 2.0], [1, 0, 0], [0, 3, 3]), shape=(2, 2))
    rows.data.setflags(write=False)
    rows.indices.setflags(write=False)
    encoding.fit(rows).apply(rows)
    assert rows.data.tolist() == [5.0, 1.0, 2.0]


@each
def test_no_rows_to_fit(encoding):
    X = np.ones((2, 2))
    for rows, weight in ((X[:0], None), (X, [0, 0]), (sp.csr_array(X), [0, 0])):
        with pytest.raises(ValueError, match="X must have a row of positive weight"):
            encoding.fit(rows, weight)


@each
def test_columns_that_do_not_fit(encoding):
    fitted = encoding.fit(np.eye(3))
    with pytest.raises(ValueError, match=r"X must have the 3 columns.*got 2"):
        fitted.apply(np.eye(2))
    with pytest.raises(ValueError, match="feature_names must be 3 names, got 1"):
        fitted.names(["a"])


def test_sparse_rows_of_a_dense_fit():
    X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    # Where zeros stay zeros there is nothing against it.
    fitted = Standardized().fit(X)
    np.testing.assert_array_equal(fitted.apply(sp.csr_array(X)).toarray(), X)
    fitted = Standardized(indicators="scaled").fit(X)
    with pytest.raises(ValueError, match=r"X must be dense.*zeros become other"):
        fitted.apply(sp.csr_array(X))


@each
def test_values(encoding):
    assert clone(encoding) == encoding
    assert clone(encoding) is not encoding
    assert eval(repr(encoding)) == encoding
    assert encoding.fit_summary(ColumnSummary.of(np.eye(2))).n_columns == 2
    changed = clone(encoding).set_params(indicators="none")
    assert changed != encoding
    with pytest.raises(ValueError, match="indicators must be 'plain' or 'scaled'"):
        changed.fit(np.eye(2))


@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        (Robust(0), "limit must be a number from 0.001 to 1e\\+06, got 0"),
        (Robust(np.inf), "limit must be"),
        (Robust(np.nan), "limit must be"),
        (Robust("3"), "limit must be"),
        (Robust(True), "limit must be"),
        (Quantiles(1), "n_quantiles must be a whole number of at least 2, got 1"),
        (Quantiles(10.0), "n_quantiles must be"),
        (Bins(1), "n_bins must be a whole number of at least 2, got 1"),
        (Bins(True), "n_bins must be"),
        (Bins(numbers="yes"), "numbers must be True or False, got 'yes'"),
    ],
)
def test_parameters_refused(encoding, message):
    with pytest.raises(ValueError, match=message):
        encoding.fit(np.eye(2))


def test_numpy_numbers_as_parameters():
    X = np.arange(12.0)[:, None]
    for encoding in (Bins(np.int64(3)), Quantiles(np.int32(3)), Robust(np.float32(2))):
        fitted = encoding.fit(X)
        again = FittedEncoding.from_state(fitted.state())
        np.testing.assert_array_equal(again.apply(X), fitted.apply(X))


def test_the_base_says_nothing_about_numbers():
    with pytest.raises(TypeError, match="abstract"):
        Encoding()
