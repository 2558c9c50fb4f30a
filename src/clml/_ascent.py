"""Ascent of the Lebesgue measure: credit from the losses, the chain rule, Adam.

The losses have no derivative, but they are closing formulas of sums over rows. Moving
one output of one row shows what the losses themselves make of it
(:func:`clml.losses.output_credit`); the network, which is smooth, says which weights
move that output. No surrogate takes the place of a loss.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

from ._adam import Adam
from .losses import (
    LossSet,
    RowTargets,
    Totals,
    output_credit,
    smoothed_gradient,
    statistic_weights,
)
from .network import (
    ForwardCache,
    Layout,
    NetworkLayout,
    Scaling,
    WideLayout,
    WidePass,
    backward_pass,
    check_sparse_range,
    forward_pass,
    scaled_features,
)

# How much of the sums so far a batch keeps: some ten batches are remembered.
_KEPT_SUMS = 0.9
# Prices follow these sums, slowly: they are not computed for every batch.
_BATCHES_A_PRICE = 4
# The running average of the weights reaches back this share of the steps so far, and
# some two hundred steps at most.
_AVERAGED = 0.995


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
    first_trained : int
        Weights before this one stay as they are, once the surrogate has had its epochs.
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
    first_trained: int = 0
    surrogate_epochs: int = 0
    dropout: float = 0.0
    weight_decay: float = 0.0
    closed_form: bool = False

    def rate(self, progress: float) -> float:
        """Return the learning rate after a share of the epochs."""
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))


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


class Startable(Protocol):
    """What has weights that can be drawn."""

    @property
    def size(self) -> int:
        """Number of weights."""

    def start(self, generator: np.random.Generator) -> NDArray[np.float32]:
        """Draw the weights to begin with."""


class TrainingRows(Protocol):
    """Rows as networks of one kind read them."""

    @property
    def X(self) -> Any:
        """The rows, dense or CSR."""

    @property
    def layout(self) -> Startable:
        """The network."""

    def passes(self, most_rows: int, dropout: float) -> BatchPasses:
        """Return what takes batches of so many rows at most through a network."""

    def logits(self, theta: NDArray[np.float32]) -> NDArray:
        """Return the logits (n, K) of one network."""


# Messages and logs show objects by their repr, and must not show rows.
@dataclass(frozen=True, eq=False, repr=False)
class WideRows:
    """Rows as wide networks read them, encoded already.

    Attributes
    ----------
    X : float32 array (n, D) or CSR matrix
    layout : WideLayout
    """

    X: Any
    layout: WideLayout

    def passes(self, most_rows: int, dropout: float) -> BatchPasses:
        """Return what takes batches through a network, which says what it drops."""
        return _WideBatches(WidePass(self.layout, self.X, most_rows))

    def logits(self, theta: NDArray[np.float32]) -> NDArray:
        """Return the logits (n, K) of one network."""
        return self.layout.logits(theta, self.X)


class _WideBatches:
    def __init__(self, passes: WidePass):
        self._passes = passes

    def forward(
        self,
        theta: NDArray[np.float32],
        batch: NDArray[np.intp],
        generator: np.random.Generator,
    ) -> NDArray[np.float32]:
        key = int(generator.integers(2**63))
        return self._passes.forward(theta, batch, key)

    def backward(self, slope: NDArray[np.float32]) -> NDArray[np.float32]:
        return self._passes.backward(slope)


# Messages and logs show objects by their repr, and must not show rows.
@dataclass(frozen=True, eq=False, repr=False)
class OwnRows:
    """Rows as networks of a user's own read them, encoded already.

    Attributes
    ----------
    X : float32 array (n, D) or CSR matrix
    layout : NetworkLayout
    n_labels : int
    """

    X: Any
    layout: NetworkLayout
    n_labels: int

    def passes(self, most_rows: int, dropout: float) -> BatchPasses:
        """Return what takes batches through a network, which says what it drops."""
        return _OwnBatches(self)

    def logits(self, theta: NDArray[np.float32], block: int = 4096) -> NDArray:
        """Return the logits (n, K) of one network."""
        n = self.X.shape[0]
        parts = [
            self.forward(theta, self.X[a : a + block], None)[0]
            for a in range(0, n, block)
        ]
        return np.concatenate(parts)

    def forward(
        self, theta: NDArray[np.float32], X: Any, generator: np.random.Generator | None
    ) -> tuple[NDArray[np.float32], Any]:
        """Return the logits of a batch, which are checked, and the network's memory."""
        logits, memory = self.layout.forward(theta, X, generator)
        _check_own(logits, "forward", (X.shape[0], self.n_labels))
        return logits, memory


def _check_own(array: Any, method: str, shape: tuple[int, ...]) -> None:
    """Refuse what kernels could not read."""
    found = getattr(array, "shape", None), getattr(array, "dtype", None)
    if not isinstance(array, np.ndarray) or found != (shape, np.float32):
        raise ValueError(
            f"network: {method} must return a float32 array of shape {shape}, got "
            f"{type(array).__name__} of shape {found[0]} and type {found[1]}."
        )


class _OwnBatches:
    def __init__(self, rows: OwnRows):
        self._rows = rows
        self._memory: Any = None

    def forward(
        self,
        theta: NDArray[np.float32],
        batch: NDArray[np.intp],
        generator: np.random.Generator,
    ) -> NDArray[np.float32]:
        rows = self._rows
        logits, self._memory = rows.forward(theta, rows.X[batch], generator)
        return np.ascontiguousarray(logits)

    def backward(self, slope: NDArray[np.float32]) -> NDArray[np.float32]:
        gradient = self._rows.layout.backward(slope, self._memory)
        _check_own(gradient, "backward", (self._rows.layout.size,))
        return gradient


class _PaperBatches:
    def __init__(self, rows: NetworkRows, dropout: float):
        self._rows, self._dropout = rows, dropout
        self._cache: ForwardCache | None = None

    def forward(
        self,
        theta: NDArray[np.float32],
        batch: NDArray[np.intp],
        generator: np.random.Generator,
    ) -> NDArray[np.float32]:
        rows = self._rows
        masks = _masks(self._dropout, len(batch), rows.layout, generator)
        logits, self._cache = forward_pass(
            theta, rows.X[batch], rows.layout, rows.scaling, masks
        )
        return logits

    def backward(self, slope: NDArray[np.float32]) -> NDArray[np.float32]:
        assert self._cache is not None  # of the forward pass before
        return backward_pass(slope, self._cache)


# Messages and logs show objects by their repr, and must not show rows.
@dataclass(frozen=True, eq=False, repr=False)
class NetworkRows:
    """Rows as single networks of the paper's kind read them.

    Attributes
    ----------
    X : float32 array (n, D), scaled, or CSR matrix
    scaling : Scaling or None
        Of sparse rows.
    layout : Layout
    """

    X: Any
    scaling: Scaling | None
    layout: Layout

    @classmethod
    def prepared(cls, X: Any, scaling: Scaling, layout: Layout) -> NetworkRows:
        """Scale dense rows once; sparse ones are scaled in the products."""
        if sp.issparse(X):
            X = X.tocsr()
            check_sparse_range(X, scaling, np.float32)
            return cls(X, scaling, layout)
        return cls(scaled_features(X, scaling, np.float32), None, layout)

    def passes(self, most_rows: int, dropout: float) -> BatchPasses:
        """Return what takes batches through a network."""
        return _PaperBatches(self, dropout)

    def logits(self, theta: NDArray[np.float32], block: int = 4096) -> NDArray:
        """Return the logits (n, K) of one network."""
        n = self.X.shape[0]
        parts = [
            forward_pass(theta, self.X[a : a + block], self.layout, self.scaling)[0]
            for a in range(0, n, block)
        ]
        return np.concatenate(parts)


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
        theta, average = self.theta.copy(), self.average.copy()
        adam = _copied(self.adam)
        sums = self.sums
        seen = loss_set.new_totals(1)
        used = np.flatnonzero(targets.weight)
        order = generator.permutation(used)
        n_batches = max(1, round(len(order) / plan.batch_size))
        surrogate = self.epoch - begun < plan.surrogate_epochs
        n_kept = 0 if surrogate else plan.first_trained
        batches = np.array_split(order, n_batches)
        passes = rows.passes(len(batches[0]), plan.dropout)
        for b, batch in enumerate(batches):
            logits = passes.forward(theta, batch, generator)
            if sums is None:
                sums = _sums_of(logits, batch, loss_set, targets)
            if b % _BATCHES_A_PRICE == 0:
                prices = statistic_weights(loss_set, sums, 1.0)
            if plan.closed_form:
                credit, totals = smoothed_gradient(
                    logits, targets, batch, plan.smoothing, prices, loss_set
                )
            else:
                shifts, gains = _moves(logits.shape, plan.smoothing, generator)
                credit, totals = output_credit(
                    logits, targets, batch, shifts, gains, prices, loss_set
                )
            sums = _blended(sums, totals, float(targets.weight[batch].sum()))
            seen.add(totals)
            if surrogate:
                weight = targets.weight[batch].astype(np.float32)[:, None]
                credit = weight * (targets.dense[batch] - expit(logits))
            gradient = passes.backward(credit / np.float32(len(batch)))
            progress = (self.epoch - begun + b / n_batches) / plan.n_epochs
            adam.step(theta, gradient, plan.rate(progress), plan.weight_decay)
            theta[:n_kept] = average[:n_kept]
            t = adam.n_steps
            keep = np.float32(min(_AVERAGED, t / (t + 10)))
            average[n_kept:] *= keep
            average[n_kept:] += (1 - keep) * theta[n_kept:]
        weight_seen = float(targets.weight[used].sum())
        statistics = loss_set.statistics(seen, weight_seen)
        return replace(
            self,
            theta=theta,
            average=average,
            adam=adam,
            sums=sums,
            generator=dict(generator.bit_generator.state),
            epoch=self.epoch + 1,
            losses=loss_set.close(statistics)[0],
        )


def _moves(
    shape: tuple[int, ...], smoothing: float, generator: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return how far outputs are moved, and what the change is multiplied by."""
    draws = np.abs(generator.standard_normal(shape, dtype=np.float32))
    scale = np.float32(smoothing)
    return scale * draws, (draws / (2 * scale)).astype(np.float32)


def _sums_of(
    logits: NDArray[np.float32],
    batch: NDArray[np.intp],
    loss_set: LossSet,
    targets: RowTargets,
) -> Totals:
    """Return the statistics of a row of weight 1 in a batch."""
    totals = loss_set.new_totals(1)
    rows = targets.take(batch)
    loss_set.accumulate(totals, logits[None], rows)
    return _blended(None, totals, float(rows.weight.sum()))


def _blended(sums: Totals | None, batch: Totals, weight: float) -> Totals:
    """Return running statistics of a row of weight 1, a batch's blended in."""
    columns, labels = batch.columns / weight, batch.labels / weight
    if sums is None:
        return Totals(columns, labels, {})
    return Totals(
        _KEPT_SUMS * sums.columns + (1 - _KEPT_SUMS) * columns,
        _KEPT_SUMS * sums.labels + (1 - _KEPT_SUMS) * labels,
        {},
    )


def _masks(
    dropout: float, n_rows: int, layout: Layout, generator: np.random.Generator
) -> list[NDArray[np.float32]] | None:
    """Return what hidden units are multiplied by, layer by layer; None for all 1."""
    if dropout == 0:
        return None
    shape = (n_rows, layout.embedding_dim)
    kept = np.float32(1 / (1 - dropout))
    return [
        kept * (generator.random(shape, dtype=np.float32) >= dropout)
        for _ in range(layout.n_layers + 1)
    ]


def _copied(adam: Adam) -> Adam:
    twin = copy.copy(adam)
    twin.first, twin.second = adam.first.copy(), adam.second.copy()
    return twin
