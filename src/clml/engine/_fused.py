"""What follows the first product, fused: a few rows at a time, from there to sums.

Rows stay in the first-level cache from the activation to the last count; nothing of
the size (candidates, rows, labels) is ever in memory.
"""

from __future__ import annotations

from .._compiled import compiled
from .._simd import LANES, ROWS, address, multiply_sparse
from ..losses._lane_kernels import add_row, working_room
from ..network._lanes import logits_of_rows, room_for_rows


@compiled
def sum_statistics(  # type: ignore[no-untyped-def]
    product, hidden, last, start, n_rows, rows, threshold, wants, sums
):
    """Add the statistics of a block of rows to the sums of LANES candidates.

    Parameters
    ----------
    product : float array (rows, C, LANES)
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
