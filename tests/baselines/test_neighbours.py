from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.neighbors import NearestNeighbors

from clml.baselines import _neighbours
from clml.baselines._neighbours import nearest_rows, searchable

METRICS = ["euclidean", "manhattan"]


def exact_distance(x, y, metric):
    """Something exact that grows with the distance."""
    x, y = ([Fraction(float(v)) for v in row] for row in (x, y))
    if metric == "euclidean":
        return sum((a - b) ** 2 for a, b in zip(x, y, strict=True))
    return sum(abs(a - b) for a, b in zip(x, y, strict=True))


def slow_nearest(training, rows, k, metric="euclidean"):
    """The k nearest, of equally distant ones those with lower row numbers."""
    nearest = []
    for i, x in enumerate(training if rows is None else rows):
        others = [j for j in range(len(training)) if rows is not None or j != i]
        others.sort(key=lambda j: (exact_distance(x, training[j], metric), j))
        nearest.append(sorted(others[:k]))
    return nearest


def find(training, rows, k, *, metric="euclidean", algorithm="auto", n_jobs=None):
    training = searchable(training)
    search = NearestNeighbors(metric=metric, algorithm=algorithm, n_jobs=n_jobs)
    return nearest_rows(search.fit(training), training, rows, k).tolist()


def test_by_hand():
    training = np.array([[0.0], [4], [2], [2], [9]])
    # Rows 2 and 3 are equally near to 1.9, and the lower number wins.
    assert find(training, [[1.9], [5]], 1) == [[2], [1]]
    assert find(training, [[1.9], [5]], 2) == [[2, 3], [1, 2]]
    assert find(training, None, 1) == [[2], [2], [3], [2], [1]]
    # From row 2, after row 3, rows 0 and 1 are both 2 away.
    assert find(training, None, 2) == [[2, 3], [2, 3], [0, 3], [0, 2], [1, 2]]


def test_distances_that_differ_in_rounding_only_are_tied():
    # 0.3 − 0.2 and 0.2 − 0.1 are the same distance, but not the same float.
    training = np.array([[0.3], [0.1]])
    assert 0.3 - 0.2 < 0.2 - 0.1
    assert find(training, [[0.2]], 1) == [[0]]
    assert find(training[::-1], [[0.2]], 1) == [[0]]


def test_distances_that_differ_by_more_are_not():
    training = np.array([[1 + 1e-8], [-1.0]])
    assert find(training, [[0.0]], 1) == [[1]]
    assert find(training[::-1], [[0.0]], 1) == [[0]]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_large_integers_that_differ_are_not_tied(kind):
    # Squared distances 10⁸ + 1 and 10⁸.
    training = kind(np.array([[1e4, 1], [1e4, 0]]))
    assert find(training, kind(np.zeros((1, 2))), 1) == [[1]]


def test_squares_that_vanish_are_refused():
    training = np.array([[1.0], [2.0]]) * 1e-170
    with pytest.raises(ValueError, match="got none above 2e-170"):
        find(training, None, 1)
    assert find(training * 1e30, None, 1) == [[1], [0]]
    assert find(training * 0, None, 1) == [[1], [0]]


TIED_ROWS = arrays(
    np.float64,
    st.tuples(st.integers(4, 14), st.integers(1, 3)),
    elements=st.integers(-2, 2),
)


@given(TIED_ROWS, st.integers(1, 5), st.sampled_from(METRICS), st.booleans())
def test_rows_full_of_ties(training, k, metric, sparse):
    k = min(k, len(training) - 1)
    rows = np.vstack([training[:3], np.zeros((1, training.shape[1]))])
    kind = sp.csr_array if sparse else np.asarray
    for queries in (None, rows):
        expected = slow_nearest(training, queries, k, metric)
        given_rows = None if queries is None else kind(queries)
        assert find(kind(training), given_rows, k, metric=metric) == expected


@given(TIED_ROWS, st.integers(1, 5))
def test_scaled_ties_are_still_ties(training, k):
    """Thirds are no floats, so distances are rounded, but ties are recognised."""
    k = min(k, len(training) - 1)
    for queries in (None, training[:3]):
        expected = slow_nearest(training, queries, k)
        scaled = None if queries is None else queries / 3
        assert find(training / 3, scaled, k) == expected


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(3))
def test_real_values(metric, seed):
    generator = np.random.default_rng(seed)
    training = generator.normal(size=(40, 6))
    rows = generator.normal(size=(10, 6))
    for queries in (None, rows):
        expected = slow_nearest(training, queries, 7, metric)
        assert find(training, queries, 7, metric=metric) == expected


@pytest.mark.parametrize("algorithm", ["brute", "kd_tree", "ball_tree"])
def test_large_means_do_not_drown_distances(algorithm):
    """Products of values near 1e8 are far larger than the squares of differences."""
    generator = np.random.default_rng(0)
    training = generator.normal(size=(40, 3)) + np.array([1e8, -1e8, 1e8])
    training[20:] -= 3e8
    expected = slow_nearest(training, None, 5)
    assert find(training, None, 5, algorithm=algorithm) == expected
    expected = slow_nearest(training, training[::4], 5)
    assert find(training, training[::4], 5, algorithm=algorithm) == expected


def test_a_huge_row_does_not_blur_the_others():
    training = np.random.default_rng(0).normal(size=(30, 3))
    training[7] = 1e12
    expected = slow_nearest(training, None, 4)
    # Seen from there, all others are equally far.
    expected[7] = [0, 1, 2, 3]
    assert find(training, None, 4) == expected


def grid(n=60):
    return np.random.default_rng(1).integers(0, 3, size=(n, 3)).astype(float)


@pytest.mark.parametrize("algorithm", ["brute", "kd_tree", "ball_tree", "auto"])
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("scale", [1, 1 / 3])
def test_algorithm_and_jobs_do_not_matter(algorithm, n_jobs, scale):
    expected = slow_nearest(grid(), None, 5)
    found = find(grid() * scale, None, 5, algorithm=algorithm, n_jobs=n_jobs)
    assert found == expected


@pytest.mark.parametrize("scale", [1, 1 / 3])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_blocks_do_not_matter(kind, scale, monkeypatch):
    expected = find(kind(grid() * scale), None, 5)
    monkeypatch.setattr(_neighbours, "_BLOCK_BYTES", 8 * 60 * 7)
    assert find(kind(grid() * scale), None, 5) == expected
    monkeypatch.setattr(_neighbours, "_BLOCK_BYTES", 1)
    assert find(kind(grid() * scale), None, 5) == expected


@pytest.mark.parametrize(
    "kinds", [(sp.csr_matrix, np.asarray), (np.asarray, sp.csr_array)]
)
def test_kinds_of_rows_may_differ(kinds):
    training, rows = (
        kind(X) for kind, X in zip(kinds, (grid(), grid()[::3]), strict=True)
    )
    assert find(training, rows, 4) == slow_nearest(grid(), grid()[::3], 4)


def test_repeated_entries_and_long_indices():
    X = grid()
    half = sp.csr_array(X / 2)
    row = np.repeat(np.arange(len(X)), np.diff(half.indptr))
    order = np.argsort(np.tile(row, 2), kind="stable")
    repeated = sp.csr_array(X.shape)
    repeated.data = np.tile(half.data, 2)[order]
    repeated.indices = np.tile(half.indices, 2)[order].astype(np.int64)
    repeated.indptr = (2 * half.indptr).astype(np.int64)
    before = repeated.nnz
    for metric in METRICS:
        found = find(repeated, repeated, 4, metric=metric)
        assert found == find(sp.csr_array(X), X, 4, metric=metric)
    assert repeated.nnz == before


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_all_rows_are_neighbours(kind):
    training = kind(np.array([[1.0], [2], [2]]))
    assert find(training, None, 2) == [[1, 2], [0, 2], [0, 1]]
    assert find(training, training, 3) == [[0, 1, 2]] * 3


def test_many_duplicates_are_never_their_own_neighbours():
    found = find(np.ones((20, 2)), None, 3)
    assert found == slow_nearest(np.ones((20, 2)), None, 3)
    assert found[0] == [1, 2, 3]
    assert found[19] == [0, 1, 2]


def test_squares_that_overflow_are_refused():
    training = np.array([[1.0], [2], [1e160], [3]])
    with pytest.raises(
        ValueError, match="too large in 1 rows, the first of them row 2"
    ):
        find(training, None, 2)
