"""The engine of one machine: NumPy products, compiled kernels, threads over blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, wait
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._simd import LANES
from ..losses import RowTargets, Statistics
from ..network import Layout, Rows, Scaling, Weights, block_logits
from ..network._lanes import LaneWeights, padded
from ._base import RowEngine
from ._blas import single_threaded_blas
from ._blocks import BLOCK_CANDIDATES, Task, cut, rows_per_block
from ._fused import fill_logits, sparse_products, sum_statistics

# Candidates of a block from which on lanes pay, though some of them are empty.
_FEWEST_LANES = 4
_Block = Weights | LaneWeights
# Multiply-adds below which handing tasks to threads costs more than they save.
_SMALL_WORK = 2.5e7


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
        Threads that take blocks; everything runs in the caller's thread without one.
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
        """Return what computes the losses: there is nobody else to do it."""
        return partial(self.losses, thetas)

    @single_threaded_blas()
    def evaluate(self, thetas: NDArray[np.floating]) -> Statistics:
        """Return the statistics of candidates (population, n)."""
        n_shards = len(cut(1, self.n_rows))
        totals = [self.loss_set.new_totals(len(thetas)) for _ in range(n_shards)]
        matrix_losses = {
            loss.name: np.empty(len(thetas)) for loss in self.loss_set.matrix_losses
        }
        for first, weights in self._laid_out(thetas):
            tasks = cut(sum(w.n_candidates for w in weights), self.n_rows)
            parts = self._run(self._sum_rows, weights, tasks)
            for task, part in zip(tasks, parts, strict=True):
                where = slice(first + task.first, first + task.last)
                total = totals[task.shard]
                total.columns[where] = part.columns
                total.labels[where] = part.labels
                for name in total.own:
                    total.own[name][where] = part.own[name]
            for name, values in self._matrix_losses(weights).items():
                matrix_losses[name][first : first + len(values)] = values
        for shard in totals[1:]:
            totals[0].add(shard)
        statistics = self.loss_set.statistics(
            totals[0], float(self.targets.weight.sum())
        )
        statistics.matrix_losses = matrix_losses
        return statistics

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
        kind = LaneWeights if len(thetas) >= _FEWEST_LANES else Weights
        return kind.from_thetas(thetas, self.layout, self._rows)

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

    def _sum_rows(self, weights: _Block, task: Task) -> Any:
        wants = self.loss_set.lane_statistics
        if wants is None or isinstance(weights, Weights):
            totals = self.loss_set.new_totals(weights.n_candidates)
            for start, logits in self._logits(weights, task):
                self.loss_set.accumulate(totals, logits, self.targets, start)
            return totals
        sums = self.loss_set.new_lane_totals()
        threshold = self._dtype(self.loss_set.threshold)
        for start, stop, product in self._products(weights, task):
            sum_statistics(
                product,
                weights.hidden,
                weights.last,
                start,
                stop - start,
                self.targets.arrays,
                threshold,
                wants,
                sums,
            )
        return self.loss_set.totals_of_lanes(*sums, weights.n_candidates)

    def _logits(self, weights: _Block, task: Task) -> Iterator[tuple[int, NDArray]]:
        """Yield the first row and the logits (candidates, rows, K) of each block."""
        if isinstance(weights, Weights):
            for start in range(task.start, task.stop, self._block_rows):
                stop = min(start + self._block_rows, task.stop)
                yield start, block_logits(weights, self._rows, start, stop)
            return
        for start, stop, product in self._products(weights, task):
            shape = (weights.n_candidates, stop - start, self.layout.n_labels)
            logits: NDArray = np.empty(shape, dtype=self._dtype)
            fill_logits(product, weights.hidden, weights.last, logits)
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
        blocks = [weights[task.first // BLOCK_CANDIDATES] for task in tasks]
        if self._executor is None or len(tasks) == 1 or self._is_small(tasks):
            return list(map(work, blocks, tasks))
        futures = list(map(self._executor.submit, repeat(work), blocks, tasks))
        try:
            return [future.result() for future in futures]
        finally:
            # After an interrupt no thread may still be writing into our arrays.
            for future in futures:
                future.cancel()
            wait(futures)
