"""Steps of a wide network in one compiled call: some batches, from rows to weights.

A step is a forward pass, the gradient of the smoothed losses, the way back, and Adam.
On a few hundred rows each of these takes microseconds, and what Python does between
them took as long as all of them: here it has nothing to do until prices change.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate as running_sums

import numpy as np
from numpy.typing import NDArray

from .._support.compiled import compiled
from ..losses import LossSet, RowTargets, StatisticWeights
from ..losses.kernels import CROSS_ENTROPY, accumulate
from ..losses.smooth_kernels import add_smoothed_rows
from ..network import WidePass
from ..network.wide_kernels import backward, forward
from .adam import step
from .steps import AVERAGED, AscentPlan, BatchSums, Moving


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
        Of ``RowTargets.arrays``, and soft ones (n, K), or (n, 0) where there are none.
    losses : tuple
        What decides, the deviation of the noise, prices of statistics and of those of
        each label, whether these have any; then which groups of statistics are counted.
    totals : tuple of float64 arrays, added to
        (batches, 1, columns) and (batches, 1, 3, K): statistics without noise.
    """
    dense, sparse, widths, linear, kind, dropped, scale = network[:7]
    inputs, hidden, factors, panels, gradient = network[7:]
    truth, indptr, indices, weight, soft = targets
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
            panels,
        )
        own_truth = np.empty((m, n_labels), np.float32)
        own_weight = np.empty(m, weight.dtype)
        for i in range(m):
            if soft.shape[1]:
                own_truth[i] = soft[rows[i]]
            else:
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
            panels,
            slope,
            gradient,
        )
        step(theta, gradient, adam[0], adam[1], average, numbers[b])


@compiled
def _climb_each(  # type: ignore[no-untyped-def]
    moving,
    numbers,
    network,
    order,
    ends,
    n_batches,
    keys,
    targets,
    weight,
    losses,
    sums,
):
    """Take the steps of one member after another.

    Parameters
    ----------
    moving : tuple of four float32 arrays (members, n), changed
        Weights, their average, Adam's averages of the gradient and of its square.
    numbers : float64 array (members, batches, 7)
    network : tuple
    order : int64 array (members, rows)
    ends : int64 array (members, batches)
    n_batches : int64 array (members,)
        A member may have fewer than there is room for.
    keys : uint64 array (members, batches)
    targets : tuple of arrays
        What all members have of these.
    weight : float array (members, n_rows)
        Which is each one's own.
    losses : tuple
        As of ``_climb``, with prices of each member.
    sums : tuple of float64 arrays, added to
        (members, batches, columns) and (members, batches, 3, K).
    """
    theta, average, first, second = moving
    threshold, sigma, columns, labels, want_prices = losses[:5]
    ranking, example, probability, want_labels, ks = losses[5:]
    truth, indptr, indices, soft = targets
    for m in range(theta.shape[0]):
        n = n_batches[m]
        own_columns, own_labels = sums[0][m], sums[1][m]
        _climb(
            theta[m],
            average[m],
            (first[m], second[m]),
            numbers[m],
            network,
            order[m],
            ends[m, :n],
            keys[m],
            (truth, indptr, indices, weight[m], soft),
            (
                threshold,
                sigma,
                columns[m],
                labels[m],
                want_prices,
                ranking,
                example,
                probability,
                want_labels,
                ks,
            ),
            (
                own_columns.reshape((own_columns.shape[0], 1, own_columns.shape[1])),
                own_labels.reshape(
                    (
                        own_labels.shape[0],
                        1,
                        own_labels.shape[1],
                        own_labels.shape[2],
                    )
                ),
            ),
        )


class WideSteps:
    """Takes steps of members that read the same rows; one thread's own.

    Parameters
    ----------
    passes : WidePass
        On all rows, with room for the largest batch.
    targets : sequence of RowTargets
        One a member, which differ in their weights.
    loss_set : LossSet
    plan : AscentPlan
    surrogate : bool
        Whether steps descend the cross-entropy instead.
    """

    def __init__(
        self,
        passes: WidePass,
        targets: Sequence[RowTargets],
        loss_set: LossSet,
        plan: AscentPlan,
        surrogate: bool,
    ):
        self._network = passes.inputs_of_kernels
        *shared, _ = targets[0].arrays
        soft = targets[0].soft
        if soft is None or not surrogate:
            soft = np.empty((targets[0].n_rows, 0), dtype=np.float32)
        self._shared = (*shared, soft)
        self._weight = np.stack([own.weight for own in targets])
        self._loss_set, self._plan, self._surrogate = loss_set, plan, surrogate

    def climb(
        self,
        moving: Moving,
        batches: Sequence[Sequence[NDArray[np.intp]]],
        rates: Sequence[Sequence[float]],
        prices: StatisticWeights,
    ) -> BatchSums:
        """Take a step for each batch; return the batches' statistics."""
        if self._surrogate:
            prices = _cross_entropy_alone(prices)
        n_batches = np.array([len(own) for own in batches], dtype=np.int64)
        shape = (len(batches), int(n_batches.max()))
        found = BatchSums.zero(self._loss_set, *shape)
        n_rows = max(sum(map(len, own)) for own in batches)
        order = np.zeros((shape[0], n_rows), dtype=np.int64)
        ends = np.zeros(shape, dtype=np.int64)
        keys = np.zeros(shape, dtype=np.uint64)
        numbers = np.zeros((*shape, 7))
        for m, own in enumerate(batches):
            if not own:
                continue
            n, rows = len(own), np.concatenate(own)
            ends[m, :n] = list(running_sums(map(len, own)))
            order[m, : len(rows)] = rows
            begins = [0, *ends[m, : n - 1]]
            found.weight[m, :n] = np.add.reduceat(self._weight[m, rows], begins)
            # The bits of integers(2**63, size=n), in a fifth of the time.
            keys[m, :n] = moving.generators[m].bit_generator.random_raw(n) >> 1
            numbers[m, :n] = moving.adams[m].next_steps(
                rates[m], self._plan.weight_decay, AVERAGED
            )
        loss_set = self._loss_set
        _climb_each(
            (moving.theta, moving.average, moving.first, moving.second),
            numbers,
            self._network,
            order,
            ends,
            n_batches,
            keys,
            self._shared,
            self._weight,
            (
                np.float32(loss_set.threshold),
                float(self._plan.smoothing),
                prices.columns,
                prices.labels,
                bool(prices.labels.any()),
                *loss_set._wants,
            ),
            (found.columns, found.labels),
        )
        return found


def _cross_entropy_alone(prices: StatisticWeights) -> StatisticWeights:
    """Return prices of the same shapes by which the cross-entropy falls."""
    columns = np.zeros_like(prices.columns)
    columns[:, CROSS_ENTROPY] = -1.0
    return StatisticWeights(columns, np.zeros_like(prices.labels))
