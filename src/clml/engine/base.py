"""What engines that hold rows have in common."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..losses import LossSet, RowTargets, Statistics, get_losses
from ..network import Layout
from .blocks import check_shapes


def drawn_rows(n_rows: int, share: float, seed: Sequence[int]) -> NDArray[np.intp]:
    """Draw a share of some rows, at least one; return them in ascending order."""
    size = max(1, round(share * n_rows))
    order = np.random.default_rng(seed).permutation(n_rows)
    return np.sort(order[:size])


class RowEngine(ABC):
    """Rows, their targets and losses; a subclass says how they are evaluated."""

    _rows: Any

    def __init__(self, layout: Layout, X: Any, targets: RowTargets, losses: Any):
        check_shapes(layout, X, targets)
        self.layout = layout
        self.targets = targets
        self.loss_set = LossSet(get_losses(losses), layout.n_labels)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._rows.n_rows)

    def with_losses(self, losses: Any) -> Self:
        """Return an engine on the same rows for other losses; the rows are shared."""
        other = copy.copy(self)
        other.loss_set = LossSet(get_losses(losses), self.layout.n_labels)
        return other

    def with_targets(self, targets: RowTargets) -> Self:
        """Return an engine on the same rows with other labels or row weights."""
        other = copy.copy(self)
        other.targets = targets
        return other

    def take(self, rows: NDArray[np.integer]) -> Self:
        """Return an engine on some of the rows alone."""
        other = self.with_targets(self.targets.take(rows))
        other._rows = self._rows.take(rows)
        return other

    def drawn(self, share: float, seed: Sequence[int]) -> Self:
        """Return an engine on a random share of the rows."""
        return self.take(drawn_rows(self.n_rows, share, seed))

    def helped_by(self, executor: Executor | None) -> Self:
        """Return an engine on the same rows that other threads help, if it can."""
        return self

    @property
    def sample(self) -> Self:
        """An engine that has the scores of single rows: these are all in memory."""
        return self

    @property
    def nbytes(self) -> int:
        """Bytes that rows and targets take."""
        of_targets = sum(array.nbytes for array in self.targets.arrays)
        return int(self._rows.nbytes) + of_targets

    def losses(self, thetas: Any) -> NDArray[np.float64]:
        """Return the losses (population, o) of candidates (population, n)."""
        return self.loss_set.close(self.evaluate(thetas))

    @abstractmethod
    def evaluate(self, thetas: Any) -> Statistics:
        """Return the statistics of candidates (population, n)."""
