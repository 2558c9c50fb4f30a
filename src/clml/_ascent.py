"""Ascent of the Lebesgue measure: credit from the losses, the chain rule, Adam.

The losses have no derivative, but they are closing formulas of sums over rows. Smoothed
a little, or with one output of one row moved, they show what they make of an output
(:func:`clml.losses.smoothed_gradient`, :func:`clml.losses.output_credit`); the network,
which is smooth, says which weights move that output. No surrogate takes the place of a
loss.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._adam import Adam
from ._steps import AscentPlan, Moving
from ._training_rows import Startable, TrainingRows
from .losses import LossSet, RowTargets, Totals, statistic_weights

#: How much of the sums so far a batch keeps: some ten batches are remembered.
KEPT_SUMS = 0.9
#: Prices follow these sums, slowly: they are not computed for every batch.
BATCHES_A_PRICE = 4


@dataclass(frozen=True, eq=False)
class Climber:
    """One member on its way. A value: an epoch returns another.

    Attributes
    ----------
    theta, average : float32 arrays (n,)
        The weights, and their running average, which generalises better.
    adam : Adam
    sums : Totals or None
        Running statistics of a row, for the prices of statistics.
    generator : dict
        State of the member's own random generator.
    epoch : int
    losses : float64 array (o,)
        Of the last epoch's rows while it went through them.
    """

    theta: NDArray[np.float32]
    average: NDArray[np.float32]
    adam: Adam
    generator: dict[str, Any]
    sums: Totals | None = None
    epoch: int = 0
    losses: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    @classmethod
    def start(cls, layout: Startable, seed: np.random.SeedSequence) -> Climber:
        """Draw the weights that a network begins with."""
        generator = np.random.default_rng(seed)
        theta = layout.start(generator)
        return cls(
            theta,
            theta.copy(),
            Adam(layout.size, maximize=True),
            dict(generator.bit_generator.state),
        )

    def climbed(
        self,
        rows: TrainingRows,
        targets: RowTargets,
        loss_set: LossSet,
        plan: AscentPlan,
        begun: int,
    ) -> Climber:
        """Return the member after one more epoch over the rows of positive weight.

        Parameters
        ----------
        rows : TrainingRows
        targets : RowTargets
            With the member's own row weights.
        loss_set : LossSet
        plan : AscentPlan
        begun : int
            The epoch at which the plan began.
        """
        generator = np.random.default_rng()
        generator.bit_generator.state = self.generator
        adam = _copied(self.adam)
        moving = Moving(self.theta.copy(), self.average.copy(), adam, generator)
        sums = self.sums
        seen = loss_set.new_totals(1)
        used = np.flatnonzero(targets.weight)
        order = generator.permutation(used)
        n_batches = max(1, round(len(order) / plan.batch_size))
        surrogate = self.epoch - begun < plan.surrogate_epochs
        batches = np.array_split(order, n_batches)
        steps = rows.steps(len(batches[0]), targets, loss_set, plan, surrogate)
        if sums is None:
            sums = sums_of(rows, moving.theta, batches[0], loss_set, targets)
        for first in range(0, n_batches, BATCHES_A_PRICE):
            prices = statistic_weights(loss_set, sums, 1.0)
            some = batches[first : first + BATCHES_A_PRICE]
            rates = [
                plan.rate((self.epoch - begun + b / n_batches) / plan.n_epochs)
                for b in range(first, first + len(some))
            ]
            found = steps.climb(moving, some, rates, prices)
            for batch, totals in zip(some, found, strict=True):
                sums = _blended(sums, totals, float(targets.weight[batch].sum()))
                seen.add(totals)
        weight_seen = float(targets.weight[used].sum())
        statistics = loss_set.statistics(seen, weight_seen)
        return replace(
            self,
            theta=moving.theta,
            average=moving.average,
            adam=adam,
            sums=sums,
            generator=dict(generator.bit_generator.state),
            epoch=self.epoch + 1,
            losses=loss_set.close(statistics)[0],
        )


def sums_of(
    rows: TrainingRows,
    theta: NDArray[np.float32],
    batch: NDArray[np.intp],
    loss_set: LossSet,
    targets: RowTargets,
) -> Totals:
    """Return the statistics of a row of weight 1 in a batch, nothing dropped."""
    totals = loss_set.new_totals(1)
    own = targets.take(batch)
    loss_set.accumulate(totals, rows.logits(theta, batch)[None], own)
    return _blended(None, totals, float(own.weight.sum()))


def _blended(sums: Totals | None, batch: Totals, weight: float) -> Totals:
    """Return running statistics of a row of weight 1, a batch's blended in."""
    columns, labels = batch.columns / weight, batch.labels / weight
    if sums is None:
        return Totals(columns, labels, {})
    return Totals(
        KEPT_SUMS * sums.columns + (1 - KEPT_SUMS) * columns,
        KEPT_SUMS * sums.labels + (1 - KEPT_SUMS) * labels,
        {},
    )


def _copied(adam: Adam) -> Adam:
    twin = copy.copy(adam)
    twin.first, twin.second = adam.first.copy(), adam.second.copy()
    return twin
