"""An epoch of one member as a function of values, which may run anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..engine import NumpyEngine, TorchEngine
from ..evolution import Strategy
from ..losses import LossSet, RowTargets
from .ascent import AscentState, after_epoch
from .candidates import as_single
from .search import EpochRows, Fitness, defined_losses, n_undefined
from .steps import AscentPlan
from .training_rows import TrainingRows


class RunAll(Protocol):
    """What runs an epoch of several members elsewhere, such as on a cluster."""

    def __call__(
        self, epoch: Callable[..., Any], numbers: Sequence[int], members: Sequence[Any]
    ) -> list[Any]:
        """Return ``epoch(number, member)`` for each of them; members stay as given."""


def _bytes_of_weights(targets: Sequence[RowTargets]) -> int:
    """Return what members' targets take apart from what they share.

    A cluster plans by what objects say of their sizes.
    """
    return sum(own.weight.nbytes for own in targets)


@dataclass(frozen=True, eq=False)
class AscentEpoch:
    """An epoch of any one member that climbs: a function that can travel.

    Attributes
    ----------
    rows : sequence of TrainingRows
        One a member; those of one kind share them.
    targets : sequence of RowTargets
        One a member, which differ in their weights.
    loss_set : LossSet
    plan : AscentPlan
    begun : int
        The epoch at which the plan began.
    """

    rows: Sequence[TrainingRows]
    targets: Sequence[RowTargets]
    loss_set: LossSet
    plan: AscentPlan
    begun: int

    def __call__(self, number: int, climber: AscentState) -> AscentState:
        """Return a member after one more epoch."""
        (after,) = self.together([number], [climber])
        return after

    def together(
        self, numbers: Sequence[int], climbers: Sequence[AscentState]
    ) -> list[AscentState]:
        """Return members that read the same rows after one more epoch."""
        return after_epoch(
            climbers,
            self.rows[numbers[0]],
            [self.targets[number] for number in numbers],
            self.loss_set,
            self.plan,
            self.begun,
        )

    def __sizeof__(self) -> int:
        of_rows = sum(array.nbytes for array in self.targets[0].arrays)
        for rows in {id(rows): rows for rows in self.rows}.values():
            X = rows.X
            arrays = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
            of_rows += sum(array.nbytes for array in arrays)
        return of_rows + _bytes_of_weights(self.targets)


@dataclass(frozen=True, eq=False)
class EvolutionEpoch:
    """An epoch of any one member that is evolved: a function that can travel.

    Attributes
    ----------
    expand : sequence of callables
        One a member: what its strategy moves, as whole networks.
    engine : NumpyEngine or TorchEngine
        On all rows.
    targets : sequence of RowTargets
        One a member: it sees the rows of positive weight.
    fitness : Fitness
    epoch_rows : EpochRows or None
        Which rows an epoch evaluates; None for all.
    """

    expand: Sequence[Callable[[Any], Any]]
    engine: NumpyEngine | TorchEngine
    targets: Sequence[RowTargets]
    fitness: Fitness
    epoch_rows: EpochRows | None

    def __call__(
        self, number: int, strategy: Strategy
    ) -> tuple[Strategy, NDArray[np.float64], NDArray[np.int64]]:
        """Ask the strategy, evaluate its candidates, and tell it.

        Returns
        -------
        strategy : Strategy
            The one that was given, told; where it had travelled, a copy.
        best : float64 array (o,)
            Smallest losses among the candidates.
        undefined : int64 array (o,)
            Of how many candidates a loss was not finite.
        """
        epoch = strategy.epoch
        thetas = self.expand[number](as_single(strategy.ask()))
        # Absent, not of weight 0: a user's loss may take no weights.
        rows = self._rows_of(self.targets[number], epoch)
        losses = defined_losses(self.engine.take(rows).losses(thetas))
        unit = np.ones((1, losses.shape[1]))
        strategy.tell(self.fitness.order(losses, unit, epoch))
        return strategy, np.fmin.reduce(losses, axis=0), n_undefined(losses)

    def __getstate__(self) -> dict[str, Any]:
        # Threads stay behind: the results do not depend on them.
        return {**self.__dict__, "engine": self.engine.helped_by(None)}

    def __sizeof__(self) -> int:
        return self.engine.nbytes + _bytes_of_weights(self.targets)

    def _rows_of(self, own: RowTargets, epoch: int) -> NDArray[np.intp]:
        """Return the rows that a member sees in an epoch."""
        used = own.weight > 0
        if self.epoch_rows is not None:
            drawn = self.epoch_rows.draw(epoch)
            drawn = drawn[used[drawn]]
            if len(drawn):  # a draw of a few rows may have none of the member's
                return drawn
        return np.flatnonzero(used)
