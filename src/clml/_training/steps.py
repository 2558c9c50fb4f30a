"""Steps of members that read the same rows: batches in, weights moved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..losses import (
    LossSet,
    RowTargets,
    StatisticWeights,
    Totals,
    output_gradient,
    smoothed_gradient,
)
from .adam import Adam

#: The running average of the weights reaches back this share of the steps so far, and
#: some two hundred steps at most.
AVERAGED = 0.995


@dataclass(frozen=True)
class AscentPlan:
    """How members climb.

    Attributes
    ----------
    learning_rate : float
        Of the first epoch; it falls to 0 along a half cosine.
    n_epochs : int
        When it is 0.
    batch_size : int
        Rows of a step.
    smoothing : float
        Deviation of the moves of an output, in units of logits.
    surrogate_epochs : int
        So many epochs at the start descend the cross-entropy instead.
    dropout : float
        Share of the hidden units that a step leaves out, others each row; of a network
        that does not say so itself.
    weight_decay : float
        Share of each weight that a step takes away, in units of its learning rate.
    closed_form : bool
        Whether the smoothed losses are derived in closed form, or outputs are moved at
        random.
    """

    learning_rate: float
    n_epochs: int
    batch_size: int
    smoothing: float
    surrogate_epochs: int = 0
    dropout: float = 0.0
    weight_decay: float = 0.0
    closed_form: bool = False

    def rate(self, progress: float) -> float:
        """Return the learning rate after a share of the epochs."""
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))


@dataclass(eq=False)
class Moving:
    """Members whose weights steps change in place, and what they need to.

    Attributes
    ----------
    theta, average : float32 arrays (members, n)
    first, second : float32 arrays (members, n)
        Adam's averages.
    adams : sequence of Adam
        One a member; their averages are rows of those.
    generators : sequence of Generator
    """

    theta: NDArray[np.float32]
    average: NDArray[np.float32]
    first: NDArray[np.float32]
    second: NDArray[np.float32]
    adams: Sequence[Adam]
    generators: Sequence[np.random.Generator]


@dataclass(eq=False)
class BatchSums:
    """Statistics of some batches of each member.

    Attributes
    ----------
    columns : float64 array (members, batches, columns)
    labels : float64 array (members, batches, 3, K)
    weight : float64 array (members, batches)
        Of the rows; 0 where a member had fewer batches than others.
    """

    columns: NDArray[np.float64]
    labels: NDArray[np.float64]
    weight: NDArray[np.float64]

    @classmethod
    def zero(cls, loss_set: LossSet, n_members: int, n_batches: int) -> BatchSums:
        """Return sums to be added to."""
        totals = loss_set.new_totals(n_members * n_batches)
        shape = (n_members, n_batches)
        return cls(
            totals.columns.reshape(*shape, -1),
            totals.labels.reshape(*shape, *totals.labels.shape[1:]),
            np.zeros(shape),
        )


class Steps(Protocol):
    """What takes steps of members that read the same rows."""

    def climb(
        self,
        moving: Moving,
        batches: Sequence[Sequence[NDArray[np.intp]]],
        rates: Sequence[Sequence[float]],
        prices: StatisticWeights,
    ) -> BatchSums:
        """Take a step for each batch; return the batches' statistics.

        Parameters
        ----------
        moving : Moving
        batches : sequence of sequences of int arrays
            Of each member, rows of each batch.
        rates : sequence of sequences of float
            Learning rates.
        prices : StatisticWeights
            Of the statistics of a row, for each member, see
            :func:`clml.losses.measure_gradients`.
        """


class BatchPasses(Protocol):
    """Takes batches of rows through a network, and slopes back."""

    def forward(
        self,
        theta: NDArray[np.float32],
        batch: NDArray[np.intp],
        generator: np.random.Generator,
    ) -> NDArray[np.float32]:
        """Return the logits (m, K) of a training step; units are dropped by chance."""

    def backward(self, slope: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the derivative of Σ slope · logits in the weights."""


class PlainSteps:
    """Steps of any network: a forward pass, credit, the way back, Adam.

    Parameters
    ----------
    passes : BatchPasses
    targets : sequence of RowTargets
        One a member, which differ in their weights.
    loss_set : LossSet
    plan : AscentPlan
    surrogate : bool
        Whether steps descend the cross-entropy instead.
    """

    def __init__(
        self,
        passes: BatchPasses,
        targets: Sequence[RowTargets],
        loss_set: LossSet,
        plan: AscentPlan,
        surrogate: bool,
    ):
        self._passes, self._targets, self._loss_set = passes, targets, loss_set
        self._plan, self._surrogate = plan, surrogate

    def climb(
        self,
        moving: Moving,
        batches: Sequence[Sequence[NDArray[np.intp]]],
        rates: Sequence[Sequence[float]],
        prices: StatisticWeights,
    ) -> BatchSums:
        """Take a step for each batch; return the batches' statistics."""
        found = BatchSums.zero(self._loss_set, len(batches), max(map(len, batches)))
        for m, own in enumerate(zip(batches, rates, strict=True)):
            weights = StatisticWeights(prices.columns[m], prices.labels[m])
            for b, (batch, rate) in enumerate(zip(*own, strict=True)):
                totals = self._step(moving, m, batch, rate, weights)
                found.columns[m, b] = totals.columns[0]
                found.labels[m, b] = totals.labels[0]
                found.weight[m, b] = self._targets[m].weight[batch].sum()
        return found

    def _step(
        self,
        moving: Moving,
        member: int,
        batch: NDArray[np.intp],
        rate: float,
        prices: StatisticWeights,
    ) -> Totals:
        plan, adam = self._plan, moving.adams[member]
        theta, average = moving.theta[member], moving.average[member]
        generator, targets = moving.generators[member], self._targets[member]
        logits = self._passes.forward(theta, batch, generator)
        credit, totals = self._credit(logits, targets, batch, prices, generator)
        gradient = self._passes.backward(credit / np.float32(len(batch)))
        adam.step(theta, gradient, rate, plan.weight_decay)
        t = adam.n_steps
        keep = np.float32(min(AVERAGED, t / (t + 10)))
        average *= keep
        average += (1 - keep) * theta
        return totals

    def _credit(
        self,
        logits: NDArray[np.float32],
        targets: RowTargets,
        batch: NDArray[np.intp],
        prices: StatisticWeights,
        generator: np.random.Generator,
    ) -> tuple[NDArray[np.float32], Totals]:
        """Return what each output is worth, and the statistics of the batch."""
        plan = self._plan
        if plan.closed_form:
            credit, totals = smoothed_gradient(
                logits, targets, batch, plan.smoothing, prices, self._loss_set
            )
        else:
            shifts, gains = _moves(logits.shape, plan.smoothing, generator)
            credit, totals = output_gradient(
                logits, targets, batch, shifts, gains, prices, self._loss_set
            )
        if self._surrogate:
            weight = targets.weight[batch].astype(np.float32)[:, None]
            truth = targets.dense if targets.soft is None else targets.soft
            credit = weight * (truth[batch] - expit(logits))
        return credit, totals


def _moves(
    shape: tuple[int, ...], smoothing: float, generator: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return how far outputs are moved, and what the change is multiplied by."""
    draws = np.abs(generator.standard_normal(shape, dtype=np.float32))
    scale = np.float32(smoothing)
    return scale * draws, (draws / (2 * scale)).astype(np.float32)
