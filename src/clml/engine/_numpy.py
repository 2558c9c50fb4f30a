"""The engine of one machine: NumPy products, compiled kernels, threads over blocks."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._support.memory import BatchSize, start_small
from .._support.simd import LANES
from ..losses import RowTargets, Statistics, Totals
from ..network import Layout, Rows, Scaling
from ..network.kernels import sparse_product
from ..network.lanes import LaneWeights, SharedWeights, fill_logits_of_one, padded
from ._blas import single_threaded_blas
from ._fused import (
    fill_logits,
    sparse_products,
    sum_dense_rows,
    sum_dense_rows_of_one,
    sum_sparse_rows,
    sum_sparse_rows_of_one,
)
from .base import RowEngine
from .blocks import BLOCK_CANDIDATES, Task, add_up, cut, rows_per_block

_Block = LaneWeights | SharedWeights
# What sums the statistics of dense rows, and of sparse ones.
_SUM_OF_LANES = (sum_dense_rows, sum_sparse_rows)
_SUM_OF_ONE = (sum_dense_rows_of_one, sum_sparse_rows_of_one)
# A candidate whose weights overflow has undefined losses. That is all there is to say.
_QUIET = partial(np.errstate, over="ignore", invalid="ignore")
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
        rows; at least one block of candidates is always in flight. Where the machine
        has less, half as many are from then on, and a warning says so.
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
        self._in_flight = BatchSize("candidates", BLOCK_CANDIDATES)
        self._scored = BatchSize("candidates' scores")

    def helped_by(self, executor: Executor | None) -> Self:
        """Return an engine on the same rows that other threads help."""
        other = copy.copy(self)
        other._executor = executor
        return other

    def arrays(self) -> list[NDArray]:
        """Return what rows and targets are made of, see ``with_arrays``."""
        return [*self.targets.arrays, *self._rows.arrays]

    def with_arrays(self, arrays: Sequence[NDArray]) -> Self:
        """Return an engine like this one on other rows, from their ``arrays``."""
        dense, indptr, indices, weight = arrays[:4]
        other = self.with_targets(
            RowTargets(dense, indptr, indices, weight, self.targets.weighted)
        )
        other._rows = self._rows.with_arrays(arrays[4:])
        return other

    def _most(self, bytes_a_candidate: int) -> int:
        """Return how many candidates fit the memory, whole blocks of them."""
        blocks = int(self._memory_mb * 2**20 / (bytes_a_candidate * BLOCK_CANDIDATES))
        return max(blocks, 1) * BLOCK_CANDIDATES

    @property
    def _candidates_in_flight(self) -> int:
        itemsize = 8 if self._rows.csr is not None else np.dtype(self._dtype).itemsize
        weights = self.layout.size * (itemsize + np.dtype(self._dtype).itemsize)
        totals = self.loss_set.new_totals(1)
        sums = totals.columns.nbytes + totals.labels.nbytes
        return self._most(weights + sums * len(cut(1, self.n_rows)))

    @property
    def _scores_at_once(self) -> int:
        """Candidates whose scores of all rows are in memory together."""
        scores = self.n_rows * self.layout.n_labels
        return self._most(scores * np.dtype(self._dtype).itemsize)

    def begin(self, thetas: NDArray[np.floating]) -> Callable[[], NDArray[np.float64]]:
        """Hand the candidates to the helpers; what is returned does what they left."""
        tasks = cut(len(thetas), self.n_rows)
        at_once = len(thetas) <= self._in_flight.size(self._candidates_in_flight)
        helped = self._executor is not None and not self._is_small(tasks)
        if not helped or not at_once or self.loss_set.matrix_losses:
            return partial(self.losses, thetas)
        try:
            weights = self._laid_out(thetas)
        except MemoryError:  # ``losses`` lays out fewer
            return partial(self.losses, thetas)
        work = single_threaded_blas()(self._sum_rows)
        # Taken out when it is called: weights are not kept beside fewer of them.
        waiting = [self._begin(self._executor, work, weights, tasks)]

        def finish() -> NDArray[np.float64]:
            totals = None
            with suppress(MemoryError):
                totals = add_up(self.loss_set, tasks, waiting.pop()())
            if totals is None:
                return self.losses(thetas)
            self._in_flight.tell()
            return self.loss_set.close(self._statistics(totals))

        return finish

    @single_threaded_blas()
    def evaluate(self, thetas: NDArray[np.floating]) -> Statistics:
        """Return the statistics of candidates (population, n)."""
        totals = self.loss_set.new_totals(len(thetas))
        matrix_losses = {
            loss.name: np.empty(len(thetas)) for loss in self.loss_set.matrix_losses
        }

        def some(first: int, last: int) -> None:
            weights = self._laid_out(thetas[first:last])
            tasks = cut(last - first, self.n_rows)
            parts = self._begin(self._helpers(tasks), self._sum_rows, weights, tasks)()
            totals.put(slice(first, last), add_up(self.loss_set, tasks, parts))
            if matrix_losses:
                for name, values in self._matrix_losses(weights).items():
                    matrix_losses[name][first:last] = values

        self._in_flight.for_each_batch(len(thetas), self._candidates_in_flight, some)
        statistics = self._statistics(totals)
        statistics.matrix_losses = matrix_losses
        return statistics

    def _statistics(self, totals: Totals) -> Statistics:
        return self.loss_set.statistics(totals, float(self.targets.weight.sum()))

    @single_threaded_blas()
    def scores(self, thetas: NDArray[np.floating]) -> NDArray:
        """Return the logits (population, rows, K) of candidates (population, n)."""
        shape = (len(thetas), self.n_rows, self.layout.n_labels)
        logits: NDArray = np.empty(shape, dtype=self._dtype)

        def some(first: int, last: int) -> None:
            weights = self._laid_out(thetas[first:last])
            self._fill_scores(weights, 0, logits[first:last])

        self._in_flight.for_each_batch(len(thetas), self._candidates_in_flight, some)
        return logits

    def _laid_out(self, thetas: NDArray[np.floating]) -> list[_Block]:
        """Return the weights of candidates, block by block."""
        with _QUIET():
            batch: NDArray = thetas.astype(self._dtype)
            return [
                self._block(batch[b : b + BLOCK_CANDIDATES])
                for b in range(0, len(batch), BLOCK_CANDIDATES)
            ]

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
                with _QUIET():
                    product = self._rows.dense[start:stop] @ weights.first
            else:
                shape = (stop - start, self.layout.embedding_dim)
                product = np.empty(shape, weights.first.dtype)
                sparse_product(
                    *self._rows.csr, start, stop - start, weights.first, product
                )
            with _QUIET():
                product = product.astype(self._dtype, copy=False)
            yield start, stop, product

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
                rows = self._rows.dense
                assert rows is not None
                with _QUIET():
                    np.matmul(rows[start:stop], matrix, out=flat[: stop - start])
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

    def _fill_scores(self, weights: list[_Block], first: int, out: NDArray) -> None:
        """Fill the scores of ``len(out)`` candidates, from the first one on.

        Whole blocks are computed, whichever of their candidates are wanted.
        """
        last = first + len(out)

        def fill(block: _Block, task: Task) -> None:
            wanted = slice(max(task.first, first), min(task.last, last))
            of_block = slice(wanted.start - task.first, wanted.stop - task.first)
            of_out = slice(wanted.start - first, wanted.stop - first)
            for start, logits in self._logits(block, task):
                stop = start + logits.shape[1]
                out[of_out, start:stop] = logits[of_block]

        tasks = cut(sum(w.n_candidates for w in weights), self.n_rows)
        tasks = [task for task in tasks if task.first < last and task.last > first]
        self._begin(self._helpers(tasks), fill, weights, tasks)()

    def _matrix_losses(self, weights: list[_Block]) -> dict[str, NDArray[np.float64]]:
        population = sum(w.n_candidates for w in weights)
        found = {x.name: np.empty(population) for x in self.loss_set.matrix_losses}

        def some(first: int, last: int) -> None:
            shape = (last - first, self.n_rows, self.layout.n_labels)
            logits: NDArray = np.empty(shape, dtype=self._dtype)
            self._fill_scores(weights, first, logits)
            values = self.loss_set.evaluate_matrix_losses(logits, self.targets)
            for name, value in values.items():
                found[name][first:last] = value

        self._scored.for_each_batch(population, self._scores_at_once, some)
        return found

    def _is_small(self, tasks: list[Task]) -> bool:
        pairs = sum((t.last - t.first) * (t.stop - t.start) for t in tasks)
        return pairs * self.layout.size < _SMALL_WORK

    def _helpers(self, tasks: list[Task]) -> Executor | None:
        return None if self._is_small(tasks) else self._executor

    def _begin(
        self,
        helpers: Executor | None,
        work: Callable[[Any, Task], Any],
        weights: list[_Block],
        tasks: list[Task],
    ) -> Callable[[], list[Any]]:
        """Let the helpers begin with the tasks; what is returned does the rest."""
        blocks = [weights[task.first // BLOCK_CANDIDATES] for task in tasks]
        size = sum(block.n_candidates for block in weights)
        return start_small(
            helpers, work, blocks, tasks, missed=partial(self._in_flight.cut, size)
        )
