"""What training rows say about columns, of all rows at once or merged from parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ._matrix import TOGETHER, as_float64, as_matrix, as_weight, not_finite
from ._points import (
    Points,
    apart,
    compressed,
    distinct,
    merged,
    moments,
    offsets_of,
)
from .kinds import ColumnKind

#: Distinct values of a column that are kept exactly. Of more, this many stand for all.
MOST_VALUES = 4096


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """What some rows say about each column: all that fitting an encoding needs.

    Those of disjoint sets of rows merge to that of their union, and one summary serves
    any number of encodings. Weights are frequencies: weight 2 is the row twice, and
    rows of weight 0 count for nothing. Entries of a sparse matrix that are not stored
    are zeros, and count.

    Up to ``MOST_VALUES`` distinct values of a column are kept, with their weights.
    Everything about such a column follows from them alone, so it is the same bit for
    bit whatever the order of the rows and however they are cut (with weights that are
    whole numbers: sums of others depend on their order in the last digits). Of a column
    with more values as many points stand for all, chosen without randomness; the share
    of the rows below any value is then off by 1 / (MOST_VALUES − 2) at most for each
    time that points were merged. Its moments are those of all its rows, merged by
    Chan's update.

    No square is kept, so columns may be as large as float64 holds.

    Attributes
    ----------
    total : float
        Sum of the row weights.
    weight, missing : float64 arrays (D,)
        The weight of the rows that have a value in a column, and of those with NaN.
    mean, deviation : float64 arrays (D,)
        Of the values that are not missing; the deviation is the population's. 0 where
        there are none.
    points : Points
        Distinct values, ascending, and their weights.
    exact : bool array (D,)
        Whether the points are all distinct values.
    sparse : bool
        Whether the rows were sparse.

    References
    ----------
    T. F. Chan, G. H. Golub, R. J. LeVeque, Updating Formulae and a Pairwise Algorithm
    for Computing Sample Variances, 1979.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.encoding import ColumnSummary
    >>> first = ColumnSummary.of(np.array([[1.0, 0.0], [3.0, np.nan]]))
    >>> both = first.merged(ColumnSummary.of(np.array([[8.0, 1.0]])))
    >>> both.mean, both.high, both.missing
    (array([4. , 0.5]), array([8., 1.]), array([0., 1.]))
    >>> [kind.name for kind in both.kinds]
    ['NUMBER', 'INDICATOR']
    """

    total: float
    weight: NDArray[np.float64]
    missing: NDArray[np.float64]
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    points: Points
    exact: NDArray[np.bool_]
    sparse: bool

    @classmethod
    def of(cls, X: Any, weight: Any = None) -> ColumnSummary:
        """Summarise rows.

        Columns are sorted some at a time, so memory beside X and the result is some 25
        megabytes or eleven columns in float64, whichever is more (for sparse X also a
        copy of X).

        Parameters
        ----------
        X : array-like or sparse matrix (n, D)
            Numbers; NaN is a missing value.
        weight : array-like (n,), default=None
            Row weights of at least 0; None counts every row once.

        Returns
        -------
        ColumnSummary
        """
        X = as_matrix(X)
        weight = as_weight(weight, X.shape[0])
        if weight is not None and not weight.all():
            X, weight = X[weight > 0], weight[weight > 0]
        total = float(X.shape[0] if weight is None else weight.sum())
        columns = _sparse_columns if sp.issparse(X) else _dense_columns
        parts, first = [], 0
        for values, weights, offsets, missing in columns(X, weight, total):
            points = distinct(values, weights, offsets)
            _refuse_infinity(points, first)
            known, mean, deviation = moments(*points)
            few = compressed(points, MOST_VALUES)
            exact = points.counts <= MOST_VALUES
            parts.append(
                cls(total, known, missing, mean, deviation, few, exact, sp.issparse(X))
            )
            first += missing.size
        return _side_by_side(parts)

    @property
    def n_inputs(self) -> int:
        """Return the number of columns."""
        return self.weight.size

    @property
    def low(self) -> NDArray[np.float64]:
        """Return the smallest value of each column; NaN where there is none."""
        return self._ends(self.points.offsets[:-1])

    @property
    def high(self) -> NDArray[np.float64]:
        """Return the largest value of each column; NaN where there is none."""
        return self._ends(self.points.offsets[1:] - 1)

    @property
    def kinds(self) -> list[ColumnKind]:
        """Return what each column is."""
        low, high, counts = self.low, self.high, self.points.counts
        kinds = np.full(self.n_inputs, ColumnKind.NUMBER)
        kinds[counts == 2] = ColumnKind.TWO_VALUED
        kinds[(counts == 2) & (low == 0) & (high == 1)] = ColumnKind.INDICATOR
        kinds[~apart(low, high)] = ColumnKind.CONSTANT
        kinds[counts == 0] = ColumnKind.EMPTY
        return [ColumnKind(kind) for kind in kinds]

    def merged(self, other: ColumnSummary) -> ColumnSummary:
        """Return the summary of the rows of both.

        Many parts are best merged in pairs, pairs of pairs, and so on: points are then
        merged as seldom as can be.

        Parameters
        ----------
        other : ColumnSummary
            Of other rows with the same columns, sparse if these are.

        Returns
        -------
        ColumnSummary
        """
        if self.n_inputs != other.n_inputs or self.sparse != other.sparse:
            raise ValueError(
                "other must summarise rows of the same kind, got "
                f"{_described(other)} beside {_described(self)}."
            )
        points = merged(self.points, other.points)
        exact = self.exact & other.exact & (points.counts <= MOST_VALUES)
        # Where all values are known, so are their moments, without rounding on the way.
        known = moments(*points)
        weight, mean, deviation = (
            np.where(exact, a, b)
            for a, b in zip(known, _chan(self, other), strict=True)
        )
        return ColumnSummary(
            self.total + other.total,
            weight,
            self.missing + other.missing,
            mean,
            deviation,
            compressed(points, MOST_VALUES),
            exact,
            self.sparse,
        )

    def _ends(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        ends = np.full(self.n_inputs, np.nan)
        some = self.points.counts > 0
        ends[some] = self.points.values[places[some]]
        return ends


# Values, their weights, where columns begin, the weight of the missing ones.
_Columns = tuple[
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.int64],
    NDArray[np.float64],
]


def _dense_columns(
    X: NDArray, weight: NDArray[np.float64] | None, total: float
) -> Iterator[_Columns]:
    """Yield what is in some columns at a time, sorted."""
    n, d = X.shape
    step = max(TOGETHER // max(n, 1), 1)
    for start in range(0, max(d, 1), step):
        columns = as_float64(X[:, start : start + step].T)
        if weight is None:
            columns = np.sort(columns, axis=1)  # NaN comes last; X stays as it is
            weights = np.broadcast_to(1.0, columns.shape)
        else:
            order = np.argsort(columns, axis=1, kind="stable")
            columns = np.take_along_axis(columns, order, axis=1)
            weights = weight[order]
        present = ~np.isnan(columns)
        missing = np.where(present, 0.0, weights).sum(axis=1)
        offsets = offsets_of(present.sum(axis=1))
        yield columns[present], weights[present], offsets, missing


def _sparse_columns(
    X: Any, weight: NDArray[np.float64] | None, total: float
) -> Iterator[_Columns]:
    """Yield what is in some columns at a time, sorted, with the zeros not stored."""
    n, d = X.shape
    X = X.tocsc()
    start = 0
    while True:
        # As many columns as have few entries together, and one in any case.
        reach = X.indptr[start] + TOGETHER
        stop = int(np.searchsorted(X.indptr, reach, side="right")) - 1
        stop = min(max(stop, start + 1), d)
        some = slice(X.indptr[start], X.indptr[stop])
        stored = np.diff(X.indptr[start : stop + 1])
        column = np.repeat(np.arange(stop - start), stored)
        values = as_float64(X.data[some])
        weights = np.ones(values.size) if weight is None else weight[X.indices[some]]
        size = stop - start
        zeros = total - np.bincount(column, weights=weights, minlength=size)
        if weight is not None:
            # Rounding may leave less than nothing of the rows that are not stored.
            zeros = np.maximum(zeros, weight.min(initial=np.inf))
        zeros[stored == n] = 0.0
        absent = np.isnan(values)
        missing = np.bincount(
            column[absent], weights=weights[absent], minlength=size
        ).astype(np.float64)
        with_zeros = np.flatnonzero(zeros > 0)
        column = np.concatenate([column[~absent], with_zeros])
        values = np.concatenate([values[~absent], np.zeros(with_zeros.size)])
        weights = np.concatenate([weights[~absent], zeros[with_zeros]])
        order = np.lexsort((values, column))
        offsets = offsets_of(np.bincount(column, minlength=size))
        yield values[order], weights[order], offsets, missing
        start = stop
        if start >= d:
            return


def _refuse_infinity(points: Points, first: int) -> None:
    infinite = np.flatnonzero(np.isinf(points.values))
    if infinite.size:
        inside = np.searchsorted(points.offsets, infinite[0], side="right") - 1
        raise not_finite(first + int(inside))


def _side_by_side(parts: list[ColumnSummary]) -> ColumnSummary:
    """Put summaries of different columns of the same rows together."""
    if len(parts) == 1:
        return parts[0]

    def together(name: str) -> NDArray:
        return np.concatenate([getattr(part, name) for part in parts])

    return ColumnSummary(
        parts[0].total,
        together("weight"),
        together("missing"),
        together("mean"),
        together("deviation"),
        Points(
            np.concatenate([part.points.values for part in parts]),
            np.concatenate([part.points.weights for part in parts]),
            offsets_of(np.concatenate([part.points.counts for part in parts])),
        ),
        together("exact"),
        parts[0].sparse,
    )


def _chan(
    a: ColumnSummary, b: ColumnSummary
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Merge weights, means and deviations."""
    weight = a.weight + b.weight
    whole = np.where(weight > 0, weight, 1.0)
    p, q = a.weight / whole, b.weight / whole
    # The means lie between the limits: their halves' difference is finite.
    half = b.mean / 2 - a.mean / 2
    within = np.hypot(np.sqrt(p) * a.deviation, np.sqrt(q) * b.deviation)
    return (
        weight,
        np.where(a.weight > 0, a.mean + q * half + q * half, b.mean),
        np.hypot(within, np.sqrt(p * q) * half * 2),
    )


def _described(summary: ColumnSummary) -> str:
    return f"{summary.n_inputs} {'sparse' if summary.sparse else 'dense'} columns"
