"""Which training rows are nearest, with one rule for ties.

Searches differ in which of several equally distant rows they return: it depends on
the algorithm, on how the work is cut and on rounding. Here **the lower row number
wins**, and distances that agree to a relative 1e-10 (of the squares, for Euclidean
ones) with that of the k-th nearest row count as equal to it. A search of scikit-learn
settles the rows whose k-th and next distance differ clearly; the others are compared
with all training rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.extmath import row_norms, safe_sparse_dot
from threadpoolctl import threadpool_limits

from .._support.forks import was_forked

# Distances this close to the k-th, relatively, are tied with it.
_TIED = 1e-10

# Distances this far apart, relatively, are settled by the first search. More than
# _TIED, so that what is settled could not have been a tie.
_CLEAR = 1e-9

# What one (rows × training rows) matrix may take; a few of them are held at a time.
_BLOCK_BYTES = 16 * 2**20


def searchable(X: Any) -> Any:
    """Rows as a search wants them: float64, C order or CSR without repeated entries."""
    if not sp.issparse(X):
        return np.ascontiguousarray(X, dtype=np.float64)
    X = sp.csr_array(X, dtype=np.float64)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.indices.dtype != np.int32 and max(X.nnz, *X.shape) < 2**31:
        # Some searches of scikit-learn know no other.
        indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        X = sp.csr_array((X.data, indices, indptr), shape=X.shape)
    return X


def nearest_rows(
    search: NearestNeighbors, training: Any, rows: Any, n_neighbors: int
) -> NDArray[np.int64]:
    """Return the nearest training rows of each row.

    Parameters
    ----------
    search : NearestNeighbors
        Fitted to the training rows; metric "euclidean" or "manhattan".
    training : float64 array or CSR (N, D)
        As returned by :func:`searchable`.
    rows : array-like or CSR (n, D), or None
        None for the training rows, none of which is its own neighbour.
    n_neighbors : int
        At most N, or N − 1 if ``rows`` is None.

    Returns
    -------
    array (n, n_neighbors)
        Row numbers, ascending.
    """
    queries = training if rows is None else _like(training, rows)
    n_others = training.shape[0] - (rows is None)
    if search.metric == "euclidean":
        _check_squares(queries)
    compared = _Compared.with_training(training, search.metric)
    if compared.is_full_of_ties and n_neighbors < n_others:
        nearest = np.empty((queries.shape[0], n_neighbors), np.int64)
        unsettled = np.arange(queries.shape[0])
    else:
        # The threads of OpenMP do not survive a fork, and would be waited for.
        forked = was_forked()
        with threadpool_limits(1, user_api="openmp") if forked else nullcontext():
            distances, found = search.kneighbors(
                None if rows is None else queries,
                n_neighbors=min(n_neighbors + 1, n_others),
            )
        nearest = np.sort(found[:, :n_neighbors], axis=1).astype(np.int64)
        if n_neighbors == n_others:
            return nearest
        settled = _is_settled(distances, n_neighbors, queries, search.metric)
        unsettled = np.flatnonzero(~settled)
    for block in _blocks(unsettled, training.shape[0]):
        own = block if rows is None else None
        table = compared.distances(queries[block], n_neighbors, own)
        nearest[block] = _first_of_nearest(table, n_neighbors)
    return nearest


def _like(training: Any, rows: Any) -> Any:
    """Rows of the kind, sparse or dense, of the training rows."""
    if sp.issparse(training) and not sp.issparse(rows):
        rows = sp.csr_array(rows)
    elif sp.issparse(rows) and not sp.issparse(training):
        rows = rows.toarray()
    return searchable(rows)


def _check_squares(rows: Any) -> None:
    norms = row_norms(rows, squared=True)
    values = rows.data if sp.issparse(rows) else rows
    if values.any() and norms.max() < np.finfo(np.float64).tiny:
        raise ValueError(
            "X must have values whose squares are numbers for Euclidean distances, got "
            f"none above {np.abs(values).max():.2g} in absolute value. Scale X first."
        )
    # Sums of a few of them must be finite, too.
    large = ~(norms < np.finfo(np.float64).max / 8)
    if large.any():
        raise ValueError(
            "X must have values whose squares can be summed for Euclidean distances, "
            f"got values too large in {large.sum()} rows, the first of them row "
            f"{np.argmax(large)}."
        )


def _rounding(n_features: int) -> float:
    """Bound of the error of |x|² − 2xy + |y|², relative to |x|² + |y|²."""
    return 4 * (n_features + 4) * float(np.finfo(np.float64).eps)


def _is_settled(
    distances: NDArray[np.float64], k: int, queries: Any, metric: str
) -> NDArray[np.bool_]:
    """Whether the next distance exceeds the k-th by more than a tie or an error."""
    kth, following = distances[:, k - 1], distances[:, k]
    error: Any = 0.0
    if metric == "euclidean":
        kth, following = kth**2, following**2
        # Of either square, if |y| < 2|x|; that of farther rows is a matter of _CLEAR.
        error = 10 * _rounding(queries.shape[1]) * row_norms(queries, squared=True)
    return following - kth > _CLEAR * following + error


def _blocks(rows: NDArray[np.int64], n_training: int) -> Iterator[NDArray[np.int64]]:
    size = max(_BLOCK_BYTES // (8 * n_training), 1)
    return (rows[i : i + size] for i in range(0, len(rows), size))


def _is_whole(X: Any) -> bool:
    """Whether all values are integers: sums of their products are then exact."""
    values = X.data if sp.issparse(X) else X
    return bool((values == np.rint(values)).all())


@dataclass(frozen=True)
class _Compared:
    """Comparison of rows with all training rows: what every block of rows needs."""

    training: Any
    transposed: Any
    metric: str
    norms: NDArray[np.float64]
    whole: bool

    @classmethod
    def with_training(cls, training: Any, metric: str) -> _Compared:
        return cls(
            training,
            transposed=training.T.tocsr() if sp.issparse(training) else training.T,
            metric=metric,
            norms=row_norms(training, squared=True),
            whole=_is_whole(training),
        )

    @property
    def is_full_of_ties(self) -> bool:
        """Whether a first search would settle little, and take as long as the second.

        Sparse rows of integers, of bits above all, are as far from one row as from
        many others, and only brute force searches them.
        """
        return sp.issparse(self.training) and self.whole

    def distances(
        self, queries: Any, k: int, own: NDArray[np.int64] | None
    ) -> NDArray[np.float64]:
        """Distances (n, N), squared for the Euclidean metric.

        Own rows are infinitely far, and so may be rows that are none of the k nearest.
        """
        error = None
        if self.metric == "euclidean":
            table, error = self._squares(queries)
        else:
            table = pairwise_distances(queries, self.training, metric=self.metric)
        if own is not None:
            table[np.arange(len(own)), own] = np.inf
        if error is not None:
            _sharpen(table, error, queries, self.training, k)
        return table

    def _squares(
        self, queries: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Squared distances by products of rows; error bounds, or None if exact."""
        norms = np.add.outer(row_norms(queries, squared=True), self.norms)
        squares = safe_sparse_dot(queries, self.transposed, dense_output=True)
        squares *= -2
        squares += norms
        if self.whole and norms.max() < 2**51 and _is_whole(queries):
            return squares, None
        norms *= _rounding(self.training.shape[1])
        return squares, norms


def _sharpen(
    squares: NDArray[np.float64],
    error: NDArray[np.float64],
    queries: Any,
    training: Any,
    k: int,
) -> None:
    """Replace what may be among the k smallest by sums of squared differences.

    The difference of large squares can be all rounding; the square of a difference
    never is. All else becomes infinite.
    """
    limit = np.partition(squares + error, k - 1, axis=1)[:, k - 1 : k]
    i, j = np.nonzero(squares - error <= limit * (1 + _CLEAR))
    squares.fill(np.inf)
    step = max(_BLOCK_BYTES // (8 * training.shape[1]), 1)
    for start in range(0, len(i), step):
        pair = slice(start, start + step)
        difference = queries[i[pair]] - training[j[pair]]
        squares[i[pair], j[pair]] = row_norms(difference, squared=True)


def _first_of_nearest(distances: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Return the columns (n, k) of the k smallest, the first ones of those tied."""
    kth = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
    tolerance = _TIED * kth
    nearer = distances < kth - tolerance
    tied = (distances <= kth + tolerance) & ~nearer
    missing = k - nearer.sum(axis=1, keepdims=True)
    chosen = nearer | (tied & (np.cumsum(tied, axis=1, dtype=np.int32) <= missing))
    return np.nonzero(chosen)[1].reshape(-1, k)
