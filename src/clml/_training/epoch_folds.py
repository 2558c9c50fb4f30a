"""What members say of rows that had no say in the choice of the epoch.

The epoch with the smallest losses on some rows looks better on these than it is: of
forty epochs one is lucky. Here the rows are dealt into folds, the other folds choose an
epoch for each, and the logits of that epoch are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from ..losses import LossSet, RowTargets

#: Parts of the rows; each has its epoch chosen by the others.
N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class EpochChoices:
    """What each fold's other folds have chosen so far. A value.

    Attributes
    ----------
    value, best_value : float64 arrays (folds, kinds)
        Of the losses on the other folds: averaged over the last epochs, and the
        smallest.
    by_kind : float64 array (kinds, n, K)
        Logits of each row, after the epoch that the other folds like best.
    """

    value: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    best_value: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    by_kind: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0, 0)))


class EpochFolds:
    """Deals the rows that judge into folds, and chooses for each by the others.

    Parameters
    ----------
    targets : RowTargets
    loss_set : LossSet
        Of losses that are sums over rows.
    value_of : callable
        What epochs are chosen by, from the losses (o,); the smallest is best.
    """

    def __init__(
        self,
        targets: RowTargets,
        loss_set: LossSet,
        value_of: Callable[[NDArray[np.float64]], float],
    ):
        order = np.random.default_rng(0).permutation(targets.n_rows)
        self._rows = [np.sort(part) for part in np.array_split(order, N_FOLDS)]
        self._targets = [targets.take(rows) for rows in self._rows]
        self._loss_set, self._value_of = loss_set, value_of

    def after(
        self, now: EpochChoices, by_kind: NDArray[np.float64], kept: float
    ) -> EpochChoices:
        """Return the choices after one more epoch.

        Parameters
        ----------
        now : EpochChoices
        by_kind : float64 array (kinds, n, K)
            What members say after the epoch.
        kept : float
            The share of earlier epochs in ``value``.
        """
        value = self._values(by_kind)
        if not now.value.size:
            return EpochChoices(value, value, by_kind)
        older = np.where(np.isfinite(now.value), now.value, value)
        value = kept * older + (1 - kept) * value
        better = value < now.best_value
        chosen = now.by_kind.copy()
        for own, rows in zip(better, self._rows, strict=True):
            chosen[np.ix_(own, rows)] = by_kind[np.ix_(own, rows)]
        return EpochChoices(value, np.where(better, value, now.best_value), chosen)

    def _values(self, by_kind: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what each kind is worth (folds, kinds) on the rows of other folds."""
        statistics = []
        for rows, own in zip(self._rows, self._targets, strict=True):
            totals = self._loss_set.new_totals(len(by_kind))
            self._loss_set.accumulate(totals, by_kind[:, rows], own)
            weight = float(own.weight.sum())
            statistics.append(self._loss_set.statistics(totals, weight))
        others = [
            reduce(add, statistics[:fold] + statistics[fold + 1 :])
            for fold in range(len(statistics))
        ]
        losses = [self._loss_set.close(some) for some in others]
        return np.array([[self._value_of(kind) for kind in some] for some in losses])
