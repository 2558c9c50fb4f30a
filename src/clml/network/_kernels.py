"""Compiled pieces of the forward pass. Serial, without the interpreter lock."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

# Added to the standard deviation of a row (method: γ), so that a constant row is 0.
TINY = 1e-10


def activate(values: NDArray, out: NDArray) -> None:
    """Standardise each row over its C entries and apply the sigmoid.

    The exponential is NumPy's: its vector instructions are several times faster than
    a compiled scalar loop.

    Parameters
    ----------
    values : float array (population, rows, C), any strides
    out : contiguous float array (population, rows, C + 1), overwritten
        Its last column is set to 1: it meets the bias row of the next matrix.
    """
    _negated_standardised(values, out)
    np.exp(out, out=out)
    out += 1
    np.reciprocal(out, out=out)
    out[..., -1] = 1


@njit(nogil=True, cache=True, fastmath={"reassoc", "nsz", "contract"})
def _negated_standardised(values, out):  # type: ignore[no-untyped-def]
    population, rows, c = values.shape
    kind = out.dtype.type
    n = kind(c)
    for p in range(population):
        for i in range(rows):
            row = values[p, i]
            target = out[p, i]
            # From the first entry on, so that the mean of equal entries is exact.
            base = kind(row[0])
            total = kind(0)
            for j in range(c):
                total += kind(row[j]) - base
            mean = base + total / n
            squares = kind(0)
            for j in range(c):
                distance = kind(row[j]) - mean
                squares += distance * distance
            factor = kind(-1) / (np.sqrt(squares / n) + kind(TINY))
            for j in range(c):
                target[j] = (kind(row[j]) - mean) * factor
            target[c] = kind(0)


@njit(nogil=True, cache=True)
def sparse_product(data, indices, indptr, start, rows, matrix, out):  # type: ignore[no-untyped-def]
    """Multiply rows ``start`` to ``start + rows`` of a CSR matrix by (X, 1) · matrix.

    Parameters
    ----------
    data, indices, indptr : the CSR arrays of X (n, D)
    matrix : float64 array (D + 1, width)
        Its last row is the bias.
    out : float64 array (at least rows, width), overwritten
    """
    width = matrix.shape[1]
    bias = matrix[matrix.shape[0] - 1]
    for i in range(rows):
        target = out[i]
        for j in range(width):
            target[j] = bias[j]
        for e in range(indptr[start + i], indptr[start + i + 1]):
            x = data[e]
            weights = matrix[indices[e]]
            for j in range(width):
                target[j] += x * weights[j]
