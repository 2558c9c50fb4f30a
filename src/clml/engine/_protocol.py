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

    def drawn(self, share: float, seed: tuple[int, ...]) -> Self:
        """Return an engine on a random share of the rows."""

    @property
    def sample(self) -> Any:
        """An engine on some of the rows that can tell their scores.

        These are all where rows are in this process's memory.
        """
