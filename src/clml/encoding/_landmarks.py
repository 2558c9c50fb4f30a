"""Distances of rows from landmarks, and the kernel of these.

They are in float64: where landmarks hardly differ, rounding is multiplied by thousands.
Those of a row are the same bits whatever rows come with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._support.compiled import compiled
from .._support.rowwise import Packed
from .._support.simd import address
from .._support.simd_tiles import NUMBERS, to_exponentials

# Numbers of float64 in a vector.
_NUMBERS = NUMBERS[8]


class Landmarks:
    """Rows that others are compared with.

    Parameters
    ----------
    landmarks : float32 array or CSR matrix (m, d)
    norm : {1, 2}
        Of distances: sums of absolute differences, or of their squares.

    Attributes
    ----------
    lengths : float64 array (m,)
        Squared lengths.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.encoding._landmarks import Landmarks
    >>> landmarks = Landmarks(np.array([[0.0, 0.0], [3.0, 4.0]], np.float32), norm=2)
    >>> rows = np.array([[0.0, 4.0]], np.float32)
    >>> landmarks.distances(rows)
    array([[16.,  9.]])
    >>> bool(np.allclose(landmarks.near(rows, 0.5), np.exp([[-8.0, -4.5]])))
    True
    """

    def __init__(self, landmarks: Any, norm: int):
        self._n, self._norm = landmarks.shape[0], norm
        if norm == 1 and sp.issparse(landmarks):
            landmarks = landmarks.toarray()
        exact = landmarks.astype(np.float64)
        self.lengths = _squared_lengths(exact)
        self._by_column: tuple[NDArray, ...] | None = None
        if sp.issparse(exact):
            columns = exact.T.tocsr()
            self._by_column = columns.data, columns.indices, columns.indptr
        else:
            self._packed = Packed(exact.T)

    def distances(self, rows: Any) -> NDArray[np.float64]:
        """Return the distances (n, m) of float32 rows, dense or CSR."""
        exact = rows.astype(np.float64)
        sums = self._sums(exact)[:, : self._n]
        if self._norm == 1:
            return sums
        own = _squared_lengths(exact)
        return np.maximum(own[:, None] + self.lengths - 2 * sums, 0.0)

    def near(self, rows: Any, gamma: float) -> NDArray[np.float64]:
        """Return exp(−γ · distance) (n, m) of float32 rows, dense or CSR."""
        exact = rows.astype(np.float64)
        sums = self._sums(exact)
        shifts, offsets = np.zeros(sums.shape[0]), np.zeros(sums.shape[1])
        factor = -gamma
        if self._norm == 2:
            factor = 2 * gamma
            shifts, offsets[: self._n] = _squared_lengths(exact), self.lengths
        _exponentials(sums, _NUMBERS, factor, -gamma * shifts, -gamma * offsets)
        return sums[:, : self._n]

    def _sums(self, rows: Any) -> NDArray[np.float64]:
        """Return products, or sums of differences, filled up to whole vectors."""
        if self._by_column is None:
            dense = rows.toarray() if sp.issparse(rows) else rows
            return self._packed.sums(dense, self._norm == 1)
        rows = sp.csr_array(rows)
        width = -(-self._n // _NUMBERS) * _NUMBERS
        sums = np.zeros((rows.shape[0], width))
        own = rows.data, rows.indices, rows.indptr
        _add_sparse_products(*own, *self._by_column, sums)
        return sums


def _squared_lengths(rows: Any) -> NDArray[np.float64]:
    if sp.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1)).reshape(-1)
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


@compiled
def _add_sparse_products(  # type: ignore[no-untyped-def]
    data, indices, indptr, of_column, landmarks, column_indptr, out
):
    """Add the products of CSR rows with sparse landmarks, column by column."""
    for i in range(len(out)):
        for p in range(indptr[i], indptr[i + 1]):
            x, j = data[p], indices[p]
            for q in range(column_indptr[j], column_indptr[j + 1]):
                out[i, landmarks[q]] += x * of_column[q]


@compiled
def _exponentials(values, numbers, factor, shifts, offsets):  # type: ignore[no-untyped-def]
    n, width = values.shape
    for i in range(n):
        to_exponentials(
            address(values, i * width),
            width // numbers,
            factor,
            shifts[i],
            address(offsets, 0),
        )
