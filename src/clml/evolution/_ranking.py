"""From fitness values to the order `tell` takes."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["rank_by_fitness"]


def rank_by_fitness(values: ArrayLike) -> NDArray[np.intp]:
    """Order candidates by fitness, smallest first.

    Parameters
    ----------
    values : array-like of shape (population,)
        One number per candidate, smaller is better. NaN counts as the worst value,
        behind infinity.

    Returns
    -------
    ndarray of shape (population,)
        Indices of the candidates, best first. Equal values (and NaNs) keep the order
        of their indices.

    Examples
    --------
    >>> from clml.evolution import rank_by_fitness
    >>> rank_by_fitness([3.0, 1.0, 2.0])
    array([1, 2, 0])

    A failed evaluation is the worst one, and ties keep their order:

    >>> rank_by_fitness([float("nan"), 1.0, float("inf"), 1.0])
    array([1, 3, 2, 0])
    """
    fitness = np.asarray(values)
    if fitness.ndim != 1 or fitness.dtype.kind not in "biuf":
        raise ValueError(
            "Expected values to be one real number per candidate, shape (population,). "
            f"Got an array of shape {fitness.shape} and type {fitness.dtype}."
        )
    # NumPy's sort order already places NaN behind +inf.
    return np.argsort(fitness, kind="stable")
