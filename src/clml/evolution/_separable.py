"""CMA-ES with a diagonal covariance matrix."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ._constants import Constants
from ._validation import read_array
from .base import BaseCMA

__all__ = ["SeparableCMA"]


class SeparableCMA(BaseCMA[NDArray[np.float64]]):
    """CMA-ES that learns one variance per coordinate.

    The matrix is diagonal, so an epoch costs O(n·population). Fewer numbers to learn
    allow rates (n + 2)/3 times those of the full matrix.

    Parameters
    ----------
    mean : array-like of shape (n_parameters,)
        Where to start.
    sigma : float
        Initial step size: the standard deviation of every coordinate.
    population_size : int, default=None
        Candidates per epoch, at least 2; None for 4 + ⌊3 ln n⌋.
    seed : int or numpy.random.SeedSequence, default=None
        Seed of the strategy's own generator. None takes one from the system.
    device : str, default=None
        Where populations are drawn and live, as PyTorch calls it: "cuda", "cuda:1".
        None is the host's memory. A seed gives other numbers on a device.

    Attributes
    ----------
    mean : ndarray of shape (n_parameters,)
        Mean of the search distribution.
    sigma : float
        Step size.
    population_size, n_parameters, epoch : int
        Candidates per epoch, their coordinates, and `tell` calls done.

    References
    ----------
    R. Ros and N. Hansen, A Simple Modification in CMA-ES Achieving Linear Time and
    Space Complexity, PPSN 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.evolution import SeparableCMA, rank_by_fitness
    >>> scales = np.array([1.0, 1e3, 1e6])
    >>> strategy = SeparableCMA(np.ones(3), sigma=0.5, seed=0)
    >>> for _ in range(300):
    ...     X = strategy.ask()
    ...     strategy.tell(rank_by_fitness(X**2 @ scales))
    >>> bool(np.abs(strategy.mean).max() < 1e-6)
    True
    """

    kind: ClassVar[str] = "separable_cma"

    def covariance(self) -> NDArray[np.float64]:
        """Return the diagonal matrix C (without sigma) as a dense array.

        Returns
        -------
        ndarray of shape (n_parameters, n_parameters)
            For small problems: it needs n² numbers.
        """
        return np.diag(self._state.covariance)

    def _make_constants(self, n: int, population_size: int) -> Constants:
        full = super()._make_constants(n, population_size)
        c_1 = min(1.0, full.c_1 * (n + 2) / 3)
        return replace(full, c_1=c_1, c_mu=min(1 - c_1, full.c_mu * (n + 2) / 3))

    def _initial_covariance(self, n: int) -> NDArray[np.float64]:
        return np.ones(n)

    def _sample(
        self, covariance: NDArray[np.float64], normal: Any, generator: Any
    ) -> Any:
        return normal * self._place.put(np.sqrt(covariance))

    def _whiten(
        self, covariance: NDArray[np.float64], step: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], None]:
        return step / np.sqrt(covariance), None

    def _update_covariance(
        self,
        covariance: NDArray[np.float64],
        path_c: NDArray[np.float64],
        parents: Any,
        h_sigma: bool,
        epoch: int,
        learnt: None,
    ) -> NDArray[np.float64]:
        constants, place = self._constants, self._place
        squares = place.get(place.put(constants.weights) @ parents**2)
        updated = (  # the diagonal of (eq. 47)
            self._decay(h_sigma) * covariance
            + constants.c_1 * path_c**2
            + constants.c_mu * squares
        )
        # A coordinate without any effect may shrink until it underflows; it must
        # stay divisible.
        return np.maximum(updated, np.finfo(float).tiny)

    def _covariance_to_dict(self, covariance: NDArray[np.float64]) -> dict[str, Any]:
        return {"variances": covariance.copy()}

    def _covariance_from_dict(
        self, state: Mapping[str, Any], n: int
    ) -> NDArray[np.float64]:
        variances = read_array(state, "variances", (n,))
        if (variances <= 0).any():
            raise ValueError("The state is damaged: a variance is not positive.")
        return variances
