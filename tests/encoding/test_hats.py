"""Entries times a table are encoded rows times weights."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from clml.encoding import Bins, Hats, Quantiles, Robust, Standardized

ENCODINGS = (
    Bins(),
    Bins(n_bins=2),
    Bins(n_bins=5, numbers=False, indicators="scaled"),
    Robust(),
    Quantiles(),
    Standardized(),
)


def columns(n, seed, sparse):
    """Numbers, indicators, few values, missing ones, and constant columns."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 8)) ** 3
    X[:, 1] = generator.integers(0, 2, n)
    X[:, 2] = generator.integers(0, 4, n)
    X[:, 6] = 5.0
    if sparse:
        X[generator.random((n, 8)) < 0.6] = 0
    for j in (1, 3, 6):
        X[generator.random(n) < 0.2, j] = np.nan
    return X


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
@pytest.mark.parametrize("sparse", [False, True])
def test_equals_the_product_of_encoded_rows(encoding, sparse):
    X = columns(200, 0, sparse)
    fitted = encoding.fit(sp.csr_array(X) if sparse else X)
    hats = Hats(fitted)
    others = columns(60, 1, sparse) * 1.5
    others[0, 0], others[1, 4], others[2, 0] = 1e30, -1e7, np.nan
    # Every knot, from both sides.
    knots = fitted.knots[fitted.offsets[4] : fitted.offsets[5]][:50]
    others = np.concatenate([others, np.zeros((3 * len(knots), 8))])
    near = [np.nextafter(knots, -9e9), knots, np.nextafter(knots, 9e9)]
    others[60:, 4] = np.concatenate(near)
    given_rows = sp.csr_array(others) if sparse else others
    weights = np.random.default_rng(2).normal(size=(fitted.n_columns, 3))
    encoded = fitted.apply(given_rows)
    encoded = (encoded.toarray() if sparse else encoded).astype(np.float64)
    entries = sp.csr_array(hats.entries(given_rows), shape=(len(others), hats.n_rows))
    size = 1 + np.abs(encoded).max(axis=1, keepdims=True)
    error = np.abs(entries @ hats.table(weights) - encoded @ weights) / size
    assert error.max() < 2e-6


def test_two_entries_for_a_column_of_ramps():
    X = np.random.default_rng(0).normal(size=(100, 3))
    X[:, 1] = X[:, 1] > 0
    hats = Hats(Bins().fit(X))
    _, indices, indptr = hats.entries(X[:2])
    assert indptr.tolist() == [0, 5, 10]
    assert indices.max() < hats.n_rows == 10 + 1 + 10


@given(st.lists(st.integers(0, 49), max_size=9), st.booleans())
def test_rows_do_not_depend_on_each_other(rows, sparse):
    X = columns(50, 0, sparse)
    given_X = sp.csr_array(X) if sparse else X
    hats = Hats(Bins().fit(given_X))
    data, indices, indptr = hats.entries(given_X)
    found = hats.entries(given_X[rows])
    places = [np.arange(indptr[i], indptr[i + 1]) for i in rows]
    places = np.concatenate([*places, []]).astype(int)
    np.testing.assert_array_equal(found[0], data[places])
    np.testing.assert_array_equal(found[1], indices[places])


def test_zeros_that_are_stored_say_what_others_say():
    hats = Hats(Bins().fit(sp.csr_array(columns(50, 0, True))))
    stored = sp.csr_array((np.zeros(8), np.arange(8), [0, 8]), shape=(1, 8))
    assert [len(part) for part in hats.entries(stored)] == [0, 0, 2]


def test_when_they_pay():
    X = np.random.default_rng(0).normal(size=(100, 3))
    assert Hats(Bins().fit(X)).pays
    assert not Hats(Bins(n_bins=2).fit(X)).pays
    assert not Hats(Robust().fit(X)).pays
    assert Hats(Bins(n_bins=3).fit(sp.csr_array(X))).pays
    assert not Hats(Robust().fit(sp.csr_array(X))).pays


def test_bad_rows():
    hats = Hats(Bins().fit(np.random.default_rng(0).normal(size=(100, 3))))
    with pytest.raises(ValueError, match=r"X must have the 3 columns .* got 2"):
        hats.entries(np.ones((2, 2)))
    with pytest.raises(ValueError, match="infinity in column 1"):
        hats.entries([[0, np.inf, 0]])
