"""Training and validation rows of a fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight

from ..losses import RowTargets
from ..splits import iterative_split_indices

#: Of features and labels; None where they have none.
Names = tuple[list[str] | None, list[str] | None]


# Messages and logs show objects by their repr, and must not show rows.
@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """Some rows: features (dense or CSR), indicator, and weights or None.

    One of many partitions has the names of its columns, too, if it came with them. Rows
    that a teacher speaks of have its ``soft`` targets, see ``RowTargets``.
    """

    X: Any
    Y: NDArray[np.uint8]
    weight: NDArray[np.float64] | None = None
    names: Names = (None, None)
    soft: NDArray[np.float32] | None = None

    @cached_property
    def targets(self) -> RowTargets:
        """The labels and weights in the form that losses read."""
        targets = RowTargets.from_indicator(self.Y, self.weight)
        return replace(targets, soft=self.soft)

    @property
    def nbytes(self) -> int:
        """Bytes that the rows take."""
        of_weight = 0 if self.weight is None else self.weight.nbytes
        return sum(array.nbytes for array in self.arrays) + self.Y.nbytes + of_weight

    @property
    def arrays(self) -> tuple[NDArray, ...]:
        """What the features are made of."""
        X = self.X
        return (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)

    def __sizeof__(self) -> int:
        # What the memory management of a cluster goes by.
        return self.nbytes + 200

    def take(self, rows: NDArray[np.int64]) -> Part:
        """Return these rows alone."""
        weight = None if self.weight is None else self.weight[rows]
        soft = None if self.soft is None else self.soft[rows]
        return Part(self.X[rows], self.Y[rows], weight, self.names, soft)

    def split(
        self, fraction: float, generator: np.random.Generator
    ) -> tuple[Part, Part]:
        """Part a stratified share of the rows off; return the rest and the share."""
        n = len(self.Y)
        if n < 2:
            raise ValueError(
                f"validation_fraction={fraction} needs at least 2 rows of positive "
                f"weight, got n_samples={n}. Use validation_fraction=0, or give X_val "
                "and y_val."
            )
        kept, share = iterative_split_indices(
            self.Y, test_size=fraction, random_state=generator
        )
        return self.take(kept), self.take(share)


def systematic_share(
    Y: NDArray[np.uint8], fraction: float, generator: np.random.Generator
) -> NDArray[np.bool_]:
    """Choose a stratified share of rows that are one of many partitions.

    Rows are put in an order in which those with the same rarest label, and then those
    with the same second, are neighbours, and every 1/fraction-th of them is chosen from
    a random beginning on. A row is chosen with a probability of exactly ``fraction``,
    however few a partition has: what is rounded in each adds up to the share of all.

    Examples
    --------
    >>> import numpy as np
    >>> from clml._base.rows import systematic_share
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=np.uint8)
    >>> chosen = systematic_share(Y, 0.5, np.random.default_rng(0))
    >>> Y[chosen].sum(axis=0)
    array([1, 1], dtype=uint64)
    """
    left = Y[:, np.argsort(Y.sum(axis=0, dtype=np.int64), kind="stable")]
    keys = [generator.random(len(Y))]
    for _ in range(2):
        rarest = np.argmax(left, axis=1)
        keys.insert(1, np.where(left.any(axis=1), rarest, Y.shape[1]))
        left[np.arange(len(Y)), rarest] = 0
    order = np.lexsort(keys)
    ticks = np.arange(len(Y) + 1) * fraction + generator.random()
    chosen = np.zeros(len(Y), dtype=bool)
    chosen[order] = np.diff(np.floor(ticks)) > 0
    return chosen


@dataclass(frozen=True)
class FitRows:
    """The rows of a fit: those that train, and those that judge, if any."""

    train: Part
    validation: Part | None

    @property
    def parts(self) -> tuple[Part, ...]:
        """Those that there are."""
        return tuple(p for p in (self.train, self.validation) if p is not None)

    @property
    def judge(self) -> Part:
        """The rows that models are judged on."""
        return self.train if self.validation is None else self.validation


def drop_weightless(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Check row weights and leave out the rows of weight 0."""
    if sample_weight is None:
        return X, y, None
    weight = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    used = weight > 0
    if not used.any():
        raise ValueError(
            "sample_weight must be positive for at least one row, "
            f"got {len(weight)} weights of 0."
        )
    return X[used], y[used], weight[used]
