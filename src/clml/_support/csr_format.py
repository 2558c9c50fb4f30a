"""CSR arrays that come from a file: sound, or compiled code reads beyond them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray


def check_csr_parts(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    shape: Sequence[Any],
) -> None:
    """Refuse parts that are not those of a CSR array of this shape.

    The check of SciPy is not enough: it leaves out most of it where ``indptr`` ends
    below 0, and takes differences that overflow.

    Parameters
    ----------
    data, indices : arrays (n_entries or more,)
        Of indices integers. What is beyond the last row is never read.
    indptr : integer array (n_rows + 1,)
    shape : sequence of two int

    Examples
    --------
    >>> import numpy as np
    >>> from clml._support.csr_format import check_csr_parts
    >>> check_csr_parts(np.ones(2), np.array([0, 4]), np.array([0, 1, 2]), (2, 5))
    >>> check_csr_parts(np.ones(2), np.array([0, 4]), np.array([0, 3, 2]), (2, 5))
    Traceback (most recent call last):
    ...
    ValueError: the rows of a sparse array do not follow each other
    """
    if any(part.ndim != 1 for part in (data, indices, indptr)):
        raise ValueError("the parts of a sparse array must have one axis")
    if any(part.dtype.kind != "i" for part in (indices, indptr)):
        raise ValueError("a sparse array must have integer indices")
    n_rows, n_columns = (int(length) for length in shape)
    if n_rows < 0 or n_columns < 0 or len(indptr) != n_rows + 1:
        raise ValueError(f"a sparse array of {n_rows} rows must tell where they end")
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise ValueError("the rows of a sparse array do not follow each other")
    if len(data) != len(indices) or indptr[-1] > len(indices):
        raise ValueError("a sparse array must have an index for each entry")
    used = indices[: indptr[-1]]
    if used.min(initial=0) < 0 or used.max(initial=-1) >= n_columns:
        raise ValueError(f"the columns of a sparse array must be below {n_columns}")
