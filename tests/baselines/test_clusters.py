"""k-means against scikit-learn's, from the same start."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from clml.baselines._clusters import _means, cluster_centres, move_centres


def test_by_hand():
    rows = np.array([[0.0], [2], [10], [14]])
    # All but the first row go to the second centre, whose mean is 26/3, and then the
    # row at 2 to the first.
    found = move_centres(rows, np.array([[0.0], [2]]))
    np.testing.assert_allclose(found, [[1], [12]])


@pytest.mark.parametrize("seed", range(3))
def test_as_scikit_learn_from_the_same_start(seed):
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(200, 5))
    start = rows[generator.choice(200, 12, replace=False)]
    expected = KMeans(12, init=start, n_init=1, max_iter=100, tol=0).fit(rows)
    found = move_centres(rows, start)
    np.testing.assert_allclose(found, expected.cluster_centers_, atol=1e-10)


def test_more_rows_than_a_block_holds(monkeypatch):
    rows = np.random.default_rng(0).normal(size=(50, 3))
    expected = move_centres(rows, rows[:4])
    monkeypatch.setattr("clml.baselines._gaussian_labels._BLOCK_BYTES", 8 * 4 * 7)
    np.testing.assert_array_equal(move_centres(rows, rows[:4]), expected)


def test_an_empty_cluster_begins_with_the_farthest_row():
    rows = np.array([[0.0], [1], [2], [9]])
    squares = np.array([1.0, 0, 1, 64])
    found = _means(rows, np.array([0, 0, 0, 0]), squares, 3)
    assert found.ravel().tolist() == [3, 9, 0]


def test_one_cluster_is_the_mean():
    rows = np.array([[0.0, 1], [3, 1], [3, 4]])
    found = cluster_centres(rows, 1, np.random.RandomState(0))
    assert found.tolist() == [[2, 2]]


def test_equal_rows_and_as_many_clusters_as_rows():
    random = np.random.RandomState(0)
    found = cluster_centres(np.ones((6, 2)), 3, random)
    assert found.tolist() == [[1, 1]] * 3
    rows = np.arange(4.0)[:, None]
    assert sorted(cluster_centres(rows, 4, random).ravel()) == [0, 1, 2, 3]
