"""Matrix products whose rows do not depend on each other.

BLAS rounds a row of a product differently in a batch of another size, or at another
place in it. A prediction must not depend on what else is asked for, so here each number
is the sum of its terms in one order, whatever rows are beside it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled
from .products import aligned
from .simd import address
from .simd_tiles import (
    NUMBERS,
    TABLE_WIDTH,
    WIDTHS,
    add_differences,
    add_entries,
    add_products,
)

# What is summed before it is added to the rest: long sums would lose digits, and this
# much of a panel stays in the nearest cache but one.
_DEPTH = 256
# Entries of a row that are looked up together: what they come from, in rows that have
# the same columns, stays in the nearest cache.
_ENTRIES = 16
_ROWS = 512


class Packed:
    """A layer's matrix in panels of some columns, as kernels read it, and its bias.

    Parameters
    ----------
    matrix : float32 or float64 array (D, H)
    bias : array (H,), default=None
        Added to products; None is 0.
    rectified : bool, default=False
        Whether numbers below 0 become 0.

    Attributes
    ----------
    n_columns : int
        H.

    Examples
    --------
    >>> import numpy as np
    >>> from clml._support.rowwise import Packed
    >>> X = np.random.default_rng(0).normal(size=(100, 40))
    >>> packed = Packed(np.random.default_rng(1).normal(size=(40, 50)))
    >>> product = packed.product(X)
    >>> bool((packed.product(X[7:8]) == product[7]).all())
    True
    """

    def __init__(
        self, matrix: NDArray, bias: NDArray | None = None, rectified: bool = False
    ):
        self.n_columns = matrix.shape[1]
        numbers = NUMBERS[matrix.itemsize]
        enough = [w for w in WIDTHS if w * numbers >= self.n_columns]
        width = enough[0] if enough else WIDTHS[-1]
        self._panels = _in_panels(matrix, width * numbers)
        self._bias, self._rectified = _as_wide(bias, self._panels), rectified

    def product(self, X: NDArray) -> NDArray:
        """Return ``X @ matrix + bias``, each row whatever the other rows are.

        Parameters
        ----------
        X : array (n, D)
            Of the matrix's type.

        Returns
        -------
        array (n, H)
            Where panels are wider than H, a part of a wider array.
        """
        return self.sums(X)[:, : self.n_columns]

    def sums(self, X: NDArray, absolute: bool = False) -> NDArray:
        """Return the product, or sums of absolute differences, as wide as panels.

        Parameters
        ----------
        X : array (n, D)
        absolute : bool, default=False
            Whether to sum ``abs(x - w)`` instead of ``x * w``.
        """
        n_panels, depth, width = self._panels.shape
        if X.shape[1] != depth or X.dtype != self._panels.dtype:
            raise ValueError(
                f"X must be {self._panels.dtype} of {depth} columns, got {X.dtype} of "
                f"shape {X.shape}."
            )
        if X.strides[1] != X.itemsize or X.strides[0] % X.itemsize:
            X = np.ascontiguousarray(X)
        out = aligned((len(X), n_panels * width), X.dtype)
        out[:] = self._bias
        _multiply(X, self._panels, NUMBERS[X.itemsize], absolute, self._rectified, out)
        return out


class PackedTable:
    """A matrix whose rows are looked up, in panels of some columns.

    For rows of few entries: a product with them takes time in proportion to these.

    Parameters
    ----------
    matrix, bias, rectified
        As those of :class:`Packed`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from clml._support.rowwise import PackedTable
    >>> table = PackedTable(np.array([[1.0, 2.0], [10.0, 20.0]]))
    >>> X = csr_array([[0.0, 1.0], [3.0, 2.0]])
    >>> table.product(X.data, X.indices, X.indptr)
    array([[10., 20.],
           [23., 46.]])
    """

    def __init__(
        self, matrix: NDArray, bias: NDArray | None = None, rectified: bool = False
    ):
        self.n_columns = matrix.shape[1]
        self._panels = _in_panels(matrix, TABLE_WIDTH * NUMBERS[matrix.itemsize])
        self._bias, self._rectified = _as_wide(bias, self._panels), rectified

    def product(
        self,
        data: NDArray,
        indices: NDArray[np.int32],
        indptr: NDArray[np.integer],
    ) -> NDArray:
        """Return the product (n, H) with CSR rows, as :meth:`Packed.product` does.

        Indices have to be below D: nothing is checked.
        """
        n_panels, _, width = self._panels.shape
        n = len(indptr) - 1
        out = aligned((n, n_panels * width), self._panels.dtype)
        out[:] = self._bias
        part = aligned((max(min(_ROWS, n), 1), width), out.dtype)
        _multiply_entries(
            data, indices, indptr, self._panels, self._rectified, part, out
        )
        return out[:, : self.n_columns]


def _in_panels(matrix: NDArray, width: int) -> NDArray:
    """Return (panels, D, width), the last one filled up with zeros."""
    depth, n_columns = matrix.shape
    n_panels = -(-n_columns // width)
    panels = aligned((n_panels, depth, width), matrix.dtype)
    for p, panel in enumerate(panels):
        columns = matrix[:, p * width : (p + 1) * width]
        panel[:, : columns.shape[1]] = columns
        panel[:, columns.shape[1] :] = 0
    return panels


def _as_wide(bias: NDArray | None, panels: NDArray) -> NDArray:
    """Return a bias with zeros, as wide as all panels."""
    found = np.zeros(panels.shape[0] * panels.shape[2], dtype=panels.dtype)
    if bias is not None:
        found[: len(bias)] = bias
    return found


@compiled(inline=True)
def _rectify(row):  # type: ignore[no-untyped-def]
    for j in range(row.size):
        row[j] = row[j] if row[j] > 0 else row.dtype.type(0)


@compiled(inline=True)
def _copy(row, out):  # type: ignore[no-untyped-def]
    for j in range(row.size):
        out[j] = row[j]


@compiled
def _multiply(X, panels, numbers, absolute, rectified, out):  # type: ignore[no-untyped-def]
    n_panels, depth, width = panels.shape
    stride, apart = X.strides[0] // X.itemsize, n_panels * width
    for p in range(n_panels):
        start, end = p * width, (p + 1) * width
        for first in range(0, depth, _DEPTH):
            x, panel = address(X, first), address(panels, (p * depth + first) * width)
            size, wide = min(_DEPTH, depth - first), width // numbers
            sums = address(out, start)
            if absolute:
                add_differences(x, stride, 1, len(X), panel, size, wide, sums, apart)
            else:
                add_products(x, stride, 1, len(X), panel, size, wide, sums, apart)
        if rectified:
            for i in range(len(out)):
                _rectify(out[i, start:end])


@compiled
def _multiply_entries(  # type: ignore[no-untyped-def]
    data, indices, indptr, panels, rectified, part, out
):
    n_panels, depth, width = panels.shape
    n_rows = len(part)
    for p in range(n_panels):
        begin, end = p * width, (p + 1) * width
        for first_row in range(0, len(out), n_rows):
            rows = out[first_row : first_row + n_rows]
            ends = indptr[first_row : first_row + len(rows) + 1]
            longest = 0
            for i in range(len(rows)):
                _copy(rows[i, begin:end], part[i])
                longest = max(longest, ends[i + 1] - ends[i])
            for first in range(0, longest, _ENTRIES):
                for i in range(len(rows)):
                    start = ends[i] + first
                    add_entries(
                        address(data, start),
                        address(indices, start),
                        max(min(ends[i + 1] - start, _ENTRIES), 0),
                        address(panels, p * depth * width),
                        width,
                        address(part, i * width),
                    )
            for i in range(len(rows)):
                if rectified:
                    _rectify(part[i])
                _copy(part[i], rows[i, begin:end])
