"""One step of a member after another: batches in, weights moved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ._adam import Adam
from .losses import (
    LossSet,
    RowTargets,
    StatisticWeights,
    Totals,
    output_credit,
    smoothed_gradient,
)

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
    """Weights that steps change in place, and what they need to.

    Attributes
    ----------
    theta, average : float32 arrays (n,)
    adam : Adam
    generator : Generator
    """

    theta: NDArray[np.float32]
    average: NDArray[np.float32]
    adam: Adam
    generator: np.random.Generator


class Steps(Protocol):
    """What takes steps of a member on given rows."""

    def climb(
        self,
        moving: Moving,
        batches: Sequence[NDArray[np.intp]],
        rates: Sequence[float],
        prices: StatisticWeights,
    ) -> list[Totals]:
        """Take a step for each batch; return the batches' statistics.

        Parameters
        ----------
        moving : Moving
        batches : sequence of int arrays
            Rows of each.
        rates : sequence of float
            Learning rates.
        prices : StatisticWeights
            Of the statistics of a row, see :func:`clml.losses.statistic_weights`.
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
    targets : RowTargets
        With the member's own row weights.
    loss_set : LossSet
    plan : AscentPlan
    surrogate : bool
        Whether steps descend the cross-entropy instead.
    """

    def __init__(
        self,
        passes: BatchPasses,
        targets: RowTargets,
        loss_set: LossSet,
        plan: AscentPlan,
        surrogate: bool,
    ):
        self._passes, self._targets, self._loss_set = passes, targets, loss_set
        self._plan, self._surrogate = plan, surrogate

    def climb(
        self,
        moving: Moving,
        batches: Sequence[NDArray[np.intp]],
        rates: Sequence[float],
        prices: StatisticWeights,
    ) -> list[Totals]:
        """Take a step for each batch; return the batches' statistics."""
        return [
            self._step(moving, batch, rate, prices)
            for batch, rate in zip(batches, rates, strict=True)
        ]

    def _step(
        self,
        moving: Moving,
        batch: NDArray[np.intp],
        rate: float,
        prices: StatisticWeights,
    ) -> Totals:
        plan, theta, average = self._plan, moving.theta, moving.average
        logits = self._passes.forward(theta, batch, moving.generator)
        credit, totals = self._credit(logits, batch, prices, moving.generator)
        gradient = self._passes.backward(credit / np.float32(len(batch)))
        moving.adam.step(theta, gradient, rate, plan.weight_decay)
        t = moving.adam.n_steps
        keep = np.float32(min(AVERAGED, t / (t + 10)))
        average *= keep
        average += (1 - keep) * theta
        return totals

    def _credit(
        self,
        logits: NDArray[np.float32],
        batch: NDArray[np.intp],
        prices: StatisticWeights,
        generator: np.random.Generator,
    ) -> tuple[NDArray[np.float32], Totals]:
        """Return what each output is worth, and the statistics of the batch."""
        plan, targets = self._plan, self._targets
        if plan.closed_form:
            credit, totals = smoothed_gradient(
                logits, targets, batch, plan.smoothing, prices, self._loss_set
            )
        else:
            shifts, gains = _moves(logits.shape, plan.smoothing, generator)
            credit, totals = output_credit(
                logits, targets, batch, shifts, gains, prices, self._loss_set
            )
        if self._surrogate:
            weight = targets.weight[batch].astype(np.float32)[:, None]
            credit = weight * (targets.dense[batch] - expit(logits))
        return credit, totals


def _moves(
    shape: tuple[int, ...], smoothing: float, generator: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return how far outputs are moved, and what the change is multiplied by."""
    draws = np.abs(generator.standard_normal(shape, dtype=np.float32))
    scale = np.float32(smoothing)
    return scale * draws, (draws / (2 * scale)).astype(np.float32)
