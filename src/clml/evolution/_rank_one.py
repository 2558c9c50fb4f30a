"""CMA-ES with the rank-one update in factored form."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ._constants import Constants
from ._factors import FactoredCovariance
from ._inverse_sqrt import inverse_sqrt_product
from .base import BaseCMA

__all__ = ["RankOneCMA"]


class RankOneCMA(BaseCMA[FactoredCovariance]):
    """CMA-ES with the rank-one update only, without a covariance matrix in memory.

    After t epochs the covariance matrix is C = a·I + Σ_s w_s·p_s·p_sᵀ with one path
    p_s per epoch. This class keeps the paths instead of the matrix, exactly: sampling
    is a matrix product with them, and step-size adaptation takes C^(-1/2) from a
    Krylov space. Memory and time per epoch are O(n·t), which makes dimensions of
    tens of thousands ordinary; from t = 2n on the paths are folded into n, so small
    problems run for ever.

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

    See Also
    --------
    FullCMA : Adds the rank-mu update; for up to a few thousand parameters.
    SeparableCMA : A diagonal matrix only.

    References
    ----------
    N. Hansen, The CMA Evolution Strategy: A Tutorial, arXiv:1604.00772.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.evolution import RankOneCMA, rank_by_fitness
    >>> strategy = RankOneCMA(np.ones(5), sigma=0.5, seed=0)
    >>> for _ in range(200):
    ...     X = strategy.ask()
    ...     strategy.tell(rank_by_fitness(np.sum(X**2, axis=1)))
    >>> bool(np.abs(strategy.mean).max() < 1e-6)
    True

    A run continued from its state is the run itself:

    >>> copy = RankOneCMA.from_state(strategy.state())
    >>> bool(np.array_equal(copy.ask(), strategy.ask()))
    True
    """

    kind: ClassVar[str] = "rank_one_cma"

    def covariance(self) -> NDArray[np.float64]:
        """Return the matrix C (without sigma) as a dense array.

        Returns
        -------
        ndarray of shape (n_parameters, n_parameters)
            For small problems: it needs n² numbers.
        """
        return self._state.covariance.dense()

    def _make_constants(self, n: int, population_size: int) -> Constants:
        return replace(super()._make_constants(n, population_size), c_mu=0.0)

    def _initial_covariance(self, n: int) -> FactoredCovariance:
        return FactoredCovariance.identity(n, self._place)

    def _sample(
        self, covariance: FactoredCovariance, normal: Any, generator: Any
    ) -> Any:
        return covariance.sample(normal, generator)

    def _whiten(
        self, covariance: FactoredCovariance, step: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        products = None if covariance.gram is None else covariance.project(step)
        return inverse_sqrt_product(covariance, step, products), products

    def _update_covariance(
        self,
        covariance: FactoredCovariance,
        path_c: NDArray[np.float64],
        parents: Any,
        h_sigma: bool,
        epoch: int,
        learnt: NDArray[np.float64] | None,
    ) -> FactoredCovariance:
        products = None
        if learnt is not None and covariance.n_factors:
            # The path is a sum of the step and of the last path, whose products with
            # all paths are known: one pass over them less.
            old, new = self._path_weights(h_sigma)
            products = old * covariance.last_products + new * learnt
        decay, weight = self._decay(h_sigma), self._constants.c_1
        return covariance.updated(decay, weight, path_c, products)

    def _covariance_to_dict(self, covariance: FactoredCovariance) -> dict[str, Any]:
        return covariance.to_dict()

    def _covariance_from_dict(
        self, state: Mapping[str, Any], n: int
    ) -> FactoredCovariance:
        return FactoredCovariance.from_dict(state, n, self._place)
