"""True labels of a set of rows, in the two forms that the kernels read."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.indicator import check_indicator


# Messages and logs show objects by their repr, and must not show rows.
@dataclass(frozen=True, eq=False, repr=False)
class RowTargets:
    """True labels of n rows: an indicator matrix, its relevant labels, row weights.

    Counting ranks needs only the relevant labels of a row, decisions need the whole
    row: both are kept, since an indicator is small beside the features.

    Attributes
    ----------
    dense : uint8 array (n, K)
        The indicator matrix.
    indptr, indices : int32 arrays (n + 1,) and (number of relevant labels,)
        Row i has the relevant labels ``indices[indptr[i]:indptr[i + 1]]``, ascending.
    weight : float64 array (n,)
        Row weights, all ones when none were given.
    weighted : bool
        Whether weights were given.
    soft : float32 array (n, K) or None
        Shares of labels in the place of the indicator, in [0, 1], of which a teacher
        speaks. Cross-entropy that is descended reads them, and nothing else does.
    """

    dense: NDArray[np.uint8]
    indptr: NDArray[np.int32]
    indices: NDArray[np.int32]
    weight: NDArray[np.float64]
    weighted: bool
    soft: NDArray[np.float32] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.dense.shape[0]

    @property
    def n_labels(self) -> int:
        """Number of labels, K."""
        return self.dense.shape[1]

    @property
    def arrays(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Indicator, pointers, relevant labels and weights, as kernels take them."""
        return self.dense, self.indptr, self.indices, self.weight

    def take(self, rows: NDArray[np.integer]) -> RowTargets:
        """Return the targets of some rows, in the given order."""
        first = self.indptr[rows]
        counts = self.indptr[rows + 1] - first
        indptr = np.zeros(len(rows) + 1, dtype=np.int32)
        np.cumsum(counts, out=indptr[1:])
        source = np.repeat(first - indptr[:-1], counts) + np.arange(indptr[-1])
        return replace(
            self,
            dense=self.dense[rows],
            indptr=indptr,
            indices=self.indices[source],
            weight=self.weight[rows],
            soft=None if self.soft is None else self.soft[rows],
        )

    @classmethod
    def from_indicator(
        cls, Y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> RowTargets:
        """Check an indicator matrix and row weights and bring them into this form."""
        dense = check_indicator(Y)
        n = dense.shape[0]
        rows, columns = np.nonzero(dense)
        indptr = np.zeros(n + 1, dtype=np.int32)
        np.cumsum(np.bincount(rows, minlength=n), out=indptr[1:])
        return cls(
            dense=dense,
            indptr=indptr,
            indices=columns.astype(np.int32),
            weight=_check_weight(sample_weight, n),
            weighted=sample_weight is not None,
        )


def _check_weight(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64]:
    if sample_weight is None:
        return np.ones(n)
    weight = np.ascontiguousarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(
            f"sample_weight must have shape ({n},), one weight a row, "
            f"got {weight.shape}."
        )
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError(
            "sample_weight must hold finite weights that are not negative, "
            f"got values from {weight.min()} to {weight.max()}."
        )
    return weight
