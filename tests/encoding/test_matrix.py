"""What X and weights may be."""

import numpy as np
import pytest
import scipy.sparse as sp

from clml.encoding._matrix import as_float64, as_matrix, as_weight


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([1.0, 2.0], "matrix of rows and columns"),
        (np.zeros((2, 2, 2)), r"got shape \(2, 2, 2\)"),
        ([["a", "b"]], "real numbers, got dtype"),
        (np.array([["a", 1]], dtype=object), "X must hold numbers"),
        (np.array([[1j]]), "got dtype complex"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "real numbers"),
        (sp.csr_array(np.array([[1j]])), "got dtype complex"),
        (sp.coo_array(np.array([1.0])), "matrix of rows"),
    ],
)
def test_refused(X, message):
    with pytest.raises(ValueError, match=message):
        as_matrix(X)


def test_objects_that_are_numbers():
    X = as_matrix(np.array([[1, 2.5], [True, None]], dtype=object))
    np.testing.assert_array_equal(X, [[1.0, 2.5], [1.0, np.nan]])


def test_duplicates_are_summed_in_a_copy():
    X = sp.csr_array(([1.0, 2.0, 5.0], ([1, 1, 0]), [0, 3]), shape=(1, 2))
    np.testing.assert_array_equal(as_matrix(X).toarray(), [[5.0, 3.0]])
    assert as_matrix(X).nnz == 2
    assert X.nnz == 3


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0], "one number for each of the 2 rows"),
        ([[1.0, 1.0]], "got shape"),
        ([1.0, -1.0], "at least 0"),
        ([1.0, np.nan], "finite sum"),
        ([1.0, np.inf], "finite sum"),
        ([1e308, 1e308], "finite sum"),
        (["a", "b"], "weight must hold numbers"),
    ],
)
def test_weights_refused(weight, message):
    with pytest.raises(ValueError, match=message):
        as_weight(weight, 2)


def test_what_does_not_fit_is_infinite():
    assert np.isinf(as_float64(np.array([np.finfo(np.longdouble).max]))).all()
