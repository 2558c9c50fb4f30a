"""CMA-ES with a dense covariance matrix."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ._place import ArrayBackend
from ._validation import read_array, read_integer
from .base import BaseCMA

__all__ = ["FullCMA"]

_MAX_PARAMETERS = 5_000


@dataclass(frozen=True)
class _DenseCovariance:
    """C, and the decomposition C = B·diag(D²)·Bᵀ of it or of a recent one."""

    matrix: NDArray[np.float64]  # (n, n)
    vectors: NDArray[np.float64]  # (n, n), B
    deviations: NDArray[np.float64]  # (n,), D
    decomposed: int  # the epoch of the decomposition


def _decompose(matrix: NDArray[np.float64], epoch: int) -> _DenseCovariance:
    eigenvalues, vectors = np.linalg.eigh(matrix)
    # Rounding may make an eigenvalue negative once the condition number nears 1e16.
    floor = np.finfo(float).eps * eigenvalues[-1]
    return _DenseCovariance(
        matrix=matrix,
        vectors=np.ascontiguousarray(vectors),
        deviations=np.sqrt(np.maximum(eigenvalues, floor)),
        decomposed=epoch,
    )


class FullCMA(BaseCMA[_DenseCovariance]):
    """CMA-ES with the rank-one and the rank-mu update of a dense matrix.

    Positive recombination weights only. The matrix is decomposed every few epochs, as
    often as its rate of change asks for, which makes an epoch O(n²·population).

    Parameters
    ----------
    mean : array-like of shape (n_parameters,)
        Where to start, at most 5,000 parameters.
    sigma : float
        Initial step size: the standard deviation of every coordinate.
    population_size : int, default=None
        Candidates per epoch, at least 2; None for 4 + ⌊3 ln n⌋.
    seed : int or numpy.random.SeedSequence, default=None
        Seed of the strategy's own generator. None takes one from the system.

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
    RankOneCMA : For any number of parameters.

    References
    ----------
    N. Hansen, The CMA Evolution Strategy: A Tutorial, arXiv:1604.00772.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.evolution import FullCMA, rank_by_fitness
    >>> strategy = FullCMA(np.zeros(4), sigma=0.5, seed=0)
    >>> for _ in range(300):
    ...     X = strategy.ask()
    ...     valley = 100 * (X[:, 1:] - X[:, :-1] ** 2) ** 2 + (1 - X[:, :-1]) ** 2
    ...     strategy.tell(rank_by_fitness(valley.sum(axis=1)))
    >>> bool(np.allclose(strategy.mean, 1.0))
    True
    """

    kind: ClassVar[str] = "full_cma"

    def covariance(self) -> NDArray[np.float64]:
        """Return the matrix C (without sigma).

        Returns
        -------
        ndarray of shape (n_parameters, n_parameters)
            The current matrix; samples may still come from a slightly older one.
        """
        return self._state.covariance.matrix.copy()

    def _check_dimension(self, n: int) -> None:
        if n > _MAX_PARAMETERS:
            # The matrix and its eigenvectors, old and new ones during an update.
            gigabytes = 4 * 8 * n**2 / 1e9
            raise ValueError(
                f"Expected at most {_MAX_PARAMETERS} parameters. Got a mean with {n}, "
                f"whose dense matrices would need about {gigabytes:.1f} GB: use "
                "RankOneCMA."
            )

    def _check_place(self, device: str | None) -> ArrayBackend:
        if device is not None:
            raise ValueError(
                f"FullCMA keeps its matrices on the host. Got device={device!r}: use "
                "RankOneCMA, SeparableCMA or RankGradient there."
            )
        return super()._check_place(device)

    def _initial_covariance(self, n: int) -> _DenseCovariance:
        return _DenseCovariance(np.eye(n), np.eye(n), np.ones(n), 0)

    def _sample(
        self, covariance: _DenseCovariance, normal: Any, generator: Any
    ) -> NDArray[np.float64]:
        return (normal * covariance.deviations) @ covariance.vectors.T  # (eq. 39)

    def _whiten(
        self, covariance: _DenseCovariance, step: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], None]:
        vectors = covariance.vectors
        return vectors @ ((step @ vectors) / covariance.deviations), None

    def _update_covariance(
        self,
        covariance: _DenseCovariance,
        path_c: NDArray[np.float64],
        parents: NDArray[np.float64],
        h_sigma: bool,
        epoch: int,
        learnt: None,
    ) -> _DenseCovariance:
        constants = self._constants
        weighted = np.sqrt(constants.weights)[:, None] * parents
        matrix = (  # (eq. 47)
            self._decay(h_sigma) * covariance.matrix
            + constants.c_1 * np.outer(path_c, path_c)
            + constants.c_mu * (weighted.T @ weighted)
        )
        # Decompose only when the matrix has changed noticeably (section B.2).
        gap = 1 / ((constants.c_1 + constants.c_mu) * constants.n * 10)
        if epoch - covariance.decomposed > gap:
            return _decompose(matrix, epoch)
        return replace(covariance, matrix=matrix)

    def _covariance_to_dict(self, covariance: _DenseCovariance) -> dict[str, Any]:
        return {
            "matrix": covariance.matrix.copy(),
            "vectors": covariance.vectors.copy(),
            "deviations": covariance.deviations.copy(),
            "decomposed": covariance.decomposed,
        }

    def _covariance_from_dict(
        self, state: Mapping[str, Any], n: int
    ) -> _DenseCovariance:
        deviations = read_array(state, "deviations", (n,))
        if (deviations <= 0).any():
            raise ValueError("The state is damaged: a deviation is not positive.")
        return _DenseCovariance(
            matrix=read_array(state, "matrix", (n, n)),
            vectors=read_array(state, "vectors", (n, n)),
            deviations=deviations,
            decomposed=read_integer(state, "decomposed"),
        )
