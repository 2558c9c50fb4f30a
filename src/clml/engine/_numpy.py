"""The engine of one machine: NumPy products, compiled kernels, threads over blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._simd import LANES
from .._threads import begin, shared
from ..losses import RowTargets, Statistics, Totals
from ..network import Layout, Rows, Scaling
from ..network._kernels import sparse_product
from ..network._lanes import LaneWeights, SharedWeights, fill_logits_of_one, padded
from ._base import RowEngine
from ._blas import single_threaded_blas
from ._blocks import BLOCK_CANDIDATES, Task, cut, rows_per_block
from ._fused import (
    fill_logits,
    sparse_products,
    sum_dense_rows,
    sum_dense_rows_of_one,
    sum_sparse_rows,
    sum_sparse_rows_of_one,
)

_Block = LaneWeights | SharedWeights
# What sums the statistics of dense rows, and of sparse ones.
_SUM_OF_LANES = (sum_dense_rows, sum_sparse_rows)
_SUM_OF_ONE = (sum_dense_rows_of_one, sum_sparse_rows_of_one)
# Multiply-adds below which handing tasks to threads costs more than they save.
_SMALL_WORK = 1.2e6


class NumpyEngine(RowEngine):
    """Evaluates populations on rows held in this process's memory.

    Parameters
    ----------
    layout : Layout
    X : array or CSR matrix (rows, D)
    targets : RowTargets
        The labels and weights of the rows.
    losses : sequence of losses
    scaling : Scaling, default=None
    executor : concurrent.futures.Executor, default=None
        Threads that help the caller's.
    memory_mb : float, default=512
        What the laid-out weights of the candidates in flight may take, beside the
        rows; at least one block of candidates is always in flight.
    dtype : numpy dtype, default=float32
        Of the arithmetic; statistics are summed in float64.
    """

    def __init__(
        self,
        layout: Layout,
        X: Any,
        targets: RowTargets,
        losses: Any = ("hamming", "lrap", "micro_f1"),
        *,
        scaling: Scaling | None = None,
        executor: Executor | None = None,
        memory_mb: float = 512,
        dtype: type = np.float32,
    ):
        super().__init__(layout, X, targets, losses)
        self._rows = Rows.from_features(X, scaling, dtype)
        self._executor = executor
        self._dtype = dtype
        self._block_rows = rows_per_block(
            layout.embedding_dim, layout.n_labels, np.dtype(dtype).itemsize
        )
        self._memory_mb = memory_mb

    @property
    def _candidates_in_flight(self) -> int:
        itemsize = 8 if self._rows.csr is not None else np.dtype(self._dtype).itemsize
        per_candidate = self.layout.size * (itemsize + np.dtype(self._dtype).itemsize)
        if self.loss_set.matrix_losses:  # these need the scores of all rows at once
            logits = self._rows.n_rows * self.layout.n_labels
            per_candidate += logits * np.dtype(self._dtype).itemsize
        blocks = int(self._memory_mb * 2**20 / (per_candidate * BLOCK_CANDIDATES))
        return max(blocks, 1) * BLOCK_CANDIDATES

    def begin(self, thetas: NDArray[np.floating]) -> Callable[[], NDArray[np.float64]]:
        """Hand the candidates to the helpers; what is returned does what they left."""
        tasks = cut(len(thetas), self.n_rows)
        at_once = len(thetas) <= self._candidates_in_flight
        helped = self._executor is not None and not self._is_small(tasks)
        if not helped or not at_once or self.loss_set.matrix_losses:
            return partial(self.losses, thetas)
        ((_, weights),) = self._laid_out(thetas)
        work = single_threaded_blas()(self._sum_rows)
        wait_for = begin(self._executor, work, _blocks_of(tasks, weights), tasks)

        def finish() -> NDArray[np.float64]:
            totals = self._new_totals(len(thetas))
            _place(totals, 0, tasks, wait_for())
            return self.loss_set.close(self._statistics(totals))

        return finish

    @single_threaded_blas()
    def evaluate(self, thetas: NDArray[np.floating]) -> Statistics:
        """Return the statistics of candidates (population, n)."""
        totals = self._new_totals(len(thetas))
        matrix_losses = {
            loss.name: np.empty(len(thetas)) for loss in self.loss_set.matrix_losses
        }
        for first, weights in self._laid_out(thetas):
            tasks = cut(sum(w.n_candidates for w in weights), self.n_rows)
            _place(totals, first, tasks, self._run(self._sum_rows, weights, tasks))
            for name, values in self._matrix_losses(weights).items():
                matrix_losses[name][first : first + len(values)] = values
        statistics = self._statistics(totals)
        statistics.matrix_losses = matrix_losses
        return statistics

    def _new_totals(self, n_candidates: int) -> list[Totals]:
        """Return accumulators at zero, one a shard of rows."""
        n_shards = len(cut(1, self.n_rows))
        return [self.loss_set.new_totals(n_candidates) for _ in range(n_shards)]

    def _statistics(self, totals: list[Totals]) -> Statistics:
        """Add the shards up, in their order."""
        for shard in totals[1:]:
            totals[0].add(shard)
        return self.loss_set.statistics(totals[0], float(self.targets.weight.sum()))

    @single_threaded_blas()
    def scores(self, thetas: NDArray[np.floating]) -> NDArray:
        """Return the logits (population, rows, K) of candidates (population, n)."""
        shape = (len(thetas), self.n_rows, self.layout.n_labels)
        logits: NDArray = np.empty(shape, dtype=self._dtype)
        for first, weights in self._laid_out(thetas):
            self._fill_scores(weights, logits[first:])
        return logits

    def _laid_out(
        self, thetas: NDArray[np.floating]
    ) -> Iterator[tuple[int, list[_Block]]]:
        """Yield the candidates in batches that fit the memory, block by block."""
        in_flight = self._candidates_in_flight
        for first in range(0, len(thetas), in_flight):
            batch: NDArray = thetas[first : first + in_flight].astype(self._dtype)
            yield (
                first,
                [
                    self._block(batch[b : b + BLOCK_CANDIDATES])
                    for b in range(0, len(batch), BLOCK_CANDIDATES)
                ],
            )

    def _block(self, thetas: NDArray) -> _Block:
        if len(thetas) == 1:
            return SharedWeights.from_theta(thetas[0], self.layout, self._rows)
        return LaneWeights.from_thetas(thetas, self.layout, self._rows)

    def _products_of_one(
        self, weights: SharedWeights, task: Task
    ) -> Iterator[tuple[int, int, NDArray]]:
        """Yield the rows from start to stop of each block, and their first product.

        The product is (stop − start, C).
        """
        for start in range(task.start, task.stop, self._block_rows):
            stop = min(start + self._block_rows, task.stop)
            product: NDArray
            if self._rows.csr is None:
                assert self._rows.dense is not None
                product = self._rows.dense[start:stop] @ weights.first
            else:
                shape = (stop - start, self.layout.embedding_dim)
                product = np.empty(shape, weights.first.dtype)
                sparse_product(
                    *self._rows.csr, start, stop - start, weights.first, product
                )
            yield start, stop, product.astype(self._dtype, copy=False)

    def _products(
        self, weights: LaneWeights, task: Task
    ) -> Iterator[tuple[int, int, NDArray]]:
        """Yield the rows from start to stop of each block, and their first product.

        The product is (stop − start, padded, C, LANES); the next one overwrites it.
        """
        step, c = self._block_rows, self.layout.embedding_dim
        shape = (padded(min(step, task.stop - task.start)), c, LANES)
        product: NDArray = np.zeros(shape, dtype=self._dtype)
        flat = product.reshape(len(product), -1)
        matrix = weights.first.reshape(len(weights.first), -1)
        buffer = np.empty(shape[1:], dtype=weights.first.dtype)
        for start in range(task.start, task.stop, step):
            stop = min(start + step, task.stop)
            if self._rows.csr is None:
                assert self._rows.dense is not None
                np.matmul(
                    self._rows.dense[start:stop], matrix, out=flat[: stop - start]
                )
            else:
                sparse_products(
                    *self._rows.csr, start, stop - start, weights.first, buffer, product
                )
            yield start, stop, product[: padded(stop - start)]

    def _sum_rows(self, weights: _Block, task: Task) -> Totals:
        """Return the sums of a task's rows; one compiled call if that is possible."""
        losses = self.loss_set
        one, lanes = losses.row_statistics, losses.lane_statistics
        if isinstance(weights, SharedWeights) and one is not None:
            totals = losses.new_totals(1)
            sums = (totals.columns, totals.labels)
            self._add_rows(_SUM_OF_ONE, weights, task, one, sums)
            return totals
        if isinstance(weights, LaneWeights) and lanes is not None:
            lane_sums = losses.new_lane_totals()
            self._add_rows(_SUM_OF_LANES, weights, task, lanes, lane_sums)
            return losses.totals_of_lanes(*lane_sums, weights.n_candidates)
        totals = losses.new_totals(weights.n_candidates)
        for start, logits in self._logits(weights, task):
            losses.accumulate(totals, logits, self.targets, start)
        return totals

    def _add_rows(
        self, kernels: Any, weights: _Block, task: Task, wants: Any, sums: Any
    ) -> None:
        sparse = self._rows.csr is not None
        kernels[sparse](
            self._rows.csr if sparse else self._rows.dense,
            weights.first,
            weights.hidden,
            weights.last,
            self._block_rows,
            task.start,
            task.stop,
            self.targets.arrays,
            self._dtype(self.loss_set.threshold),
            wants,
            sums,
        )

    def _logits(self, weights: _Block, task: Task) -> Iterator[tuple[int, NDArray]]:
        """Yield the first row and the logits (candidates, rows, K) of each block."""
        if isinstance(weights, SharedWeights):
            products, fill = self._products_of_one(weights, task), fill_logits_of_one
        else:
            products, fill = self._products(weights, task), fill_logits
        for start, stop, product in products:
            shape = (weights.n_candidates, stop - start, self.layout.n_labels)
            logits: NDArray = np.empty(shape, dtype=self._dtype)
            fill(product, weights.hidden, weights.last, logits)
            yield start, logits

    def _fill_scores(self, weights: list[_Block], out: NDArray) -> None:
        def fill(block: _Block, task: Task) -> None:
            for start, logits in self._logits(block, task):
                stop = start + logits.shape[1]
                out[task.first : task.last, start:stop] = logits

        tasks = cut(sum(w.n_candidates for w in weights), self.n_rows)
        self._run(fill, weights, tasks)

    def _matrix_losses(self, weights: list[_Block]) -> dict[str, NDArray[np.float64]]:
        if not self.loss_set.matrix_losses:
            return {}
        population = sum(w.n_candidates for w in weights)
        shape = (population, self.n_rows, self.layout.n_labels)
        logits: NDArray = np.empty(shape, dtype=self._dtype)
        self._fill_scores(weights, logits)
        return self.loss_set.evaluate_matrix_losses(logits, self.targets)

    def _is_small(self, tasks: list[Task]) -> bool:
        pairs = sum((t.last - t.first) * (t.stop - t.start) for t in tasks)
        return pairs * self.layout.size < _SMALL_WORK

    def _run(self, work: Any, weights: list[_Block], tasks: list[Task]) -> list[Any]:
        """Run ``work`` on each task, in threads if there are any; keep the order."""
        helpers = None if self._is_small(tasks) else self._executor
        return shared(helpers, work, _blocks_of(tasks, weights), tasks)


def _blocks_of(tasks: list[Task], weights: list[_Block]) -> list[_Block]:
    return [weights[task.first // BLOCK_CANDIDATES] for task in tasks]


def _place(
    totals: list[Totals], first: int, tasks: list[Task], parts: list[Totals]
) -> None:
    """Put the sums of tasks, whose candidates begin at ``first``, into the shards'."""
    for task, part in zip(tasks, parts, strict=True):
        where = slice(first + task.first, first + task.last)
        total = totals[task.shard]
        total.columns[where] = part.columns
        total.labels[where] = part.labels
        for name in total.own:
            total.own[name][where] = part.own[name]
