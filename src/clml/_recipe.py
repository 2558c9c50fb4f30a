"""What the settings of a fit come to: plans and strategies for some rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._ascent import AscentPlan, Climber, NetworkRows
from ._candidates import as_single
from ._search import EpochRows
from ._starts import LastLayer, n_before_last, pretrained
from .evolution import (
    CMAPackage,
    FullCMA,
    RankGradient,
    RankOneCMA,
    SeparableCMA,
    Strategy,
)
from .losses import RowTargets
from .network import Layout

#: Rows from which on a wider network, fewer members and fewer epochs are better.
MANY_ROWS = 10_000
#: Weights from which on sampling with an adapted step size stalls.
MANY_WEIGHTS = 10_000
COVARIANCES: dict[str, Any] = {
    "rank_one": RankOneCMA,
    "separable": SeparableCMA,
    "full": FullCMA,
    "cma": CMAPackage,
}

# Those whose populations can be drawn on a device.
_ON_DEVICES = ("rank_one", "separable")
# What members that ascend see altogether when rows are many.
_ROWS_OF_A_RUN = 1_200_000
# What an epoch of a search for wide networks evaluates.
_ROWS_OF_AN_EPOCH = 5_000
# The share of an ascent that a cross-entropy start takes, and the epochs of one that
# populations begin from.
_SHARE_OF_START = 0.3
_EPOCHS_OF_START = 30
# First steps from there and of a rank gradient, in units of ``sigma0``.
_STEP_FROM_SURROGATE = 0.05
_STEP_OF_GRADIENT = 0.1


# Of wide networks.
_WIDE_RATE, _WIDE_DECAY = 0.001, 1e-4


def default_members(n_rows: int, wide: bool = False) -> int:
    """Return how many networks are averaged."""
    if wide:
        return 15 if n_rows < MANY_ROWS else 5
    return 16 if n_rows < MANY_ROWS else 8


def default_width(n_rows: int) -> int:
    """Return how wide they are: the paper's width if rows are not many."""
    return 20 if n_rows < MANY_ROWS else 64


def default_epochs(kind: str, n_rows: int) -> int:
    """Return how long they are trained."""
    if kind != "ascent":
        return 750 if kind == "cma" else 2000
    if n_rows < MANY_ROWS:
        return 100
    # As many steps for more rows: an epoch of these takes long enough.
    return int(np.clip(_ROWS_OF_A_RUN / n_rows, 10, 60))


@dataclass(frozen=True)
class Recipe:
    """How networks are trained; the parameters are those of ``CLMLClassifier``.

    Attributes
    ----------
    kind : {"ascent", "cma", "rank_gradient"}
    n_epochs : int
    horizon : int or None
        Epochs over which the rate of a rank gradient falls; None if it does not.
    wide : bool
        Whether they are wide ones.
    init, evolve, learning_rate, batch_size, smoothing, dropout, epoch_rows,
    population_size, covariance, sigma0
        As given.
    """

    kind: str
    n_epochs: int
    horizon: int | None
    init: str
    evolve: str
    learning_rate: float | None
    batch_size: int | None
    smoothing: float
    dropout: float
    epoch_rows: Any
    population_size: Any
    covariance: str
    sigma0: float
    wide: bool = False

    def ascent(self, n_rows: int, layout: Layout | None = None) -> AscentPlan:
        """Return the plan of an ascent on so many rows."""
        surrogate = self.init == "surrogate"
        first_trained = 0
        if self.evolve == "last" and layout is not None:
            first_trained = n_before_last(layout)
        rate = _WIDE_RATE if self.wide else 0.01
        return AscentPlan(
            learning_rate=float(self.learning_rate or rate),
            n_epochs=self.n_epochs,
            batch_size=int(self.batch_size or np.clip(round(2 * n_rows**0.5), 32, 256)),
            smoothing=float(self.smoothing),
            dropout=float(self.dropout),
            first_trained=first_trained,
            surrogate_epochs=round(_SHARE_OF_START * self.n_epochs) if surrogate else 0,
            weight_decay=_WIDE_DECAY if self.wide else 0.0,
            closed_form=self.wide,
        )

    def rows_of_an_epoch(self, n_rows: int, seed: tuple[int, ...]) -> EpochRows | None:
        """Return which rows an epoch of a population is evaluated on; None for all."""
        share = self.epoch_rows
        if share == "auto":
            wide = self.kind == "rank_gradient"
            share = min(1.0, _ROWS_OF_AN_EPOCH / n_rows) if wide else 1.0
        return None if share == 1 else EpochRows(n_rows, float(share), seed)

    def strategy(
        self,
        rows: NetworkRows,
        targets: RowTargets,
        seed: np.random.SeedSequence,
        device: str | None = None,
    ) -> tuple[Strategy, Callable[[Any], Any]]:
        """Return a strategy at its start, and what completes its candidates.

        Populations are drawn on the device if there is one and the strategy can.
        """
        start_seed, strategy_seed = seed.spawn(2)
        start, sigma = self._start(rows, targets, start_seed)
        expand: Callable[[Any], Any] = as_single
        if self.evolve == "last":
            before = n_before_last(rows.layout)
            expand = LastLayer(start[:before].astype(np.float32))
            start = start[before:]
        size = self.population_size
        if self.kind == "rank_gradient":
            gradient = RankGradient(
                start,
                sigma,
                256 if size == "auto" else size,
                seed=strategy_seed,
                learning_rate=float(self.learning_rate or 0.02),
                horizon=self.horizon,
                device=device,
            )
            return gradient, expand
        where = {"device": device} if self.covariance in _ON_DEVICES else {}
        strategy = COVARIANCES[self.covariance](
            start,
            sigma,
            population_size=64 if size == "auto" else size,
            seed=strategy_seed,
            **where,
        )
        return strategy, expand

    def _start(
        self, rows: NetworkRows, targets: RowTargets, seed: np.random.SeedSequence
    ) -> tuple[NDArray[np.float64], float]:
        """Return where a population begins, and with what step size."""
        sigma = float(self.sigma0)
        if self.init == "surrogate":
            plan = replace(
                self.ascent(targets.n_rows, rows.layout),
                n_epochs=_EPOCHS_OF_START,
                surrogate_epochs=_EPOCHS_OF_START,
                first_trained=0,
            )
            trained = pretrained(rows, targets, plan, seed)
            return trained.astype(np.float64), sigma * _STEP_FROM_SURROGATE
        if self.kind == "rank_gradient":
            start = Climber.start(rows.layout, seed).theta
            return start.astype(np.float64), sigma * _STEP_OF_GRADIENT
        n = rows.layout.size
        return np.random.default_rng(seed).normal(scale=n**-0.5, size=n), sigma
