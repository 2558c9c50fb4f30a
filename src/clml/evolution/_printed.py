"""CMA-ES with the covariance update as the paper prints it."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ._factors import FactoredCovariance
from ._rank_one import RankOneCMA

__all__ = ["PrintedCMA"]


class PrintedCMA(RankOneCMA):
    """CMA-ES whose covariance learns from the last step alone, as the paper prints it.

    Appendix A.1 of the paper has C ← (1 − c)·C + c·s·sᵀ with s the weighted sum of the
    best candidates. `RankOneCMA` has the evolution path in the place of s, an average
    over epochs that is scaled to the size of what it is drawn from. Here s is one
    epoch's step, √μ_eff shorter than that, so that C shrinks.
    The rate c, for which the paper has no value, is that of `RankOneCMA`.

    In print s is the sum of the candidates themselves, with which the same formula's
    mean would double every epoch: it is read as the sum of their steps.

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

    See Also
    --------
    RankOneCMA : What the paper means, and what Hansen's tutorial has.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.evolution import PrintedCMA, rank_by_fitness
    >>> strategy = PrintedCMA(np.ones(5), sigma=0.5, seed=0)
    >>> for _ in range(200):
    ...     X = strategy.ask()
    ...     strategy.tell(rank_by_fitness(np.sum(X**2, axis=1)))
    >>> bool(np.abs(strategy.mean).max() < 1e-6)
    True
    """

    kind: ClassVar[str] = "printed_cma"

    def _update_covariance(
        self,
        covariance: FactoredCovariance,
        path_c: NDArray[np.float64],
        parents: Any,
        h_sigma: bool,
        epoch: int,
        learnt: NDArray[np.float64] | None,
    ) -> FactoredCovariance:
        place, rate = self._place, self._constants.c_1
        step = place.get(place.put(self._constants.weights) @ parents)
        products = learnt if covariance.n_factors else None
        return covariance.updated(1 - rate, rate, step, products)
