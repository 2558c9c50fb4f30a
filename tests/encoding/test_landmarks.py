"""Distances from landmarks and their kernel, beside SciPy's and by row."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from clml.encoding._landmarks import Landmarks

FORMS = {"dense": np.asarray, "sparse": sp.csr_array}


def numbers(n, d=11, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d)).astype(np.float32)
    X[generator.random((n, d)) < 0.5] = 0
    return X


def oracle(X, landmarks, norm):
    return cdist(X, landmarks, "cityblock" if norm == 1 else "sqeuclidean")


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("kept", FORMS)
@pytest.mark.parametrize("given", FORMS)
@pytest.mark.parametrize("m", [1, 8, 37, 300])
def test_equals_scipy(norm, kept, given, m):
    landmarks, X = numbers(m), numbers(25, seed=1)
    beside, rows = Landmarks(FORMS[kept](landmarks), norm), FORMS[given](X)
    expected = oracle(X, landmarks, norm)
    assert_allclose(beside.distances(rows), expected, atol=1e-12)
    near = beside.near(rows, 0.3)
    assert near.shape == (25, m)
    assert_allclose(near, np.exp(-0.3 * expected), rtol=1e-11)
    for some in ([4], [9, 2, 2], []):
        assert_array_equal(beside.near(rows[some], 0.3), near[some])


@pytest.mark.parametrize("norm", [1, 2])
def test_landmarks_themselves_and_what_is_far_away(norm):
    landmarks = numbers(20)
    beside = Landmarks(landmarks, norm)
    assert_allclose(np.diag(beside.near(landmarks, 1.0)), 1, rtol=1e-12)
    far = np.full((1, 11), 1e6, np.float32)
    assert (beside.near(far, 1e30) < 1e-300).all()
    assert np.isfinite(beside.near(far, 1e30)).all()
