"""Ramps between quantiles."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import KBinsDiscretizer

from clml.encoding import Bins, Code


@pytest.mark.parametrize("weighted", [False, True])
def test_edges_are_scikit_learns(weighted):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(80, 3))
    weight = generator.integers(1, 5, 80).astype(float) if weighted else None
    other = KBinsDiscretizer(
        8, strategy="quantile", quantile_method="averaged_inverted_cdf"
    ).fit(X, sample_weight=weight)
    fitted = Bins().fit(X, weight)
    np.testing.assert_allclose(
        fitted.knots.reshape(3, 9), np.stack(other.bin_edges_), rtol=1e-14
    )


def test_ramps_tell_the_bin():
    """As many ramps are full as there are bins below."""
    X = np.random.default_rng(0).normal(size=(80, 1))
    fitted = Bins(5, numbers=False).fit(X)
    ramps = fitted.apply(X)
    assert ramps.shape == (80, 5)
    place = np.searchsorted(fitted.knots, X.ravel(), side="right") - 1
    np.testing.assert_array_equal((ramps == 1).sum(axis=1), place)
    assert ((ramps > 0) & (ramps < 1)).sum(axis=1).max() == 1
    with_number = Bins(5).fit(X).apply(X)
    np.testing.assert_array_equal(with_number[:, 1:], ramps)
    np.testing.assert_allclose(
        with_number[:, 0], (X.ravel() - X.mean()) / X.std(), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    ("column", "n_bins"),
    [
        ([0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 6),  # heavily tied
        ([0.0] * 30 + [1.0, 2.0], 0),  # edges 0 and 2: what the number says
        ([3.0, 9.0, 9.0], 0),  # two values
        ([0.0, 1.0, 0.0], 0),
        (list(range(100)), 8),
    ],
)
def test_columns_with_ties_have_fewer_bins(column, n_bins):
    fitted = Bins().fit(np.array(column)[:, None])
    assert fitted.n_columns == 1 + n_bins
    assert fitted.knots.size == (n_bins + 1 if n_bins else 0)


def test_without_numbers_no_column_is_lost():
    X = np.array([[0.0, 3.0]] * 30 + [[1.0, 9.0], [2.0, 9.0]])
    fitted = Bins(numbers=False).fit(X)
    assert fitted.names(["a", "b"]) == ["a from 0 to 2", "b"]
    assert fitted.code.tolist() == [Code.RAMPS, Code.STANDARD]


def test_names_tell_edges_apart():
    X = 1e6 + np.arange(100.0)[:, None] / 10
    names = Bins().fit(X).names()
    assert len(set(names)) == 9
    assert names[:2] == ["x0", "x0 from 1000000 to 1000001.2"]


def test_sparse_columns_with_negative_numbers():
    """Ramps that are full at 0 count from there."""
    X = np.array([[-4.0], [-2.0], [0.0], [2.0], [4.0]])
    rows = sp.csr_array(X)
    encoded = Bins(2, numbers=False).fit(rows).apply(rows)
    np.testing.assert_array_equal(
        encoded.toarray(), [[-1, 0], [-0.5, 0], [0, 0], [0, 0.5], [0, 1]]
    )
