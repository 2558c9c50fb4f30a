"""What an engine is: something that evaluates a population on its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ..losses import Statistics


class Engine(Protocol):
    """Holds rows and their labels; turns candidates into statistics.

    An engine decides where and how rows are kept and computed. The same candidates
    give the same statistics whatever the threads, the memory or the workers.
    """

    def evaluate(self, thetas: NDArray[np.floating]) -> Statistics:
        """Return the statistics of candidates (population, n)."""

    def losses(self, thetas: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the losses (population, o) of candidates (population, n)."""

    def begin(self, thetas: Any) -> Callable[[], NDArray[np.float64]]:
        """Start to evaluate candidates; what is returned waits for their losses.

        Other work may go on meanwhile where an engine has a device of its own.
        """

    def scores(self, thetas: NDArray[np.floating]) -> NDArray:
        """Return the logits (population, rows, K) of candidates (population, n)."""

    def with_losses(self, losses: Any) -> Self:
        """Return an engine on the same rows for other losses."""

    def take(self, rows: NDArray[np.integer]) -> Self:
        """Return an engine on some of the rows alone."""
