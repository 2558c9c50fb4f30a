"""What the settings of a fit come to: plans and strategies for some rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import evolution
from ..evolution import Strategy
from ..losses import RowTargets
from ..network import PAPER_WIDTH, PaperNetwork, WideNetwork
from .ascent import AscentState
from .candidates import as_single
from .init import LastLayer, n_before_last, pretrained
from .search import EpochRows
from .searches import (
    CMA,
    COVARIANCES,
    Ascent,
    Population,
    RankGradient,
    SearchMethod,
)
from .steps import AscentPlan
from .training_rows import NetworkRows

#: Rows from which on a wider network, fewer members and fewer epochs are better.
MANY_ROWS = 10_000
#: Weights from which on sampling with an adapted step size stalls.
MANY_WEIGHTS = 10_000

# Those whose populations can be drawn on a device.
_ON_DEVICES = ("rank_one", "printed", "separable")
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
_WIDE_RATE, _WIDE_DECAY = 0.002, 1e-4
# What cross-entropy is best descended with (docs/learning.md).
_SOFT_RATE = 0.008


def default_members(n_rows: int, wide: bool = False) -> int:
    """Return how many networks are averaged."""
    if wide:
        return 20 if n_rows < MANY_ROWS else 5
    return 16 if n_rows < MANY_ROWS else 8


def default_width(n_rows: int) -> int:
    """Return how wide they are: the paper's width if rows are not many."""
    return PAPER_WIDTH if n_rows < MANY_ROWS else 64


def as_network(network: Any, ascends: bool) -> Any:
    """Return the network that a setting stands for: itself, or what its name says.

    Parameters
    ----------
    network : {"auto", "paper", "wide"} or a network
    ascends : bool
        Whether an ascent trains it. Populations move all weights at once, and find
        their way with the few of the paper's kind alone.
    """
    if not isinstance(network, str):
        return network
    wide = network == "wide" or (network == "auto" and ascends)
    return WideNetwork() if wide else PaperNetwork()


def default_epochs(kind: str, n_rows: int, wide: bool = False) -> int:
    """Return how long they are trained."""
    if kind != "ascent":
        return 750 if kind == "cma" else 2000
    if n_rows < MANY_ROWS:
        return 40 if wide else 100
    # As many steps for more rows: an epoch of these takes long enough.
    return int(np.clip(_ROWS_OF_A_RUN / n_rows, 10, 60))


@dataclass(frozen=True)
class TrainingSettings:
    """How networks are trained.

    Attributes
    ----------
    search : SearchMethod
    n_epochs : int
    horizon : int or None
        Epochs over which the rate of a rank gradient falls; None if it does not.
    wide : bool
        Whether they are wide ones.
    dropout : float
        Of networks of the paper's kind.
    soft : bool
        Whether a teacher's shares of labels are what they learn: by cross-entropy, from
        the first epoch to the last.
    """

    search: SearchMethod
    n_epochs: int
    horizon: int | None
    wide: bool = False
    dropout: float = 0.0
    soft: bool = False

    def ascent(self, n_rows: int) -> AscentPlan:
        """Return the plan of an ascent on so many rows."""
        # Populations that start from cross-entropy are led there as by default.
        search = self.search if isinstance(self.search, Ascent) else Ascent()
        surrogate = search.init == "surrogate"
        rate, decay = (_WIDE_RATE, _WIDE_DECAY) if self.wide else (0.01, 0.0)
        share = _SHARE_OF_START if surrogate else 0.0
        if self.soft:
            rate, share = _SOFT_RATE, 1.0
        if search.weight_decay is not None:
            decay = search.weight_decay
        return AscentPlan(
            learning_rate=float(search.learning_rate or rate),
            n_epochs=self.n_epochs,
            batch_size=int(
                search.batch_size or np.clip(round(2 * n_rows**0.5), 32, 256)
            ),
            smoothing=float(search.smoothing),
            dropout=float(self.dropout),
            surrogate_epochs=round(share * self.n_epochs),
            weight_decay=float(decay),
            closed_form=self.wide,
        )

    @property
    def _population(self) -> Population:
        assert isinstance(self.search, Population)  # an ascent has none
        return self.search

    def rows_of_an_epoch(self, n_rows: int, seed: tuple[int, ...]) -> EpochRows | None:
        """Return which rows an epoch of a population is evaluated on; None for all."""
        share = self._population.epoch_rows
        if share == "auto":
            some = isinstance(self.search, RankGradient)
            share = min(1.0, _ROWS_OF_AN_EPOCH / n_rows) if some else 1.0
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
        search = self._population
        start_seed, strategy_seed = seed.spawn(2)
        start, sigma = self._start(rows, targets, start_seed)
        expand: Callable[[Any], Any] = as_single
        if search.evolve == "last":
            before = n_before_last(rows.layout)
            expand = LastLayer(start[:before].astype(np.float32))
            start = start[before:]
        size = search.population_size
        if isinstance(search, RankGradient):
            gradient = evolution.RankGradient(
                start,
                sigma,
                256 if size == "auto" else size,
                seed=strategy_seed,
                learning_rate=float(search.learning_rate or 0.02),
                horizon=self.horizon,
                device=device,
            )
            return gradient, expand
        assert isinstance(search, CMA)
        where = {"device": device} if search.covariance in _ON_DEVICES else {}
        strategy = COVARIANCES[search.covariance](
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
        search = self._population
        sigma = float(search.sigma0)
        if search.init == "surrogate":
            plan = replace(
                self.ascent(targets.n_rows),
                n_epochs=_EPOCHS_OF_START,
                surrogate_epochs=_EPOCHS_OF_START,
            )
            trained = pretrained(rows, targets, plan, seed)
            return trained.astype(np.float64), sigma * _STEP_FROM_SURROGATE
        if isinstance(search, RankGradient):
            start = AscentState.start(rows.layout, seed).theta
            return start.astype(np.float64), sigma * _STEP_OF_GRADIENT
        n = rows.layout.size
        return np.random.default_rng(seed).normal(scale=n**-0.5, size=n), sigma
