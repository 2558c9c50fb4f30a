"""Ranks of methods over datasets, and how far apart they must be to matter.

Tables throughout are (datasets, methods) of losses: smaller is better, and the best
method of a dataset has rank 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def check_alpha(alpha: float) -> float:
    """Return a level of significance, refused unless between 0 and 1."""
    if isinstance(alpha, bool) or not isinstance(alpha, int | float | np.number):
        raise TypeError(f"alpha must be a number between 0 and 1, got {alpha!r}.")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha!r}.")
    return float(alpha)


def check_table(table: ArrayLike) -> FloatArray:
    """Return a table of losses as float64, refused if it has gaps or is too small.

    Parameters
    ----------
    table : array-like of shape (n_datasets, n_methods)
        At least one dataset and two methods.
    """
    try:
        losses = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            "table must hold numbers, one row for each dataset and one column for "
            f"each method, got {type(table).__name__}: {error}"
        ) from error
    if losses.ndim != 2 or losses.shape[0] < 1 or losses.shape[1] < 2:
        raise ValueError(
            "table must have shape (n_datasets, n_methods) with at least 1 dataset "
            f"and 2 methods, got shape {losses.shape}."
        )
    gaps = np.flatnonzero(np.isnan(losses).any(axis=1))
    if len(gaps):
        raise ValueError(
            "table must hold a loss for every dataset and method, got NaN in rows "
            f"{gaps.tolist()}. To leave these datasets out: "
            "table[~np.isnan(table).any(axis=1)]"
        )
    return losses


def check_control(control: int, n_methods: int) -> int:
    """Return the column of the control; negative ones count from the end."""
    if isinstance(control, bool) or not isinstance(control, int | np.integer):
        raise TypeError(
            f"control must be the number of a column of table, got {control!r}."
        )
    if not -n_methods <= control < n_methods:
        raise ValueError(
            f"control must be the number of one of the {n_methods} columns of table, "
            f"got {control}."
        )
    return int(control) % n_methods


def mean_ranks(table: ArrayLike) -> FloatArray:
    """Return each method's rank, the mean over datasets.

    Parameters
    ----------
    table : array-like of shape (n_datasets, n_methods)
        Losses without gaps. Methods of equal loss share the mean of their ranks.

    Returns
    -------
    float64 array of shape (n_methods,)

    Examples
    --------
    >>> from clml.experiments import mean_ranks
    >>> mean_ranks([[0.1, 0.2, 0.3], [0.5, 0.4, 0.5]])
    array([1.75, 1.5 , 2.75])
    """
    ranks: FloatArray = stats.rankdata(check_table(table), axis=1).mean(axis=0)
    return ranks


def _rank_deviation(n_methods: int, n_datasets: int) -> float:
    """Return the deviation of a difference of two mean ranks of equal methods."""
    for name, value, least in (
        ("n_methods", n_methods, 2),
        ("n_datasets", n_datasets, 1),
    ):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}.")
    return float(np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets)))


def nemenyi_difference(n_methods: int, n_datasets: int, alpha: float = 0.05) -> float:
    """Return how far two of all mean ranks must be apart, whichever two.

    Parameters
    ----------
    n_methods, n_datasets : int
    alpha : float, default=0.05
        How often any difference at all is found where there is none.

    Returns
    -------
    float

    Examples
    --------
    >>> from clml.experiments import nemenyi_difference
    >>> round(nemenyi_difference(4, 14), 2)
    1.25
    """
    deviation = _rank_deviation(n_methods, n_datasets)
    q = stats.studentized_range.ppf(1 - check_alpha(alpha), n_methods, np.inf)
    return float(q / np.sqrt(2) * deviation)


def bonferroni_dunn_difference(
    n_methods: int, n_datasets: int, alpha: float = 0.05
) -> float:
    """Return how far a mean rank must be from that of one method named beforehand.

    Parameters
    ----------
    n_methods, n_datasets : int
        The control is one of the methods.
    alpha : float, default=0.05
        How often any difference at all is found where there is none.

    Returns
    -------
    float

    Examples
    --------
    The paper's comparison of seven methods on nine datasets, printed as 2.686: that
    comes of a quantile rounded to 2.638 in the textbooks' table.

    >>> from clml.experiments import bonferroni_dunn_difference
    >>> round(bonferroni_dunn_difference(7, 9), 4)
    2.6867
    """
    deviation = _rank_deviation(n_methods, n_datasets)
    z = stats.norm.ppf(1 - check_alpha(alpha) / (2 * (n_methods - 1)))
    return float(z * deviation)


def rank_groups(mean_ranks: ArrayLike, difference: float) -> list[tuple[int, ...]]:
    """Return the largest groups of methods whose mean ranks are not far apart.

    Parameters
    ----------
    mean_ranks : array-like of shape (n_methods,)
    difference : float
        The critical difference: ranks at least that far apart are different.

    Returns
    -------
    list of tuples of int
        Of each group of two or more its methods, best first. Groups may overlap;
        none is a part of another.

    Examples
    --------
    >>> from clml.experiments import rank_groups
    >>> rank_groups([1.0, 4.1, 2.0, 2.7], difference=1.5)
    [(0, 2), (2, 3), (3, 1)]
    """
    ranks = np.asarray(mean_ranks, dtype=np.float64)
    if ranks.ndim != 1 or np.isnan(ranks).any():
        raise ValueError(
            "mean_ranks must be a list of numbers without NaN, got shape "
            f"{ranks.shape}."
        )
    order = np.argsort(ranks, kind="stable")
    groups: list[tuple[int, ...]] = []
    reached = 0  # how many of the order earlier groups have covered
    for first in range(len(order)):
        near = ranks[order] - ranks[order[first]] < difference
        last = int(np.flatnonzero(near).max(initial=first))
        if last > first and last >= reached:
            groups.append(tuple(int(i) for i in order[first : last + 1]))
            reached = last + 1
    return groups
