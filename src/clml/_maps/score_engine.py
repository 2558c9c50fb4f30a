"""The engine of score maps: populations of maps evaluated on given scores."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._support.memory import BatchSize, start_small
from .._support.simd import side_by_side
from ..engine.base import drawn_rows
from ..engine.blocks import BLOCK_CANDIDATES, Task, add_up, cut, rows_per_block
from ..losses import LossSet, RowTargets, Statistics, Totals, get_losses
from .map_lanes import sum_map_statistics
from .row_rules import shifted_rows
from .score_map import MapSpace, apply_maps, split_maps

# Multiply-adds below which handing tasks to threads costs more than they save.
_SMALL_WORK = 2e6
# What the logits of all rows may take at once, for losses that need them so.
_LOGIT_BYTES = 256 << 20


class ScoreEngine:
    """Evaluates populations of maps on scores held in memory.

    Parameters
    ----------
    space : MapSpace
    scores : float array (n, M, K)
        Logits of the learners.
    targets : RowTargets
    losses : sequence of losses
    executor : concurrent.futures.Executor, default=None
        Threads that take blocks; the result is the same without.

    Examples
    --------
    >>> import numpy as np
    >>> from clml._maps.score_engine import ScoreEngine
    >>> from clml._maps.score_map import MapSpace
    >>> from clml.losses import RowTargets
    >>> targets = RowTargets.from_indicator([[1, 0], [1, 1]])
    >>> scores = np.array([[[1.0, 2.0]], [[0.5, -1.0]]])
    >>> space = MapSpace("bias", 2, scale=np.ones(1), offset=np.zeros(1))
    >>> engine = ScoreEngine(space, scores, targets, ("hamming",))
    >>> engine.losses(space.identity()[None])
    array([[0.5]])
    """

    def __init__(
        self,
        space: MapSpace,
        scores: NDArray[np.floating],
        targets: RowTargets,
        losses: Any,
        executor: Executor | None = None,
    ):
        expected = (targets.n_rows, space.n_learners, targets.n_labels)
        if scores.shape != expected or targets.n_rows == 0:
            raise ValueError(
                f"scores must have shape {expected} with at least one row, "
                f"got {scores.shape}."
            )
        self.space = space
        self.targets = targets
        self.loss_set = LossSet(get_losses(losses), targets.n_labels)
        self._scores = np.ascontiguousarray(scores, dtype=np.float64)
        self._executor = executor
        self._rule: str | None = None
        self._in_flight = BatchSize("candidates", BLOCK_CANDIDATES)
        self._scored = BatchSize("candidates' scores")
        self._decode: Callable[..., NDArray[np.float64]] = partial(
            np.asarray, dtype=np.float64
        )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self._scores)

    @property
    def given_scores(self) -> NDArray[np.float64]:
        """The logits (n, M, K) of the learners."""
        return self._scores

    def with_losses(self, losses: Any) -> Self:
        """Return an engine on the same rows for other losses; the rows are shared."""
        other = copy.copy(self)
        other.loss_set = LossSet(get_losses(losses), self.targets.n_labels)
        return other

    def with_scores(self, scores: NDArray[np.floating]) -> Self:
        """Return an engine for other scores (n, M, K) of the same rows."""
        other = copy.copy(self)
        other._scores = np.ascontiguousarray(scores, dtype=np.float64)
        return other

    def of_deviations(self, shift: float) -> Self:
        """Return an engine on the same rows whose candidates are deviations."""
        other = copy.copy(self)
        other._decode = partial(self.space.maps, shift=shift)
        return other

    def ruled_by(self, rule: str | None) -> Self:
        """Return an engine on the same rows whose candidates all have a row rule."""
        other = copy.copy(self)
        other._rule = rule
        return other

    def helped_by(self, executor: Executor | None) -> Self:
        """Return an engine on the same rows with other threads."""
        other = copy.copy(self)
        other._executor = executor
        return other

    def take(self, rows: NDArray[np.integer]) -> Self:
        """Return an engine on some of the rows."""
        other = copy.copy(self)
        other.targets = self.targets.take(rows)
        other._scores = self._scores[rows]
        return other

    def drawn(self, share: float, seed: tuple[int, ...]) -> Self:
        """Return an engine on a random share of the rows."""
        return self.take(drawn_rows(self.n_rows, share, seed))

    @property
    def sample(self) -> Self:
        """An engine that has the scores of single rows: this one."""
        return self

    def losses(
        self,
        thetas: NDArray[np.floating],
        rules: Sequence[str | None] = (),
    ) -> NDArray[np.float64]:
        """Return the losses (population, o) of candidates, as ``evaluate`` has them."""
        return self.loss_set.close(self.evaluate(thetas, rules))

    def begin(self, thetas: NDArray[np.floating]) -> Callable[[], NDArray[np.float64]]:
        """Return what computes the losses: there is nobody else to do it."""
        return partial(self.losses, thetas)

    def evaluate(
        self,
        thetas: NDArray[np.floating],
        rules: Sequence[str | None] = (),
    ) -> Statistics:
        """Return the statistics of candidates.

        Parameters
        ----------
        thetas : float array (population, n)
        rules : sequence of str or None, default=()
            The row rule of each candidate; () if none has one but the engine's.
        """
        if not any(rules):
            return self._evaluate(thetas)
        parts = []
        for rule in dict.fromkeys(rules):
            which = np.array([i for i, own in enumerate(rules) if own == rule])
            parts.append((which, self.ruled_by(rule)._evaluate(thetas[which])))
        return _in_one(parts, len(thetas))

    def _evaluate(self, thetas: NDArray[np.floating]) -> Statistics:
        totals = self.loss_set.new_totals(len(thetas))
        matrix_losses = {
            loss.name: np.empty(len(thetas)) for loss in self.loss_set.matrix_losses
        }

        weights, bias = self._split(thetas)

        def some(first: int, last: int) -> None:
            where = slice(first, last)
            totals.put(where, self._sums(weights[where], bias[where]))
            if matrix_losses:
                found = self._matrix_losses(weights[where], bias[where])
                for name, values in found.items():
                    matrix_losses[name][where] = values

        self._in_flight.for_each_batch(len(thetas), max(len(thetas), 1), some)
        weight = float(self.targets.weight.sum())
        statistics = self.loss_set.statistics(totals, weight)
        statistics.matrix_losses = matrix_losses
        return statistics

    def _sums(self, weights: NDArray[np.float64], bias: NDArray[np.float64]) -> Totals:
        """Return the sums over all rows, those of shards added in their order."""
        # Lanes keep no logits; mixing labels, and rules, need all of a row.
        whole_rows = self.space.mixing or self._rule is not None
        in_lanes = self.loss_set.lane_statistics is not None and not whole_rows
        sum_rows = self._sum_rows_in_lanes if in_lanes else self._sum_rows
        tasks = cut(len(bias), self.n_rows)
        parts = self._run(partial(sum_rows, weights, bias), tasks, len(bias))
        return add_up(self.loss_set, tasks, parts)

    def _sum_rows(
        self, weights: NDArray[np.float64], bias: NDArray[np.float64], task: Task
    ) -> Totals:
        part = self.loss_set.new_totals(task.last - task.first)
        for start, logits in self._blocks(weights, bias, task):
            self.loss_set.accumulate(part, logits, self.targets, start)
        return part

    def _sum_rows_in_lanes(
        self, weights: NDArray[np.float64], bias: NDArray[np.float64], task: Task
    ) -> Totals:
        """Do the same, to the last bit, without logits in memory."""
        wants = self.loss_set.lane_statistics
        assert wants is not None
        some = slice(task.first, task.last)
        sums = self.loss_set.new_lane_totals()
        sum_map_statistics(
            side_by_side(weights[some]),
            side_by_side(bias[some]),
            self._scores,
            task.start,
            task.stop,
            self.targets.arrays,
            self.loss_set.threshold,
            wants,
            sums,
        )
        return self.loss_set.totals_of_lanes(*sums, task.last - task.first)

    def scores(self, thetas: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the logits (population, rows, K) of candidates (population, n)."""
        return self._logits(*self._split(thetas))

    def slopes_of_map(
        self, slope: NDArray[np.floating]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return derivatives in a map's weights and biases.

        Parameters
        ----------
        slope : float array (n, K)
            Derivatives in the logits that the map gives.
        """
        exact = slope.astype(np.float64)
        if self.space.mixing:
            weights = self._scores[:, 0].T @ exact
        else:
            weights = np.einsum("imk,ik->mk", self._scores, exact)
        return weights, exact.sum(axis=0)

    def _split(
        self, thetas: NDArray[np.floating]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        # A map that overflows has undefined losses. That is all there is to say.
        with np.errstate(over="ignore", invalid="ignore"):
            maps = self._decode(thetas)
        return split_maps(maps, self.targets.n_labels)

    def _blocks(
        self, weights: NDArray[np.float64], bias: NDArray[np.float64], task: Task
    ) -> Any:
        """Yield the first row and the logits of each block of a task."""
        some = slice(task.first, task.last)
        step = rows_per_block(0, self.targets.n_labels, 8)
        for start in range(task.start, task.stop, step):
            block = self._scores[start : min(start + step, task.stop)]
            logits = apply_maps(weights[some], bias[some], block, self.space.mixing)
            rows = logits.reshape(-1, logits.shape[2])
            yield start, shifted_rows(self._rule, rows).reshape(logits.shape)

    def _logits(
        self, weights: NDArray[np.float64], bias: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        out = np.empty((len(bias), self.n_rows, self.targets.n_labels))

        def fill(task: Task) -> None:
            for start, logits in self._blocks(weights, bias, task):
                stop = start + logits.shape[1]
                out[task.first : task.last, start:stop] = logits

        self._run(fill, cut(len(bias), self.n_rows), len(bias))
        return out

    def _matrix_losses(
        self, weights: NDArray[np.float64], bias: NDArray[np.float64]
    ) -> dict[str, NDArray[np.float64]]:
        found = {x.name: np.empty(len(bias)) for x in self.loss_set.matrix_losses}

        def some(first: int, last: int) -> None:
            logits = self._logits(weights[first:last], bias[first:last])
            values = self.loss_set.evaluate_matrix_losses(logits, self.targets)
            for name, value in values.items():
                found[name][first:last] = value

        per_candidate = self.n_rows * self.targets.n_labels * 8
        step = max(_LOGIT_BYTES // (per_candidate * BLOCK_CANDIDATES), 1)
        self._scored.for_each_batch(len(bias), step * BLOCK_CANDIDATES, some)
        return found

    def _run(
        self, work: Callable[[Task], Any], tasks: list[Task], n_candidates: int
    ) -> list[Any]:
        """Run ``work`` on every task, in threads if there are any; keep the order."""
        size = n_candidates * self._scores.size
        helpers = None if size < _SMALL_WORK else self._executor
        missed = partial(self._in_flight.cut, n_candidates)
        return start_small(helpers, work, tasks, missed=missed)()


def _in_one(
    parts: list[tuple[NDArray[np.integer], Statistics]], n_candidates: int
) -> Statistics:
    """Return the statistics of candidates, given those of some and of others."""
    one = parts[0][1]
    together = Statistics(one.weight, {})
    for name, values in one.sums.items():
        together.sums[name] = np.empty((n_candidates, *values.shape[1:]))
    for name in one.matrix_losses:
        together.matrix_losses[name] = np.empty(n_candidates)
    for which, found in parts:
        for name, values in found.sums.items():
            together.sums[name][which] = values
        for name, values in found.matrix_losses.items():
            together.matrix_losses[name][which] = values
    return together
