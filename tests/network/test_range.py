import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from clml.network import Scaling, check_sparse_range, describe_contrast, scaled_features
from clml.network import range as _range

FORMS = [np.asarray, sp.csr_matrix]


def test_by_hand():
    # Mean 2 and deviation 1, then 5 and 2; a last column is left to the caller.
    X = np.array([[1.0, 3.0], [3.0, 7.0]])
    found = scaled_features(X, Scaling.fit(X), np.float32, n_more=1)
    assert found.dtype == np.float32
    assert found.shape == (2, 3)
    assert_array_equal(found[:, :2], [[-1, -1], [1, 1]])


@pytest.mark.parametrize("together", [1, 7, 1 << 18])
def test_pieces_change_nothing(monkeypatch, together):
    X = np.random.default_rng(0).normal(size=(50, 3)) * [1, 1e6, 1e-9]
    scaling = Scaling.fit(X)
    monkeypatch.setattr(_range, "_TOGETHER", together)
    found = scaled_features(X, scaling, np.float64)
    assert_array_equal(found, scaling.apply(X))


@pytest.mark.parametrize("shape", [(0, 3), (4, 0)])
def test_nothing_to_scale(shape):
    scaling = Scaling.identity(shape[1])
    assert scaled_features(np.empty(shape), scaling, np.float32).shape == shape
    check_sparse_range(sp.csr_array(shape), scaling, np.float32)
    assert describe_contrast(np.empty(shape), scaling) is None


def refused(X, scaling, dtype):
    """Return the message that dense and sparse features are refused with, or None."""
    found = []
    for form in (np.asarray, sp.csr_array):
        try:
            if sp.issparse(form(X)):
                check_sparse_range(form(X), scaling, dtype)
            else:
                scaled_features(form(X), scaling, dtype)
        except ValueError as error:
            found.append(str(error))
        else:
            found.append(None)
    dense, sparse = found
    assert dense == sparse
    return dense


@pytest.mark.parametrize(
    ("largest", "dtype", "fine"),
    [
        (9e14, np.float32, True),
        (1.1e15, np.float32, False),
        (1e40, np.float32, False),
        (9e99, np.float64, True),
        (1.1e100, np.float64, False),
        (1e300, np.float64, False),
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_what_overflows_is_said(largest, dtype, fine, sign):
    X = np.array([[1.0, 2.0], [sign * largest, 0.0]])
    message = refused(X, Scaling.identity(2), dtype)
    assert (message is None) == fine
    if not fine:
        assert (
            f"finite when scaled, weighted and squared in {dtype.__name__}" in message
        )
        assert f"got values up to {largest:.3g}" in message


def test_what_counts_is_the_scaled_size():
    X = np.array([[1e20, 1.0], [3e20, 1.0]])
    assert refused(X, Scaling.fit(X), np.float32) is None
    assert refused(X / 1e20, Scaling.fit(X / 1e50), np.float32) is not None
    # x / s overflows where x does not, and x − m where neither does.
    tiny = Scaling(np.zeros(2), np.full(2, 1e-300))
    assert refused(X, tiny, np.float64) is not None
    far = Scaling(np.full(2, -1.7e308), np.ones(2))
    assert refused(np.full((1, 2), 1.7e308), far, np.float64) is not None


@given(st.integers(-320, 298), st.integers(0, 2**32 - 1), st.sampled_from([1, -1, 1e9]))
def test_what_was_fitted_is_in_range(exponent, seed, mean):
    rng = np.random.default_rng(seed)
    X = (rng.uniform(-1, 1, size=(12, 3)) + mean) * 10.0**exponent
    for form in (np.asarray, sp.csr_array):
        assert refused(X, Scaling.fit(form(X)), np.float32) is None


X_OK = np.random.default_rng(0).normal(size=(20, 3))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (X_OK, None),
        (X_OK * 1e-5, None),
        (X_OK * 1e12, None),
        (X_OK * [1, 1e-20, 0], None),
        (X_OK[:1] * 1e-20, None),  # one row is no two
        (X_OK * 1e-20, "differ by .*e-20 at most, beside numbers of size 1,"),
        (X_OK * 1e-310, "beside numbers of size 1,"),
        (X_OK + 1e9, r"beside numbers of size 1e\+09"),
        (X_OK * [1, 1, 0] + [0, 0, 1e12], r"beside numbers of size 1e\+12"),
        (np.ones((20, 3)), "No column of X varies"),
    ],
)
def test_rows_that_float32_cannot_tell_apart(form, X, message):
    said = describe_contrast(form(X), Scaling.identity(3))
    if message is None:
        assert said is None
    else:
        assert re.search(message, said)
        assert "all predictions will be the same" in said
    scaled = describe_contrast(form(X), Scaling.fit(form(X)))
    hopeless = np.abs(X).max() < 1e-270 or (X == X[0]).all()
    assert (scaled is None) == (not hopeless or len(X) == 1)


@pytest.mark.parametrize("form", FORMS)
def test_said_of_rows_that_are_the_same_in_float32(form):
    """The message is true: such rows give the same sums in float32."""
    rng = np.random.default_rng(1)
    X, weights = X_OK * 1e-9, rng.normal(size=3).astype(np.float32)
    assert describe_contrast(form(X), Scaling.identity(3)) is not None
    sums = X.astype(np.float32) @ weights + np.float32(1)
    assert_allclose(sums, sums[0], rtol=2e-7)
