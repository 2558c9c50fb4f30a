"""What follows the first product, fused: a few rows at a time, from there to sums.

Rows stay in the first-level cache from the activation to the last count; nothing of
the size (candidates, rows, labels) is ever in memory.
"""

from __future__ import annotations

import numpy as np

from .._support.compiled import compiled
from .._support.simd import LANES, ROWS, address, multiply_sparse
from ..losses.kernels import accumulate
from ..losses.lane_kernels import add_row, working_room
from ..network.kernels import sparse_product
from ..network.lanes import fill_logits_of_one, logits_of_rows, room_for_rows


@compiled
def sum_statistics(  # type: ignore[no-untyped-def]
    product, hidden, last, start, n_rows, rows, threshold, wants, sums
):
    """Add the statistics of a block of rows to the sums of LANES candidates.

    The time grows with the labels, not with their square: see ``add_row``.

    Parameters
    ----------
    product : float array (at least rows, C, LANES)
        Of the first layer; padded to a multiple of ROWS.
    hidden, last : the arrays of ``LaneWeights``
    start, n_rows : int
        The targets' row that the first one is, and their number without padding.
    rows, threshold, wants, sums
        See ``add_row``.
    """
    entries, products, logits = room_for_rows(product.shape[1], last.shape[1], product)
    room = working_room(last.shape[1], product)
    for i in range(0, n_rows, ROWS):
        logits_of_rows(product, i, hidden, last, entries, products, logits)
        for r in range(min(ROWS, n_rows - i)):
            add_row(logits, r, start + i + r, rows, threshold, wants, room, sums)


@compiled
def sum_dense_rows(  # type: ignore[no-untyped-def]
    dense, first, hidden, last, step, start, stop, rows, threshold, wants, sums
):
    """Add the statistics of rows ``start`` to ``stop``, ``step`` at a time.

    One call from the rows to the sums: the interpreter's lock, which threads wait for
    each other with, is left once and taken once.

    Parameters
    ----------
    dense : float array (n, D + 1)
    first, hidden, last : the arrays of ``LaneWeights``
    rows, threshold, wants, sums
        See ``add_row``.
    """
    inputs, c, lanes = first.shape
    matrix = first.reshape((inputs, c * lanes))
    product = _room_for_products(min(step, stop - start), c, first)
    flat = product.reshape((len(product), c * lanes))
    for i in range(start, stop, step):
        n = min(step, stop - i)
        np.dot(dense[i : i + n], matrix, flat[:n])
        sum_statistics(product, hidden, last, i, n, rows, threshold, wants, sums)


@compiled
def sum_sparse_rows(  # type: ignore[no-untyped-def]
    csr, first, hidden, last, step, start, stop, rows, threshold, wants, sums
):
    """Do the same for rows in CSR form, whose arrays ``csr`` holds."""
    data, indices, indptr = csr
    c = first.shape[1]
    product = _room_for_products(min(step, stop - start), c, last)
    buffer = np.empty(first.shape[1:], first.dtype)
    for i in range(start, stop, step):
        n = min(step, stop - i)
        sparse_products(data, indices, indptr, i, n, first, buffer, product)
        sum_statistics(product, hidden, last, i, n, rows, threshold, wants, sums)


@compiled
def sum_dense_rows_of_one(  # type: ignore[no-untyped-def]
    dense, first, hidden, last, step, start, stop, rows, threshold, wants, sums
):
    """Do the same for one network, whose weights ``SharedWeights`` holds.

    ``wants`` and ``sums`` are those of ``accumulate``.
    """
    size = min(step, stop - start)
    product = np.empty((size, first.shape[1]), last.dtype)
    logits = np.empty((size, last.shape[1]), last.dtype)
    for i in range(start, stop, step):
        n = min(step, stop - i)
        np.dot(dense[i : i + n], first, product[:n])
        here = _as_one(logits[:n])
        fill_logits_of_one(product, hidden, last, here)
        accumulate(here, i, *rows, threshold, *wants, *sums)


@compiled
def sum_sparse_rows_of_one(  # type: ignore[no-untyped-def]
    csr, first, hidden, last, step, start, stop, rows, threshold, wants, sums
):
    """Do the same for rows in CSR form."""
    data, indices, indptr = csr
    size = min(step, stop - start)
    product = np.empty((size, first.shape[1]), first.dtype)
    logits = np.empty((size, last.shape[1]), last.dtype)
    for i in range(start, stop, step):
        n = min(step, stop - i)
        sparse_product(data, indices, indptr, i, n, first, product)
        here = _as_one(logits[:n])
        fill_logits_of_one(product[:n].astype(last.dtype), hidden, last, here)
        accumulate(here, i, *rows, threshold, *wants, *sums)


@compiled
def _as_one(logits):  # type: ignore[no-untyped-def]
    """Return (rows, K) as those of a population of one; contiguous, unlike a slice."""
    return logits.reshape((1, *logits.shape))


@compiled
def _room_for_products(n_rows, c, like):  # type: ignore[no-untyped-def]
    padded = -(-n_rows // ROWS) * ROWS
    return np.zeros((padded, c, LANES), like.dtype)


@compiled
def fill_logits(product, hidden, last, out):  # type: ignore[no-untyped-def]
    """Fill the logits (candidates, rows, K) of a block of rows; see above."""
    entries, sums, logits = room_for_rows(product.shape[1], last.shape[1], product)
    candidates, rows, n_labels = out.shape
    for i in range(0, rows, ROWS):
        logits_of_rows(product, i, hidden, last, entries, sums, logits)
        for r in range(min(ROWS, rows - i)):
            for a in range(candidates):
                for k in range(n_labels):
                    out[a, i + r, k] = logits[r, k, a]


@compiled
def sparse_products(data, indices, indptr, start, rows, matrix, buffer, out):  # type: ignore[no-untyped-def]
    """Multiply rows of a CSR matrix, with a last column of ones, by (D + 1, C, LANES).

    Parameters
    ----------
    data, indices, indptr : the CSR arrays of X (n, D)
    start, rows : int
    matrix : float array (D + 1, C, LANES)
        Of the precision of ``data``.
    buffer : float array (C, LANES), overwritten
        Of that precision too.
    out : float array (at least rows, C, LANES), overwritten
    """
    bias, c = matrix.shape[0] - 1, matrix.shape[1]
    for i in range(rows):
        first, last = indptr[start + i], indptr[start + i + 1]
        for j in range(c):
            for a in range(LANES):
                buffer[j, a] = matrix[bias, j, a]
        if last > first:
            multiply_sparse(
                address(data, first),
                address(indices, first),
                last - first,
                address(matrix, 0),
                matrix.shape[1],
                address(buffer, 0),
            )
        for j in range(c):
            for a in range(LANES):
                out[i, j, a] = buffer[j, a]
