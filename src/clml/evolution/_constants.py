"""Strategy constants: the defaults of Hansen's tutorial.

References
----------
N. Hansen, The CMA Evolution Strategy: A Tutorial, arXiv:1604.00772. Equation numbers
in this package are those of its second version.
"""

import math
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

__all__ = ["Constants", "default_population_size"]


def default_population_size(n_parameters: int) -> int:
    """Return the tutorial's population size, 4 + ⌊3 ln n⌋.

    Parameters
    ----------
    n_parameters : int
        Number of coordinates of a candidate, at least 1.

    Returns
    -------
    int
        Number of candidates per epoch.

    Examples
    --------
    >>> from clml.evolution import default_population_size
    >>> default_population_size(10), default_population_size(24_707)
    (10, 34)
    """
    if not isinstance(n_parameters, Integral) or n_parameters < 1:
        raise ValueError(
            f"Expected n_parameters to be a positive integer. Got {n_parameters!r}."
        )
    return 4 + math.floor(3 * math.log(n_parameters))  # (eq. 48)


@dataclass(frozen=True)
class Constants:
    """Everything that depends only on the dimension and the population size.

    ``c_1`` and ``c_mu`` are the rates for a full covariance matrix; a strategy that
    learns a smaller model replaces them.
    """

    n: int
    population_size: int
    weights: NDArray[np.float64]  # (mu,), positive, sum 1
    mu_eff: float
    c_sigma: float
    d_sigma: float
    c_c: float
    c_1: float
    c_mu: float
    chi_n: float

    @classmethod
    def default(cls, n: int, population_size: int) -> "Constants":
        """Compute the tutorial's Table 1, positive weights only."""
        mu = population_size // 2
        weights = math.log((population_size + 1) / 2) - np.log(np.arange(1, mu + 1))
        weights /= weights.sum()  # (eqs. 49, 53)
        mu_eff = float(1 / np.sum(weights**2))
        c_sigma = (mu_eff + 2) / (n + mu_eff + 5)  # (eq. 55)
        c_1 = 2 / ((n + 1.3) ** 2 + mu_eff)  # (eq. 57)
        return cls(
            n=n,
            population_size=population_size,
            weights=weights,
            mu_eff=mu_eff,
            c_sigma=c_sigma,
            d_sigma=1 + 2 * max(0, math.sqrt((mu_eff - 1) / (n + 1)) - 1) + c_sigma,
            c_c=(4 + mu_eff / n) / (n + 4 + 2 * mu_eff / n),  # (eq. 56)
            c_1=c_1,
            c_mu=min(  # (eq. 58)
                1 - c_1,
                2 * (1 / 4 + mu_eff + 1 / mu_eff - 2) / ((n + 2) ** 2 + mu_eff),
            ),
            chi_n=math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2)),
        )
