"""Matrix products whose rows do not depend on each other.

BLAS rounds a row of a product differently in a batch of another size, or at another
place in it. A prediction must not depend on what else is asked for, so here every row
is summed in one order, at about half the speed of BLAS.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._compiled import compiled

# Rows that share a part of the matrix while it is in the nearest cache.
_ROWS = 8
# What is summed before it is added to the rest: long sums would lose digits.
_DEPTH = 256
# Columns from which on a row of the matrix fills enough vector instructions.
_WIDE = 256


@compiled(reorder=True)
def _add_four(out, a, b, c, d, row_a, row_b, row_c, row_d):  # type: ignore[no-untyped-def]
    for j in range(out.shape[0]):
        out[j] = out[j] + a * row_a[j] + b * row_b[j] + c * row_c[j] + d * row_d[j]


@compiled(reorder=True)
def _add_one(out, a, row_a):  # type: ignore[no-untyped-def]
    for j in range(out.shape[0]):
        out[j] = out[j] + a * row_a[j]


@compiled
def _multiply_wide(X, matrix, out):  # type: ignore[no-untyped-def]
    """Add multiples of the matrix's rows, four at a time."""
    n, depth = X.shape
    part = np.empty((_ROWS, matrix.shape[1]), X.dtype)
    for start in range(0, n, _ROWS):
        m = min(_ROWS, n - start)
        rows = out[start : start + m]
        rows[:] = 0
        for first in range(0, depth, _DEPTH):
            last = min(first + _DEPTH, depth)
            whole = last - (last - first) % 4
            part[:] = 0
            for k in range(first, whole, 4):
                # Views are made once for all rows: that takes longer than adding.
                row_a, row_b = matrix[k], matrix[k + 1]
                row_c, row_d = matrix[k + 2], matrix[k + 3]
                for i in range(m):
                    x = X[start + i]
                    _add_four(
                        part[i],
                        x[k],
                        x[k + 1],
                        x[k + 2],
                        x[k + 3],
                        row_a,
                        row_b,
                        row_c,
                        row_d,
                    )
            for k in range(whole, last):
                for i in range(m):
                    _add_one(part[i], X[start + i, k], matrix[k])
            for i in range(m):
                _add_one(rows[i], X.dtype.type(1), part[i])


@compiled(reorder=True)
def _dot(x, y):  # type: ignore[no-untyped-def]
    total = x.dtype.type(0)
    for k in range(x.shape[0]):
        total += x[k] * y[k]
    return total


@compiled
def _multiply_narrow(X, transposed, out):  # type: ignore[no-untyped-def]
    """Multiply each row by each column."""
    for i in range(X.shape[0]):
        for j in range(transposed.shape[0]):
            out[i, j] = _dot(X[i], transposed[j])


def rowwise_product(X: NDArray, matrix: NDArray) -> NDArray:
    """Return ``X @ matrix``, each row the same bits whatever the other rows are.

    Parameters
    ----------
    X : float array (n, D)
    matrix : float array (D, H)
        Of the same type.

    Examples
    --------
    >>> import numpy as np
    >>> from clml._rowwise import rowwise_product
    >>> X = np.random.default_rng(0).normal(size=(100, 40))
    >>> matrix = np.random.default_rng(1).normal(size=(40, 50))
    >>> product = rowwise_product(X, matrix)
    >>> bool((rowwise_product(X[7:8], matrix) == product[7]).all())
    True
    """
    out = np.empty((X.shape[0], matrix.shape[1]), dtype=X.dtype)
    X = np.ascontiguousarray(X)
    if matrix.shape[1] < _WIDE:
        _multiply_narrow(X, np.ascontiguousarray(matrix.T), out)
    else:
        _multiply_wide(X, np.ascontiguousarray(matrix), out)
    return out
