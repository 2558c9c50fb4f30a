"""Steps of a wide network in one compiled call: some batches, from rows to weights.

A step is a forward pass, the gradient of the smoothed losses, the way back, and Adam.
On a few hundred rows each of these takes microseconds, and what Python does between
them took as long as all of them: here it has nothing to do until prices change.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ._adam import step
from ._compiled import compiled
from ._steps import AVERAGED, AscentPlan, Moving
from .losses import LossSet, RowTargets, StatisticWeights, Totals
from .losses._kernels import CROSS_ENTROPY, accumulate
from .losses._smooth_kernels import add_smoothed_rows
from .network import WidePass
from .network._wide_kernels import backward, forward


@compiled
def _climb(  # type: ignore[no-untyped-def]
    theta, average, adam, numbers, network, order, ends, keys, targets, losses, totals
):
    """Take a step for each batch.

    Parameters
    ----------
    theta, average : float32 arrays (n,), changed
    adam : tuple of float32 arrays (n,), changed
        Averages of the gradient and of its square.
    numbers : float64 array (batches, 7)
        Of ``Adam.next_steps``.
    network : tuple
        Of ``WidePass.inputs_of_kernels``.
    order : int64 array
        Rows of the batches, one after another.
    ends : int64 array (batches,)
    keys : uint64 array (batches,)
        Which units are dropped.
    targets : tuple of arrays
        Of ``RowTargets.arrays``.
    losses : tuple
        What decides, the deviation of the noise, prices of statistics and of those of
        each label, whether these have any; then which groups of statistics are counted.
    totals : tuple of float64 arrays, added to
        (batches, 1, columns) and (batches, 1, 3, K): statistics without noise.
    """
    dense, sparse, widths, linear, kind, dropped, scale = network[:7]
    inputs, hidden, factors, gradient = network[7:]
    truth, indptr, indices, weight = targets
    threshold, sigma, columns, labels, want_prices = losses[:5]
    ranking, example, probability, want_labels, ks = losses[5:]
    n_labels = truth.shape[1]
    values = np.empty((1, columns.shape[0]))
    begin = 0
    for b in range(len(ends)):
        rows = order[begin : ends[b]]
        begin = ends[b]
        m = len(rows)
        dropout = (keys[b], dropped, scale)
        logits = forward(
            theta,
            dense,
            sparse,
            rows,
            widths,
            linear,
            kind,
            dropout,
            inputs,
            hidden,
            factors,
        )
        own_truth = np.empty((m, n_labels), truth.dtype)
        own_weight = np.empty(m, weight.dtype)
        for i in range(m):
            own_truth[i] = truth[rows[i]]
            own_weight[i] = weight[rows[i]]
            accumulate(
                logits[i].reshape((1, 1, n_labels)),
                rows[i],
                truth,
                indptr,
                indices,
                weight,
                threshold,
                ranking,
                example,
                probability,
                want_labels,
                ks,
                totals[0][b],
                totals[1][b],
            )
        slope = np.zeros_like(logits)
        add_smoothed_rows(
            logits,
            own_truth,
            np.empty((m, 0), np.float32),
            own_weight,
            threshold,
            sigma,
            columns,
            labels,
            want_prices,
            ks,
            slope,
            values,
        )
        slope /= np.float32(m)
        backward(
            theta,
            sparse,
            rows,
            widths,
            linear,
            kind,
            dropout,
            inputs,
            hidden,
            factors,
            slope,
            gradient,
        )
        step(theta, gradient, adam[0], adam[1], average, numbers[b])


class WideSteps:
    """Takes steps of one member; one thread's own.

    Parameters
    ----------
    passes : WidePass
        On all rows, with room for the largest batch.
    targets : RowTargets
        Of all rows, with the member's own weights.
    loss_set : LossSet
    plan : AscentPlan
    surrogate : bool
        Whether steps descend the cross-entropy instead.
    """

    def __init__(
        self,
        passes: WidePass,
        targets: RowTargets,
        loss_set: LossSet,
        plan: AscentPlan,
        surrogate: bool,
    ):
        self._network = passes.inputs_of_kernels
        self._targets = targets.arrays
        self._loss_set, self._plan, self._surrogate = loss_set, plan, surrogate

    def climb(
        self,
        moving: Moving,
        batches: Sequence[NDArray[np.intp]],
        rates: Sequence[float],
        prices: StatisticWeights,
    ) -> list[Totals]:
        """Take a step for each batch; return the batches' statistics."""
        loss_set, adam, n = self._loss_set, moving.adam, len(batches)
        if self._surrogate:
            prices = _cross_entropy_alone(prices)
        zero = loss_set.new_totals(n)
        columns, labels = zero.columns[:, None], zero.labels[:, None]
        _climb(
            moving.theta,
            moving.average,
            (adam.first, adam.second),
            adam.next_steps(rates, self._plan.weight_decay, AVERAGED),
            self._network,
            np.concatenate(batches).astype(np.int64, copy=False),
            np.cumsum([len(batch) for batch in batches]),
            moving.generator.integers(2**63, size=n, dtype=np.uint64),
            self._targets,
            (
                np.float32(loss_set.threshold),
                float(self._plan.smoothing),
                prices.columns,
                prices.labels,
                bool(prices.labels.any()),
                *loss_set._wants,
            ),
            (columns, labels),
        )
        return [Totals(columns[b], labels[b], {}) for b in range(n)]


def _cross_entropy_alone(prices: StatisticWeights) -> StatisticWeights:
    """Return prices of the same shapes by which the cross-entropy falls."""
    columns = np.zeros_like(prices.columns)
    columns[CROSS_ENTROPY] = -1.0
    return StatisticWeights(columns, np.zeros_like(prices.labels))
