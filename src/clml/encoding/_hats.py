"""Ramps of columns as hats: two entries a number instead of one for each ramp.

What a layer computes of a column's ramps is piecewise linear in the number. It is known
by its values at the knots: between two of them it is a mixture of both, which hat
functions weigh. A row times a table of values at knots is what its ramps times a matrix
of weights are, for a fifth of the sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._support.compiled import compiled
from ._fitted import _WITH_RAMPS, FittedEncoding, _check
from ._matrix import as_float64, as_matrix
from ._points import offsets_of
from .kernels import _NONE, _RAMPS, _STANDARD_AND_RAMPS, _between, _number, _standard
from .kinds import Code

# So many sums over encoded columns take as long as one over entries, which have to be
# looked up.
_PRICE = 2.5


class Hats:
    """An encoding with ramps, in entries and a table for them.

    For each input column the table has a row for its number, one for each knot and one
    for the indicator of missing values, of those that it has.

    Parameters
    ----------
    encoding : FittedEncoding

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from clml.encoding import Bins, Hats
    >>> X = np.array([[0.0], [2.0], [4.0], [10.0]])
    >>> encoding = Bins(n_bins=2, numbers=False).fit(X)
    >>> hats = Hats(encoding)
    >>> table = hats.table(np.array([[10.0], [1.0]]))
    >>> table.ravel()
    array([ 0., 10., 11.])
    >>> entries = csr_array(hats.entries(np.array([[1.5], [6.5]])), shape=(2, 3))
    >>> (entries @ table).ravel()
    array([ 5. , 10.5])
    """

    def __init__(self, encoding: FittedEncoding):
        self._encoding = encoding
        code = encoding.code
        self._with_ramps = np.isin(code, _WITH_RAMPS)
        numbers = (code != Code.NONE) & (code != Code.RAMPS)
        knots = np.where(self._with_ramps, np.diff(encoding.offsets), 0)
        self._rows = offsets_of(numbers + knots + encoding.missing)
        self._counts = np.where(
            self._with_ramps, 2, (numbers | encoding.missing).astype(np.int64)
        )

    @property
    def n_rows(self) -> int:
        """Return how many rows a table has."""
        return int(self._rows[-1])

    @property
    def pays(self) -> bool:
        """Whether rows times a table take less time than encoded ones times weights."""
        if not self._encoding.centred:  # whose zeros are no entries either way
            return bool(self._with_ramps.any())
        return bool(_PRICE * self._counts.sum() < self._encoding.n_columns)

    def table(self, weights: NDArray) -> NDArray[np.float64]:
        """Return the table (n_rows, H) of weights (n_columns, H) of encoded columns."""
        table = np.zeros((self.n_rows, weights.shape[1]))
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        _fill_table(weights, self._encoding.tables, self._rows, table)
        return table

    def entries(
        self, X: Any
    ) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.int64]]:
        """Return data, indices and row pointers of what multiplies a table.

        Parameters
        ----------
        X : array-like or sparse matrix (n, D)
            Sparse if the encoding is not centred.
        """
        X = as_matrix(X)
        if X.shape[1] != self._encoding.n_inputs:
            raise ValueError(
                f"X must have the {self._encoding.n_inputs} columns that were fitted, "
                f"got {X.shape[1]}."
            )
        if sp.issparse(X):
            values, columns, starts = X.data, X.indices, X.indptr
            size = int(self._counts[columns[: starts[-1]]].sum())
        else:
            n, d = X.shape
            values, columns, starts = X.ravel(), np.arange(d), np.arange(n + 1) * d
            size = n * int(self._counts.sum())
        data, indices = np.empty(size, np.float32), np.empty(size, np.int32)
        indptr = np.empty(len(starts), dtype=np.int64)
        given = as_float64(values), columns, starts, not sp.issparse(X)
        learnt = self._encoding.tables, self._rows, self._counts
        _check(_fill(*given, *learnt, data, indices, indptr))
        n_entries = int(indptr[-1])
        return data[:n_entries], indices[:n_entries], indptr


@compiled
def _fill(  # type: ignore[no-untyped-def]
    values, columns, starts, dense, tables, rows, counts, data, indices, indptr
):
    """Fill one or two entries a value; return a column with infinity, or -1.

    Columns are those of all values, or, of dense rows, of each row.
    """
    code, missing, shift, scale, limit, offsets, knots, levels = tables[:8]
    neutral, place, zero = tables[8:]
    e = 0
    for i in range(starts.size - 1):
        indptr[i] = e
        for p in range(starts[i], starts[i + 1]):
            x, j = values[p], columns[p - starts[i] if dense else p]
            if np.isinf(x):
                return j
            if x == 0 and not dense:  # the same as a zero that is not stored
                continue
            at, e = e, e + counts[j]
            kind, has_missing, first = code[j], missing[j], rows[j]
            has_number = kind == _STANDARD_AND_RAMPS
            has_ramps = has_number or kind == _RAMPS
            for k in range(at, e):
                data[k], indices[k] = 0.0, first
            if np.isnan(x):
                if has_missing:
                    data[at], indices[at] = 1.0, rows[j + 1] - 1
                    continue
                x = neutral[j]
            if has_ramps:
                low, last = offsets[j], offsets[j + 1] - 1
                # The row of the table that belongs to knot 0, if there were one.
                row = first + has_number - low
                if x <= knots[low] or x >= knots[last]:
                    # The number goes on beyond the ends, and ramps do not.
                    knot = low if x <= knots[low] else last
                    data[at], indices[at] = 1.0, row + knot
                    if has_number:
                        end = _standard(knots[knot], shift[j], scale[j])
                        data[at + 1] = _standard(x, shift[j], scale[j]) - end
                    continue
                n_bins = last - low
                while n_bins > 1:  # no branch that would be foreseen wrongly
                    half = n_bins // 2
                    low += half * (x >= knots[low + half])
                    n_bins -= half
                way = _between(x, knots[low], knots[low + 1])
                data[at], indices[at] = 1.0 - way, row + low
                data[at + 1], indices[at + 1] = way, row + low + 1
            elif kind != _NONE:
                number = _number(
                    x,
                    kind,
                    shift[j],
                    scale[j],
                    limit,
                    knots,
                    levels,
                    offsets[j],
                    offsets[j + 1],
                )
                data[at] = number - zero[place[j]]
    indptr[-1] = e
    return -1


@compiled
def _fill_table(weights, tables, rows, out):  # type: ignore[no-untyped-def]
    for j in range(tables.code.size):
        kind, start, stop = tables.code[j], tables.offsets[j], tables.offsets[j + 1]
        at, row = tables.place[j], rows[j]
        if kind == _RAMPS or kind == _STANDARD_AND_RAMPS:
            has_number = int(kind == _STANDARD_AND_RAMPS)
            if has_number:
                out[row] = weights[at]
            # At the first knot all ramps are 0, and at each further one 1 more is.
            knot = row + has_number
            for k in range(tables.place[j + 1] - tables.missing[j] - at):
                out[knot] -= tables.zero[at + k] * weights[at + k]
            for k in range(1, stop - start):
                out[knot + k] = out[knot + k - 1] + weights[at + has_number + k - 1]
            for k in range(stop - start if has_number else 0):
                x = tables.knots[start + k]
                number = _standard(x, tables.shift[j], tables.scale[j])
                out[knot + k] += number * weights[at]
        elif kind != _NONE:
            out[row] = weights[at]
        if tables.missing[j]:
            out[rows[j + 1] - 1] = weights[tables.place[j + 1] - 1]
