"""The search: evolve weights by the Lebesgue contributions of their losses."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine import Engine
from ..engine.base import drawn_rows
from ..evolution import RankGradient, Strategy
from ..evolution.base import BaseCMA
from ..lebesgue import Method, Ties, fitness_order, lebesgue_measure, nondominated
from .archive import Archive, covered
from .candidates import as_single, host_rows, stacked

TRACKED = ("binary_cross_entropy", "row_log_loss")


@dataclass(frozen=True)
class Fitness:
    """How losses become an order.

    Attributes
    ----------
    ties : {"depth", "layer"} or None
    method : {"auto", "exact", "monte_carlo"}
    n_samples : int
        Of Monte Carlo.
    seed : tuple of int
        Of Monte Carlo. Every epoch draws from a generator of its own, so that an epoch
        that is interrupted and repeated draws the same.
    archived : bool
        Whether the references are the non-dominated loss vectors of all epochs so far
        (Algorithm 1 to the letter) instead of the unit vector.
    """

    ties: Ties
    method: Method
    n_samples: int
    seed: tuple[int, ...]
    archived: bool

    def order(
        self,
        losses: NDArray[np.float64],
        references: NDArray[np.float64],
        epoch: int,
    ) -> NDArray[np.int64]:
        """Return the candidates' indices, best first."""
        return fitness_order(
            losses,
            ties=self.ties,
            reference=references,
            method=self.method,
            n_samples=self.n_samples,
            random_state=np.random.default_rng([*self.seed, epoch]),
        )

    def next_references(
        self, references: NDArray[np.float64], losses: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the references of the next epoch."""
        if not self.archived:
            return references
        together = np.unique(np.concatenate([references, losses]), axis=0)
        return together[nondominated(together)]


@dataclass(frozen=True)
class EpochRows:
    """A random share of the rows, drawn afresh every epoch.

    An epoch that is interrupted and repeated draws the same.
    """

    n_rows: int
    share: float
    seed: tuple[int, ...]

    def draw(self, epoch: int) -> NDArray[np.intp]:
        """Return the rows of an epoch, at least one, in ascending order."""
        return drawn_rows(self.n_rows, self.share, (*self.seed, epoch))

    def of(self, rows: Engine, epoch: int) -> Engine:
        """Return an engine on the rows of an epoch."""
        return rows.drawn(self.share, (*self.seed, epoch))


@dataclass(frozen=True, eq=False)
class Progress:
    """What a run has found after some epochs. A value.

    Attributes
    ----------
    epoch : int
        Epochs completed.
    archive : Archive
        Of the validation losses (of the training losses without validation rows).
    references : float64 array (r, o)
        What bounds the measure in the next epoch.
    incumbent : float32 array (n,) or None
        The best candidate of the last epoch by its fitness.
    history : tuple of dict
        One record an epoch.
    archived_losses : tuple of float32 arrays (population, o)
        Losses, as the archive's, of every candidate of every epoch.
    """

    epoch: int
    archive: Archive
    references: NDArray[np.float64]
    incumbent: NDArray[np.float32] | None = None
    history: tuple[dict[str, Any], ...] = ()
    archived_losses: tuple[NDArray[np.float32], ...] = ()

    @property
    def measure(self) -> float:
        """The Lebesgue measure of what the run has found."""
        return self.archive.measure


class Search:
    """One run: a strategy asked and told, and what came of it.

    An interrupt at any moment leaves the run before or after an epoch. The strategy
    commits ``tell`` by one assignment, and the progress that belongs to it is laid
    down beforehand: whichever of the two has the strategy's epoch is the one that
    holds.

    Parameters
    ----------
    strategy : Strategy
    fitness : Fitness
    archive : Archive
    expand : callable, default=as_single
        Turns what the strategy moves into whole candidates; all of them by default.
    epoch_rows : EpochRows, default=None
        Which training rows an epoch's fitness is computed on; all by default.
    """

    #: Every candidate is compared with the archive.
    kernel = staticmethod(covered)

    def __init__(
        self,
        strategy: Strategy,
        fitness: Fitness,
        archive: Archive,
        expand: Callable[[Any], Any] = as_single,
        epoch_rows: EpochRows | None = None,
    ):
        self.strategy = strategy
        self.fitness = fitness
        self.expand = expand
        self.epoch_rows = epoch_rows
        # Of the epoch that is going on, and the order that the last one ended with.
        self.population: Any = None
        self.told: NDArray[np.int64] | None = None
        unit = np.ones((1, archive.losses.shape[1]))
        self._before = self._after = Progress(strategy.epoch, archive, unit)

    @property
    def progress(self) -> Progress:
        """What the run has found so far."""
        told = self._after.epoch == self.strategy.epoch
        return self._after if told else self._before

    @property
    def mean(self) -> NDArray[np.float32]:
        """The candidate in the middle of the search distribution."""
        return mean_of(self.strategy, self.expand)

    @property
    def between_epochs(self) -> bool:
        """Whether an epoch has been completed, and none begun since: always after."""
        return self.progress.epoch > 0

    def resume(self, progress: Progress) -> None:
        """Go on from a progress on the rows that are attached."""
        self._before = self._after = progress

    def attach(
        self,
        train: Engine,
        validation: Engine | None,
        helpers: Executor | None = None,
    ) -> None:
        """Give the search its rows, and threads that help if there are any.

        Members known from other rows are judged anew.
        """
        self._helpers = helpers
        self._train = train
        self._validation = validation
        self._tracked = {"train": train.sample.with_losses(TRACKED)}
        if validation:
            self._tracked["validation"] = validation.sample.with_losses(TRACKED)
        now = self.progress
        if len(now.archive.thetas):
            losses = defined_losses(self.rows.losses(now.archive.thetas))
            now = replace(now, archive=now.archive.judged_anew(losses))
            self._before = self._after = now

    def detach(self) -> None:
        """Let go of the rows."""
        for name in ("_train", "_validation", "_tracked", "_helpers"):
            self.__dict__.pop(name, None)
        self.population = None

    @property
    def rows(self) -> Engine:
        """The rows that members are judged on: validation rows if there are any."""
        return self._validation or self._train

    def epoch(self) -> dict[str, Any]:
        """Sample, evaluate, rank, archive, update. Return the epoch's record."""
        began = time.perf_counter()
        now = self.progress
        self.population = thetas = population_of(self.strategy, self.expand)
        rows = self._train
        if self.epoch_rows is not None:
            rows = self.epoch_rows.of(rows, now.epoch)
        train_losses = rows.begin(thetas)
        judged_losses = None
        if self._validation or self.epoch_rows is not None:
            judged_losses = self.rows.begin(thetas)
        if self._helpers is not None and isinstance(self.strategy, BaseCMA):
            self.strategy.draw_ahead(self._helpers)  # once they have evaluated
        train = judged = defined_losses(train_losses())
        order = self.fitness.order(train[:-1], now.references, now.epoch)
        best = int(order[0])
        incumbent = host_rows(thetas, order[:1])[0]
        tracked = self._tracked_losses(incumbent)  # helpers judge the others meanwhile
        if judged_losses is not None:
            judged = defined_losses(judged_losses())
        finite = train[:-1][np.isfinite(train[:-1]).all(axis=1)]
        archive = now.archive.updated(judged[:-1], thetas[:-1])
        record = {
            "sigma": self.strategy.sigma,
            "measure": lebesgue_measure(finite, now.references),
            "archive_measure": archive.measure,
            "incumbent_train": train[best],
            "mean_train": train[-1],
            "undefined": n_undefined(train[:-1], judged[:-1]),
            **tracked,
        }
        if self._validation:
            record |= {
                "incumbent_validation": judged[best],
                "mean_validation": judged[-1],
            }
        record["seconds"] = time.perf_counter() - began
        self._before = now
        self._after = Progress(
            epoch=now.epoch + 1,
            archive=archive,
            references=self.fitness.next_references(now.references, finite),
            incumbent=incumbent,
            history=(*now.history, record),
            archived_losses=(*now.archived_losses, judged[:-1].astype(np.float32)),
        )
        self.strategy.tell(order)
        self.told = order
        # The record is ours alone until it is returned: the update counts too.
        record["seconds"] = time.perf_counter() - began
        return record

    def _tracked_losses(self, theta: NDArray[np.float32]) -> dict[str, float]:
        begun = [(rows, e.begin(theta[None])) for rows, e in self._tracked.items()]
        return {
            f"incumbent_{name}_{rows}": float(value)
            for rows, finish in begun
            for name, value in zip(TRACKED, finish()[0], strict=True)
        }


def mean_of(strategy: Strategy, expand: Callable[[Any], Any]) -> NDArray[np.float32]:
    """Return the candidate in the middle of a search distribution."""
    middle: NDArray[np.float32] = expand(centre(strategy).astype(np.float32)[None])[0]
    return middle


def population_of(strategy: Strategy, expand: Callable[[Any], Any]) -> Any:
    """Return the candidates of a strategy's epoch; the mean rides along, at the end.

    The same strategy, or a copy of it anywhere, gives the same bits.
    """
    return stacked(expand(as_single(strategy.ask())), mean_of(strategy, expand))


def centre(strategy: Strategy) -> NDArray[np.float64]:
    """Return where a strategy stands: its average along the run, if it keeps one."""
    if isinstance(strategy, RankGradient) and strategy.epoch:
        return strategy.average
    return strategy.mean


def history_arrays(history: tuple[dict[str, Any], ...]) -> dict[str, NDArray]:
    """Return one array a quantity, (epochs,) or (epochs, o).

    A quantity that some epochs lack (a warm start without validation rows) is NaN
    there.
    """
    samples = {name: value for record in history for name, value in record.items()}
    return {
        name: np.array(
            [record[name] if name in record else absent for record in history]
        )
        for name, sample in samples.items()
        for absent in [np.full(np.shape(sample), np.nan)]
    }


def n_undefined(*losses: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return of how many candidates each loss (o,) was not finite on some rows."""
    finite = np.logical_and.reduce([np.isfinite(values) for values in losses])
    return (~finite).sum(axis=0)


def defined_losses(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the losses with −inf, which no loss may be, as undefined."""
    return np.where(losses == -np.inf, np.nan, losses)
