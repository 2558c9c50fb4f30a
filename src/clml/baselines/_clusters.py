"""k-means: the centres of some rows."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.cluster import kmeans_plusplus

from ._gaussian_labels import row_blocks

_MOST_ROUNDS = 100


def cluster_centres(
    rows: NDArray[np.float64], n_clusters: int, random: np.random.RandomState
) -> NDArray[np.float64]:
    """Return the centres (n_clusters, D) that Lloyd's algorithm comes to.

    It starts from k-means++ and ends when no row changes its cluster, after 100 rounds
    at most. A cluster that has lost its rows begins anew with the row that is the
    farthest from its centre. It runs in one thread and warns of nothing, other than
    that of scikit-learn: equal rows may well be fewer than clusters.

    Parameters
    ----------
    rows : array (n, D)
        At least as many as clusters.
    n_clusters : int
    random : RandomState

    Examples
    --------
    >>> import numpy as np
    >>> from clml.baselines._clusters import cluster_centres
    >>> rows = np.array([[0.0], [1.0], [8.0], [9.0]])
    >>> np.sort(cluster_centres(rows, 2, np.random.RandomState(0)), axis=0)
    array([[0.5],
           [8.5]])
    """
    if n_clusters == 1:
        return rows.mean(axis=0, keepdims=True)
    start, _ = kmeans_plusplus(rows, n_clusters, random_state=random)
    return move_centres(rows, np.array(start))


def move_centres(
    rows: NDArray[np.float64], centres: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return where Lloyd's algorithm moves some centres."""
    before = None
    for _ in range(_MOST_ROUNDS):
        nearest, squares = _nearest_centres(rows, centres)
        if before is not None and (nearest == before).all():
            break
        before = nearest
        centres = _means(rows, nearest, squares, len(centres))
    return centres


def _nearest_centres(
    rows: NDArray[np.float64], centres: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the nearest centre of each row and the square of its distance."""
    nearest = np.empty(len(rows), np.int64)
    squares = np.empty(len(rows))
    lengths = np.einsum("kd,kd->k", centres, centres)
    for block in row_blocks(len(rows), len(centres)):
        # Less the square of the row, which is the same for all centres.
        table = rows[block] @ centres.T
        table *= -2
        table += lengths
        nearest[block] = table.argmin(axis=1)
        squares[block] = np.square(rows[block] - centres[nearest[block]]).sum(axis=1)
    return nearest, squares


def _means(
    rows: NDArray[np.float64],
    nearest: NDArray[np.int64],
    squares: NDArray[np.float64],
    n_clusters: int,
) -> NDArray[np.float64]:
    """Return the mean of each cluster."""
    counts = np.bincount(nearest, minlength=n_clusters)
    n = len(rows)
    members = sp.csc_array((np.ones(n), nearest, np.arange(n + 1)), (n_clusters, n))
    centres = (members @ rows) / np.maximum(counts, 1)[:, None]
    empty = np.flatnonzero(counts == 0)
    if len(empty):
        farthest = np.argsort(-squares, kind="stable")[: len(empty)]
        centres[empty] = rows[farthest]
    return centres
