"""Reading X and weights: what may come in, and pieces of it in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._support.csr_format import check_csr_parts

# Numbers that are in memory as float64 beside X at a time.
TOGETHER = 1 << 18


def as_matrix(X: Any) -> Any:
    """Return X as an array or, if it is sparse, as CSR without duplicates.

    Numbers keep their type; X itself is never changed.

    Examples
    --------
    >>> from clml.encoding._matrix import as_matrix
    >>> as_matrix([[True, False]])
    array([[ True, False]])
    >>> as_matrix([1.0, 2.0])
    Traceback (most recent call last):
    ...
    ValueError: X must be a matrix of rows and columns, got shape (2,).
    """
    matrix: Any = X if sp.issparse(X) else np.asarray(X)
    if matrix.ndim != 2:
        raise ValueError(
            f"X must be a matrix of rows and columns, got shape {matrix.shape}."
        )
    if matrix.dtype.kind == "O":  # frames with columns of several types
        try:
            matrix = matrix.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X must hold numbers: {error}") from None
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers, got dtype {matrix.dtype}.")
    if not sp.issparse(matrix):
        return matrix
    rows = matrix.tocsr()
    try:
        check_csr_parts(rows.data, rows.indices, rows.indptr, rows.shape)
    except ValueError as error:
        raise ValueError(f"X is no sound sparse matrix: {error}.") from None
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def as_weight(weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Return row weights in float64, or None where all rows count once."""
    if weight is None:
        return None
    try:
        checked = np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"weight must hold numbers: {error}") from None
    if checked.shape != (n_rows,):
        raise ValueError(
            f"weight must hold one number for each of the {n_rows} rows of X, got "
            f"shape {checked.shape}."
        )
    with np.errstate(over="ignore"):
        total = checked.sum()
    if not (np.isfinite(total) and (checked >= 0).all()):
        raise ValueError(
            "weight must hold numbers of at least 0 with a finite sum, got "
            f"numbers from {checked.min():.6g} to {checked.max():.6g}."
        )
    return checked


def as_float64(numbers: NDArray) -> NDArray[np.float64]:
    """Return a piece of X in float64; what does not fit becomes infinite."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(numbers, dtype=np.float64)


def not_finite(column: int) -> ValueError:
    """Return the error for infinite entries of X."""
    return ValueError(
        "X must hold finite numbers or NaN (for a missing value), got infinity in "
        f"column {column}."
    )
