"""Compiled pieces of the forward pass. Serial, without the interpreter lock."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._support.compiled import compiled

# Added to the standard deviation of a row (method: γ), so that a constant row is 0.
TINY = 1e-10


def activate(values: NDArray, out: NDArray) -> None:
    """Standardise each row over its C entries and apply the sigmoid.

    Rows lie along the last axis, so that every loop is over neighbours in memory and
    becomes vector instructions. The exponential is NumPy's, which is vectorised too;
    a compiled scalar one is several times slower.

    Parameters
    ----------
    values : contiguous float array (population, C, rows)
    out : contiguous float array (population, C + 1, rows), overwritten
        Its last entries are set to 1: they meet the bias row of the next matrix.
    """
    _negated_standardised(values, out)
    np.exp(out, out=out)
    _logistic_of_exponential(out)


@compiled(reorder=True)
def _negated_standardised(values, out):  # type: ignore[no-untyped-def]
    population, c, rows = values.shape
    kind = out.dtype.type
    n = kind(c)
    mean = np.empty(rows, out.dtype)
    factor = np.empty(rows, out.dtype)
    for p in range(population):
        # From the first entry on, so that the mean of equal entries is exact.
        base = values[p, 0]
        mean[:] = kind(0)
        for j in range(1, c):
            entry = values[p, j]
            for i in range(rows):
                mean[i] += entry[i] - base[i]
        for i in range(rows):
            mean[i] = base[i] + mean[i] / n
        factor[:] = kind(0)
        for j in range(c):
            entry = values[p, j]
            for i in range(rows):
                distance = entry[i] - mean[i]
                factor[i] += distance * distance
        for i in range(rows):
            # NaN where squares overflow: entries over inf would all be 0.
            above = kind(-1) + (factor[i] - factor[i])
            factor[i] = above / (np.sqrt(factor[i] / n) + kind(TINY))
        for j in range(c):
            entry = values[p, j]
            target = out[p, j]
            for i in range(rows):
                target[i] = (entry[i] - mean[i]) * factor[i]
        out[p, c, :] = kind(0)


@compiled
def _logistic_of_exponential(out):  # type: ignore[no-untyped-def]
    """Turn e^(-z) into 1 / (1 + e^(-z)), and the last entries into 1."""
    population, c, rows = out.shape
    one = out.dtype.type(1)
    for p in range(population):
        for j in range(c - 1):
            target = out[p, j]
            for i in range(rows):
                target[i] = one / (one + target[i])
        out[p, c - 1, :] = one


@compiled
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
