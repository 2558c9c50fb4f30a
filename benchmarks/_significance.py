"""What repeated runs and several datasets say of a difference between methods.

Losses throughout: smaller is better, and the best method has rank 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats


class Difference(NamedTuple):
    """Mean of paired differences with the ends of its confidence interval."""

    mean: float
    low: float
    high: float


class Outcome(NamedTuple):
    """A statistic and how often chance alone gives one as large."""

    statistic: float
    pvalue: float


def paired_difference(
    ours: ArrayLike, theirs: ArrayLike, confidence: float = 0.95
) -> Difference:
    """Return the mean of ours − theirs over pairs, with its t-interval.

    Parameters
    ----------
    ours, theirs : array-like of shape (n_pairs,)
        Losses of two methods, in the same order of splits.
    confidence : float, default=0.95

    Returns
    -------
    Difference
        A single pair has no interval: its ends are NaN.

    Examples
    --------
    >>> from _significance import paired_difference
    >>> paired_difference([3.0, 5.0], [1.0, 3.0])
    Difference(mean=2.0, low=2.0, high=2.0)
    """
    a, b = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape or not len(a):
        raise ValueError(
            "ours and theirs must be two lists of the same length of at least 1, got "
            f"shapes {a.shape} and {b.shape}."
        )
    differences = a - b
    mean = float(differences.mean())
    if len(differences) == 1:
        return Difference(mean, np.nan, np.nan)
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    half = float(stats.t.ppf((1 + confidence) / 2, len(differences) - 1) * error)
    return Difference(mean, mean - half, mean + half)


def not_worse(difference: Difference, base_mean: float) -> bool:
    """Return whether a difference is compatible with one that does not matter.

    That is, whether its interval reaches below 1 % of the base's mean loss, or below
    0.002 where that is more. A single pair is judged by its difference itself.
    """
    lowest = difference.mean if np.isnan(difference.low) else difference.low
    return bool(lowest < max(0.01 * base_mean, 0.002))


def _complete(losses: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(losses, dtype=np.float64)
    if table.ndim != 2 or not table.size or np.isnan(table).any():
        raise ValueError(
            "losses must be a table (datasets, methods) without gaps, got shape "
            f"{table.shape} with {np.isnan(table).sum()} missing."
        )
    return table


def mean_ranks(losses: ArrayLike) -> NDArray[np.float64]:
    """Return each method's rank, the mean over datasets; equal losses share ranks.

    Parameters
    ----------
    losses : array-like of shape (n_datasets, n_methods)

    Returns
    -------
    float64 array of shape (n_methods,)
    """
    return stats.rankdata(_complete(losses), axis=1).mean(axis=0)


def friedman(losses: ArrayLike) -> Outcome:
    """Return Friedman's test that all methods have the same rank, ties corrected.

    Parameters
    ----------
    losses : array-like of shape (n_datasets, n_methods)
        Of at least three methods.
    """
    table = _complete(losses)
    if (table == table[:, :1]).all():  # the correction would divide by 0
        return Outcome(0.0, 1.0)
    statistic, pvalue = stats.friedmanchisquare(*table.T)
    return Outcome(float(statistic), float(pvalue))


def _rank_deviation(n_methods: int, n_datasets: int) -> float:
    """Return the deviation of a difference of two mean ranks of equal methods."""
    return float(np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets)))


def nemenyi_difference(n_methods: int, n_datasets: int, alpha: float = 0.05) -> float:
    """Return how far two of all mean ranks must be apart, whichever two."""
    q = stats.studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2)
    return float(q * _rank_deviation(n_methods, n_datasets))


def bonferroni_dunn_difference(
    n_methods: int, n_datasets: int, alpha: float = 0.05
) -> float:
    """Return how far a mean rank must be from that of one method named beforehand."""
    z = stats.norm.ppf(1 - alpha / (2 * (n_methods - 1)))
    return float(z * _rank_deviation(n_methods, n_datasets))


def rank_groups(ranks: ArrayLike, difference: float) -> list[tuple[float, float]]:
    """Return the first and last rank of each largest group within a difference.

    Examples
    --------
    >>> from _significance import rank_groups
    >>> rank_groups([1.0, 4.0, 2.0, 2.5], difference=1.5)
    [(1.0, 2.5), (2.5, 4.0)]
    """
    ordered = sorted(map(float, np.asarray(ranks)))
    groups: list[tuple[float, float]] = []
    for first in ordered:
        last = max(rank for rank in ordered if rank - first <= difference)
        # A group that ends where one before it ended is a part of that one.
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups


def signed_rank(ours: ArrayLike, theirs: ArrayLike, alternative: str) -> float:
    """Return the p-value of Wilcoxon's signed-rank test over datasets.

    Parameters
    ----------
    ours, theirs : array-like of shape (n_datasets,)
    alternative : {"two-sided", "less"}
        "less": against ours being smaller.
    """
    differences = np.subtract(ours, theirs)
    if not differences.any():
        return 1.0
    return float(stats.wilcoxon(differences, alternative=alternative).pvalue)
