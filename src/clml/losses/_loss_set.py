"""Several losses evaluated together: which statistics they need, added and closed."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._support.simd import LANES
from . import kernels as kernels
from ._loss import Loss, MatrixLoss
from ._targets import RowTargets
from .statistics import (
    LABEL_STATISTICS,
    SCALAR_STATISTICS,
    Statistic,
    built_in_statistic,
)

_COLUMN = {s.name: i for i, s in enumerate(SCALAR_STATISTICS)}
_LABEL_COLUMN = {s.name: i for i, s in enumerate(LABEL_STATISTICS)}
_TOP_HITS = "top_hits_"
_EXAMPLE = {"subset", "jaccard", "example_f1"}
_RANKING = {"lrap", "ranking", "coverage", "one_error"}
_PROBABILITY = {"cross_entropy", "row_log_loss"}


@dataclass(frozen=True)
class Needs:
    """Which groups of statistics some losses need.

    Attributes
    ----------
    decisions : bool
        Whether any of the others but those of probabilities, or counts of decisions.
    lrap, order, example, probability, labels : bool
        LRAP, other statistics of the order, those of single rows, of probabilities,
        and of labels.
    host : bool
        Whether there are others: of a user, or counts among the highest labels.
    """

    decisions: bool
    lrap: bool
    order: bool
    example: bool
    probability: bool
    labels: bool
    host: bool


@dataclass
class Statistics:
    """Weighted sums of row statistics for a population, over some rows.

    Statistics of disjoint sets of rows add up to those of their union.

    Attributes
    ----------
    weight : float
        Sum of the row weights.
    sums : dict of str to float64 array (population,) or (population, K)
    matrix_losses : dict of str to float64 array (population,)
        Values of losses that no sum gives; present only when all rows were seen.
    """

    weight: float
    sums: dict[str, NDArray[np.float64]]
    matrix_losses: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    def __add__(self, other: Statistics) -> Statistics:
        if self.matrix_losses or other.matrix_losses:
            names = sorted({*self.matrix_losses, *other.matrix_losses})
            raise ValueError(f"Losses that are no sums over rows cannot add: {names}.")
        return Statistics(
            self.weight + other.weight,
            {name: total + other.sums[name] for name, total in self.sums.items()},
        )


@dataclass
class Totals:
    """Accumulators of one population over the blocks of rows seen so far."""

    columns: NDArray[np.float64]
    labels: NDArray[np.float64]
    own: dict[str, NDArray[np.float64]]

    def add(self, other: Totals) -> None:
        """Add the totals of further rows in place."""
        self.columns += other.columns
        self.labels += other.labels
        for name, total in self.own.items():
            total += other.own[name]

    def at(self, where: slice) -> Totals:
        """Return the accumulators of some of the candidates: views of these."""
        own = {name: total[where] for name, total in self.own.items()}
        return Totals(self.columns[where], self.labels[where], own)

    def put(self, where: slice, other: Totals) -> None:
        """Set the totals of some of the candidates."""
        self.columns[where] = other.columns
        self.labels[where] = other.labels
        for name, total in self.own.items():
            total[where] = other.own[name]


class LossSet:
    """The losses of one task, ready to be computed block by block.

    Parameters
    ----------
    losses : sequence of Loss
    n_labels : int
    threshold : float, default=0.0
        A label is decided for when its score is above it.
    """

    #: What counts the built-in statistics of rows.
    kernel = staticmethod(kernels.accumulate)

    def __init__(self, losses: tuple[Loss, ...], n_labels: int, threshold: float = 0.0):
        self.losses = losses
        self.n_labels = n_labels
        self.threshold = threshold
        for loss in losses:
            loss.check(n_labels)
        self._needed = needed = _union_of_statistics(losses)
        ks = sorted(
            int(name.removeprefix(_TOP_HITS))
            for name in needed
            if name.startswith(_TOP_HITS) and built_in_statistic(name)
        )
        self._ks = np.array(ks, dtype=np.int64)
        self._top_column = {
            f"{_TOP_HITS}{k}": kernels.N_COLUMNS + i for i, k in enumerate(ks)
        }
        compiled = {**_COLUMN, **_LABEL_COLUMN, **self._top_column}
        self._own = [s for name, s in needed.items() if name not in compiled]
        #: What each loss is made of.
        self.made_of = tuple(loss.resolved_statistics() for loss in losses)
        self._want_example = bool(_EXAMPLE & needed.keys())
        self._want_ranking = bool(_RANKING & needed.keys()) or bool(ks)
        self._want_probability = bool(_PROBABILITY & needed.keys())
        self._want_labels = bool(_LABEL_COLUMN.keys() & needed.keys())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the losses, in order."""
        return tuple(loss.name for loss in self.losses)

    def column(self, name: str) -> int:
        """Return where a built-in statistic, not kept per label, is in the totals."""
        return _COLUMN[name] if name in _COLUMN else self._top_column[name]

    @property
    def is_built_in(self) -> bool:
        """Whether all statistics are built in, and there is nothing else."""
        return not self._own and not self.matrix_losses

    @property
    def matrix_losses(self) -> tuple[MatrixLoss, ...]:
        """The losses that need the scores of all rows at once."""
        return tuple(x for x in self.losses if isinstance(x, MatrixLoss))

    def new_totals(self, population: int) -> Totals:
        """Return accumulators at zero."""
        n_kept = self.n_labels if self._want_labels else 0
        own = {
            s.name: np.zeros((population, self.n_labels) if s.per_label else population)
            for s in self._own
        }
        return Totals(
            np.zeros((population, kernels.N_COLUMNS + len(self._ks))),
            np.zeros((population, len(LABEL_STATISTICS), n_kept)),
            own,
        )

    @cached_property
    def needs(self) -> Needs:
        """Which groups of statistics the losses need."""
        needed = self._needed.keys()
        return Needs(
            decisions=bool(needed - _PROBABILITY),
            lrap="lrap" in needed,
            order=bool((_RANKING - {"lrap"}) & needed),
            example=self._want_example,
            probability=self._want_probability,
            labels=self._want_labels,
            host=bool(self._own) or bool(len(self._ks)),
        )

    @property
    def lane_statistics(self) -> tuple[bool, bool, bool, bool] | None:
        """What to count for candidates in lanes, or None if that is not all.

        LRAP, other rankings, statistics of single rows, and of labels: see
        ``_lane_kernels``.
        """
        needs = self.needs
        if needs.host or needs.probability or not self._needed:
            return None
        return needs.lrap, needs.order, needs.example, needs.labels

    @property
    def _wants(self) -> tuple[bool, bool, bool, bool, NDArray[np.int64]]:
        return (
            self._want_ranking,
            self._want_example,
            self._want_probability,
            self._want_labels,
            self._ks,
        )

    @property
    def row_statistics(
        self,
    ) -> tuple[bool, bool, bool, bool, NDArray[np.int64]] | None:
        """What ``_kernels.accumulate`` is to count, or None if that is not all."""
        return None if self._own or not self._needed else self._wants

    def new_lane_totals(
        self,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Return accumulators of LANES candidates at zero."""
        n_kept = self.n_labels if self._want_labels else 0
        return (
            np.zeros((kernels.N_COLUMNS, LANES)),
            np.zeros((len(LABEL_STATISTICS), n_kept, LANES)),
            np.zeros(LANES, dtype=np.int64),
        )

    def totals_of_lanes(
        self,
        columns: NDArray[np.float64],
        labels: NDArray[np.float64],
        n_nan: NDArray[np.int64],
        n_candidates: int,
    ) -> Totals:
        """Return the totals of the first lanes; those that met NaN are undefined."""
        columns[:, n_nan > 0] = np.nan
        labels[..., n_nan > 0] = np.nan
        return Totals(
            np.ascontiguousarray(columns[:, :n_candidates].T),
            np.ascontiguousarray(labels[..., :n_candidates].transpose(2, 0, 1)),
            {},
        )

    def accumulate(
        self,
        totals: Totals,
        scores: NDArray[np.floating],
        targets: RowTargets,
        start: int = 0,
    ) -> None:
        """Add the statistics of a block of rows; ``scores`` is (population, rows, K).

        The block's first row is row ``start`` of the targets.
        """
        if not self._needed:
            return
        kernels.accumulate(
            scores,
            start,
            *targets.arrays,
            scores.dtype.type(self.threshold),
            *self._wants,
            totals.columns,
            totals.labels,
        )
        self._accumulate_plain(self._own, totals.own, scores, targets, start)

    def accumulate_plain(
        self,
        scores: NDArray[np.floating],
        targets: RowTargets,
    ) -> Statistics:
        """Return the same sums from the definitions, slowly: the kernels' twin."""
        population = scores.shape[0]
        sums = {
            s.name: np.zeros((population, self.n_labels) if s.per_label else population)
            for s in self._needed.values()
        }
        self._accumulate_plain(list(self._needed.values()), sums, scores, targets, 0)
        return Statistics(float(targets.weight.sum()), sums)

    def _accumulate_plain(
        self,
        statistics: list[Statistic],
        sums: dict[str, NDArray[np.float64]],
        scores: NDArray[np.floating],
        targets: RowTargets,
        start: int,
    ) -> None:
        if not statistics:
            return
        here = slice(start, start + scores.shape[1])
        used = targets.weight[here] > 0  # as if rows of weight 0 were absent
        Y = targets.dense[here][used].astype(bool)
        weight = targets.weight[here][used]
        scores = scores[:, used]
        undefined = np.isnan(scores).any(axis=(1, 2))
        for s in statistics:
            value = np.asarray(s.define(Y, scores, self.threshold), dtype=np.float64)
            expected = scores.shape if s.per_label else scores.shape[:2]
            if value.shape != expected:
                raise ValueError(
                    f"The statistic {s.name!r} must return shape {expected}, "
                    f"got {value.shape}."
                )
            total = sums[s.name]
            total += np.einsum("r,pr...->p...", weight, value)
            total[undefined] = np.nan

    def statistics(self, totals: Totals, weight: float) -> Statistics:
        """Name the totals."""
        sums: dict[str, NDArray[np.float64]] = {}
        for name in self._needed:
            if name in _LABEL_COLUMN:
                sums[name] = totals.labels[:, _LABEL_COLUMN[name]]
            elif name in totals.own:
                sums[name] = totals.own[name]
            else:
                column = _COLUMN.get(name, self._top_column.get(name, -1))
                sums[name] = totals.columns[:, column]
        return Statistics(weight, sums)

    def evaluate_matrix_losses(
        self, scores: NDArray[np.floating], targets: RowTargets
    ) -> dict[str, NDArray[np.float64]]:
        """Compute the losses that are no sums, from the scores (population, n, K)."""
        if not self.matrix_losses:
            return {}
        # A user's function gets to read, not to write.
        scores, truth, weight = (
            _read_only(array) for array in (scores, targets.dense, targets.weight)
        )
        undefined = np.isnan(scores).any(axis=(1, 2))
        given = weight if targets.weighted else None
        return {
            loss.name: np.array(
                [
                    np.nan
                    if undefined[p]
                    else loss.evaluate(truth, s, given, self.threshold)
                    for p, s in enumerate(scores)
                ]
            )
            for loss in self.matrix_losses
        }

    def evaluate(
        self, scores: NDArray[np.floating], targets: RowTargets
    ) -> NDArray[np.float64]:
        """Return the losses (population, o) of all rows' scores (population, n, K)."""
        totals = self.new_totals(len(scores))
        self.accumulate(totals, scores, targets)
        statistics = self.statistics(totals, float(targets.weight.sum()))
        statistics.matrix_losses = self.evaluate_matrix_losses(scores, targets)
        return self.close(statistics)

    def close(self, statistics: Statistics) -> NDArray[np.float64]:
        """Return the losses (population, o) from their statistics."""
        return np.stack([self._close(loss, statistics) for loss in self.losses], axis=1)

    def _close(self, loss: Loss, statistics: Statistics) -> NDArray[np.float64]:
        if isinstance(loss, MatrixLoss):
            return statistics.matrix_losses[loss.name]
        sums = statistics.sums
        values = np.asarray(
            loss.close(sums, statistics.weight, self.n_labels), dtype=np.float64
        )
        expected = (len(next(iter(sums.values()))),)
        if values.shape != expected:
            raise ValueError(
                f"close() of the loss {loss.name!r} must return shape {expected}, one "
                f"value a candidate, got {values.shape}."
            )
        return values


def _read_only(array: NDArray) -> NDArray:
    view = array.view()
    view.flags.writeable = False
    return view


def _union_of_statistics(losses: tuple[Loss, ...]) -> dict[str, Statistic]:
    """Return the statistics that the losses need, each name for one of them only."""
    needed: dict[str, Statistic] = {}
    for loss in losses:
        statistics = loss.resolved_statistics()
        if not statistics and not isinstance(loss, MatrixLoss):
            raise ValueError(f"The loss {loss.name!r} names no statistics.")
        for statistic in statistics:
            name = statistic.name
            known = needed.setdefault(name, built_in_statistic(name) or statistic)
            if known != statistic:
                raise ValueError(
                    f"The loss {loss.name!r} defines a statistic {name!r}, a name "
                    "that another statistic has. Rename it."
                )
    return needed
