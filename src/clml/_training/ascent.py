"""Ascent of the Lebesgue measure: credit from the losses, the chain rule, Adam.

The losses have no derivative, but they are closing formulas of sums over rows. Smoothed
a little, or with one output of one row moved, they show what they make of an output
(:func:`clml.losses.smoothed_gradient`, :func:`clml.losses.output_gradient`); the
network, which is smooth, says which weights move that output. No surrogate takes the
place of a loss.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..losses import LossSet, RowTargets, Totals, measure_gradients
from .adam import Adam
from .steps import AscentPlan, Moving
from .training_rows import Startable, TrainingRows

#: How much of the sums so far a batch keeps: some ten batches are remembered.
KEPT_SUMS = 0.9
#: Prices follow these sums, slowly: they are not computed for every batch.
BATCHES_A_PRICE = 4


class _AnySeed(np.random.bit_generator.ISeedSequence):
    """Of generators whose state is set at once: hashing a real seed takes longer."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        return np.zeros(n_words, dtype=dtype)


_ANY_SEED = _AnySeed()


@dataclass(frozen=True, eq=False)
class AscentState:
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
    def start(cls, layout: Startable, seed: np.random.SeedSequence) -> AscentState:
        """Draw the weights that a network begins with."""
        generator = np.random.default_rng(seed)
        theta = layout.start(generator)
        return cls(
            theta,
            theta.copy(),
            Adam(layout.size, maximize=True),
            dict(generator.bit_generator.state),
        )


def after_epoch(
    climbers: Sequence[AscentState],
    rows: TrainingRows,
    targets: Sequence[RowTargets],
    loss_set: LossSet,
    plan: AscentPlan,
    begun: int,
) -> list[AscentState]:
    """Return members after one more epoch over their rows of positive weight.

    Each is what it would be alone; together they take less time where an epoch is
    short.

    Parameters
    ----------
    climbers : sequence of AscentState
        After the same number of epochs.
    rows : TrainingRows
        As all of them read them.
    targets : sequence of RowTargets
        With the weights of each.
    loss_set : LossSet
    plan : AscentPlan
    begun : int
        The epoch at which the plan began.
    """
    moving = _moving(climbers)
    batches = [
        _batches(generator, own, plan)
        for generator, own in zip(moving.generators, targets, strict=True)
    ]
    n_batches = max(map(len, batches))
    progress = climbers[0].epoch - begun
    most_rows = max(len(own[0]) for own in batches)
    surrogate = progress < plan.surrogate_epochs
    steps = rows.steps(most_rows, targets, loss_set, plan, surrogate)
    sums = _side_by_side(
        [
            sums_of(rows, one.theta, own_batches[0], loss_set, own)
            if one.sums is None
            else one.sums
            for one, own_batches, own in zip(climbers, batches, targets, strict=True)
        ]
    )
    seen, weight = loss_set.new_totals(len(climbers)), np.zeros(len(climbers))
    for first in range(0, n_batches, BATCHES_A_PRICE):
        prices = measure_gradients(loss_set, sums, 1.0)
        some = [own[first : first + BATCHES_A_PRICE] for own in batches]
        rates = [
            [
                plan.rate((progress + (first + b) / len(own)) / plan.n_epochs)
                for b in range(len(chunk))
            ]
            for own, chunk in zip(batches, some, strict=True)
        ]
        found = steps.climb(moving, some, rates, prices)
        for b in range(found.weight.shape[1]):
            now = Totals(found.columns[:, b], found.labels[:, b], {})
            sums = _blended(sums, now, found.weight[:, b])
            seen.add(now)
        weight += found.weight.sum(axis=1)
    # Of rows of weight 1 on average.
    statistics = loss_set.statistics(_divided(seen, weight), 1.0)
    losses = loss_set.close(statistics)
    return [
        AscentState(
            moving.theta[m],
            moving.average[m],
            moving.adams[m],
            dict(moving.generators[m].bit_generator.state),
            Totals(sums.columns[m : m + 1], sums.labels[m : m + 1], {}),
            one.epoch + 1,
            losses[m],
        )
        for m, one in enumerate(climbers)
    ]


def _moving(climbers: Sequence[AscentState]) -> Moving:
    """Return copies of members that steps may change."""
    first = np.stack([one.adam.first for one in climbers])
    second = np.stack([one.adam.second for one in climbers])
    adams, generators = [], []
    for m, one in enumerate(climbers):
        adam = copy.copy(one.adam)
        adam.first, adam.second = first[m], second[m]
        adams.append(adam)
        bits = np.random.PCG64(_ANY_SEED)  # type: ignore[arg-type]
        bits.state = one.generator  # type: ignore[assignment]
        generators.append(np.random.Generator(bits))
    return Moving(
        np.stack([one.theta for one in climbers]),
        np.stack([one.average for one in climbers]),
        first,
        second,
        adams,
        generators,
    )


def _batches(
    generator: np.random.Generator, targets: RowTargets, plan: AscentPlan
) -> list[NDArray[np.intp]]:
    """Deal the rows of positive weight into batches of about the same size."""
    order = generator.permutation(np.flatnonzero(targets.weight))
    n_batches = max(1, round(len(order) / plan.batch_size))
    size, n_longer = divmod(len(order), n_batches)
    ends = [size * b + min(b, n_longer) for b in range(n_batches + 1)]
    return [order[start:end] for start, end in pairwise(ends)]


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
    return _blended(None, totals, np.array([own.weight.sum()]))


def _blended(sums: Totals | None, batch: Totals, weight: NDArray[np.float64]) -> Totals:
    """Return running statistics of a row of weight 1, a batch's blended in.

    Parameters
    ----------
    sums : Totals or None
        Of each member; None before the first batch.
    batch : Totals
    weight : float64 array (members,)
        Of each one's rows; where it is 0 there was no batch, and sums stay.
    """
    now = _divided(batch, weight)
    if sums is None:
        return now
    kept = np.where(weight > 0, KEPT_SUMS, 1.0)[:, None]
    taken = np.where(weight > 0, 1 - KEPT_SUMS, 0.0)[:, None]
    return Totals(
        kept * sums.columns + taken * now.columns,
        kept[..., None] * sums.labels + taken[..., None] * now.labels,
        {},
    )


def _divided(totals: Totals, weight: NDArray[np.float64]) -> Totals:
    """Return the statistics of a row of weight 1; without rows they are 0."""
    share = 1 / np.where(weight > 0, weight, 1.0)[:, None]
    return Totals(totals.columns * share, totals.labels * share[..., None], {})


def _side_by_side(sums: Sequence[Totals]) -> Totals:
    """Return the statistics of members as those of a population."""
    return Totals(
        np.concatenate([one.columns for one in sums]),
        np.concatenate([one.labels for one in sums]),
        {},
    )
