"""What a caller may rely on, whichever strategy it was given."""

from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Strategy"]


@runtime_checkable
class Strategy(Protocol):
    """An ask/tell strategy whose state is a value.

    Every epoch is one ``ask`` and one ``tell``. Only the order of the candidates
    matters, so any fitness will do, also one that compares candidates with each
    other.

    Examples
    --------
    >>> from clml.evolution import RankOneCMA, Strategy
    >>> isinstance(RankOneCMA([0.0, 0.0], 1.0), Strategy)
    True
    """

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean of the search distribution, shape (n_parameters,)."""
        ...

    @property
    def sigma(self) -> float:
        """Step size."""
        ...

    @property
    def population_size(self) -> int:
        """Number of candidates per epoch."""
        ...

    @property
    def n_parameters(self) -> int:
        """Number of coordinates of a candidate."""
        ...

    @property
    def epoch(self) -> int:
        """Number of `tell` calls done."""
        ...

    def ask(self) -> NDArray[np.float32] | NDArray[np.float64]:
        """Return the population, shape (population_size, n_parameters)."""
        ...

    def tell(self, order: ArrayLike) -> None:
        """Take the indices of the population, best first."""
        ...

    def state(self) -> dict[str, Any]:
        """Return the state: arrays, numbers, strings and nested dicts only."""
        ...

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Continue from what `state` returned."""
        ...
