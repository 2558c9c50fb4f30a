"""The search: evolve weights by the Lebesgue contributions of their losses."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._archive import Archive
from .engine import Engine
from .evolution import Strategy
from .lebesgue import (
    Method,
    Ties,
    fitness_order,
    lebesgue_contributions,
    lebesgue_measure,
    nondominated,
)

TRACKED = ("binary_cross_entropy", "row_log_loss")


@dataclass
class Fitness:
    """How losses become an order.

    Attributes
    ----------
    ties : {"depth", "layer"} or None
    method : {"exact", "monte_carlo"}
    n_samples : int
        Of Monte Carlo.
    generator : numpy Generator
        Of Monte Carlo.
    references : float64 array (r, o)
        What bounds the measure, at first the unit vector.
    archived : bool
        Whether the references become the non-dominated vectors of all epochs so far
        (Algorithm 1 to the letter) instead of staying what they are.
    """

    ties: Ties
    method: Method
    n_samples: int
    generator: np.random.Generator
    references: NDArray[np.float64]
    archived: bool

    def order(self, losses: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the candidates' indices, best first."""
        contributions = lebesgue_contributions(
            losses,
            reference=self.references,
            method=self.method,
            n_samples=self.n_samples,
            random_state=self.generator,
        )
        return fitness_order(
            losses,
            ties=self.ties,
            reference=self.references,
            contributions=contributions,
        )

    def remember(self, losses: NDArray[np.float64]) -> None:
        """Let an epoch's losses into the references, if they are archived."""
        if self.archived:
            together = np.unique(np.concatenate([self.references, losses]), axis=0)
            self.references = together[nondominated(together)]


@dataclass
class Search:
    """One run: a strategy asked and told, an archive, and what happened.

    Attributes
    ----------
    strategy : Strategy
    fitness : Fitness
    archive : Archive
        Of the validation losses (of the training losses without validation rows).
    history : list of dict
        One record an epoch.
    archived_losses : list of float32 arrays (population, o)
        Validation losses of every candidate of every epoch.
    incumbent : float32 array (n,) or None
        The best candidate of the last epoch by its fitness.
    """

    strategy: Strategy
    fitness: Fitness
    archive: Archive
    history: list[dict[str, Any]] = field(default_factory=list)
    archived_losses: list[NDArray[np.float32]] = field(default_factory=list)
    incumbent: NDArray[np.float32] | None = None

    def attach(self, train: Engine, validation: Engine | None) -> None:
        """Give the search its rows; members known from other rows are evaluated."""
        self._train = train
        self._validation = validation
        self._tracked_train = train.with_losses(TRACKED)
        self._tracked_validation = validation and validation.with_losses(TRACKED)
        if len(self.archive.thetas):
            self.archive.replace_losses(self.rows.losses(self.archive.thetas))

    def detach(self) -> None:
        """Let go of the rows."""
        for name in ("_train", "_validation", "_tracked_train", "_tracked_validation"):
            self.__dict__.pop(name, None)

    @property
    def rows(self) -> Engine:
        """The rows that members are judged on: validation rows if there are any."""
        return self._validation or self._train

    @property
    def n_epochs(self) -> int:
        """Epochs completed."""
        return len(self.history)

    def epoch(self) -> dict[str, Any]:
        """Sample, evaluate, rank, archive, update. Return the epoch's record."""
        began = time.perf_counter()
        population = self.strategy.ask()
        sigma = self.strategy.sigma
        # The mean rides along as one more candidate.
        thetas = np.vstack([population, self.strategy.mean]).astype(np.float32)
        train = self._train.losses(thetas)
        judged = self._validation.losses(thetas) if self._validation else train
        measure = lebesgue_measure(_finite(train[:-1]), self.fitness.references)
        order = self.fitness.order(train[:-1])
        best = int(order[0])
        record = {
            "sigma": sigma,
            "measure": measure,
            "incumbent_train": train[best],
            "mean_train": train[-1],
            **self._tracked("train", self._tracked_train, thetas[best]),
        }
        self.archive.update(judged[:-1], thetas[:-1])
        if self._validation:
            record |= {
                "incumbent_validation": judged[best],
                "mean_validation": judged[-1],
                **self._tracked("validation", self._tracked_validation, thetas[best]),
            }
        record["archive_measure"] = self.archive.measure
        self.strategy.tell(order)
        self.fitness.remember(_finite(train[:-1]))
        self.incumbent = thetas[best].copy()
        self.archived_losses.append(judged[:-1].astype(np.float32))
        record["seconds"] = time.perf_counter() - began
        self.history.append(record)
        return record

    def _tracked(
        self, rows: str, engine: Engine | None, theta: NDArray[np.float32]
    ) -> dict[str, float]:
        assert engine is not None
        values = engine.losses(theta[None])[0]
        return {
            f"incumbent_{name}_{rows}": float(value)
            for name, value in zip(TRACKED, values, strict=True)
        }

    def history_arrays(self) -> dict[str, NDArray[np.float64]]:
        """Return the history as one array a quantity, (epochs,) or (epochs, o)."""
        if not self.history:
            return {}
        return {
            name: np.array([record[name] for record in self.history])
            for name in self.history[0]
        }


def _finite(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    return losses[np.isfinite(losses).all(axis=1)]
