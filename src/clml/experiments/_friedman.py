"""Friedman's test that all methods have the same rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from ._ranks import FloatArray, check_alpha, check_table


@dataclass(frozen=True, eq=False)
class FriedmanTest:
    """Outcome of Friedman's test.

    Attributes
    ----------
    statistic : float
        Friedman's chi-square, corrected for ties.
    pvalue : float
        How often methods that are all alike give one as large.
    critical_value : float
        The statistic from which on the difference is significant.
    mean_ranks : float64 array of shape (n_treatments,)
        Mean rank of each method (of each dataset, if transposed); 1 is best.
    df : int
        Degrees of freedom, one less than the number of treatments.
    alpha : float
        The level of significance.
    iman_davenport : float
        The less conservative statistic of Iman and Davenport; it follows an F
        distribution with ``df`` and ``df * (n_blocks - 1)`` degrees of freedom.
    iman_davenport_pvalue : float
        Its p-value.
    """

    statistic: float
    pvalue: float
    critical_value: float
    mean_ranks: FloatArray
    df: int
    alpha: float
    iman_davenport: float
    iman_davenport_pvalue: float

    @property
    def significant(self) -> bool:
        """Whether the methods differ at the level asked for."""
        return self.pvalue < self.alpha


def _chi_square(ranks: FloatArray) -> float:
    """Return Friedman's statistic of ranks (blocks, treatments), ties corrected."""
    n_blocks, k = ranks.shape
    between = n_blocks * ((ranks.mean(axis=0) - (k + 1) / 2) ** 2).sum()
    # The variance of the ranks as they are: without ties it is k (k + 1) / 12.
    within = ((ranks - (k + 1) / 2) ** 2).sum() / (n_blocks * (k - 1))
    # Every block one large tie: nothing speaks for a difference.
    return float(between / within) if within > 0 else 0.0


def _iman_davenport(statistic: float, n_blocks: int, df: int) -> tuple[float, float]:
    """Return the F statistic that belongs to a chi-square, and its p-value."""
    rest = n_blocks * df - statistic
    if rest <= 1e-9 * n_blocks * df:  # every block has the same ranks
        return np.inf, 0.0
    f = (n_blocks - 1) * statistic / rest
    return f, float(stats.f.sf(f, df, df * (n_blocks - 1)))


def friedman_test(
    table: ArrayLike, transposed: bool = False, alpha: float = 0.05
) -> FriedmanTest:
    """Test whether methods differ in rank over datasets.

    Parameters
    ----------
    table : array-like of shape (n_datasets, n_methods)
        Losses: smaller is better. At least two datasets and two methods, no gaps.
    transposed : bool, default=False
        Rank the datasets within each method instead: the reading that gives the
        values printed in the paper. It asks whether some datasets are harder than
        others, not whether methods differ.
    alpha : float, default=0.05
        Level of significance of ``critical_value``.

    Returns
    -------
    FriedmanTest

    Notes
    -----
    Equal losses share their mean rank and the statistic is divided by the usual
    correction, as in :func:`scipy.stats.friedmanchisquare`; the formula without it
    [1]_ is conservative where ties are many. The contributions of dominated methods
    are all 0: there the correction raises the statistic from 9.94 to 16.21. The
    p-value is that of the chi-square distribution, an approximation that is poor below
    about 10 datasets and 5 methods.

    References
    ----------
    .. [1] J. Demšar, "Statistical comparisons of classifiers over multiple data
       sets", Journal of Machine Learning Research 7, 2006.

    Examples
    --------
    >>> from clml.experiments import PAPER_RESULTS, friedman_test
    >>> test = friedman_test(PAPER_RESULTS.hamming)
    >>> round(test.statistic, 2), test.df, round(test.critical_value, 2)
    (30.65, 6, 12.59)

    With datasets as treatments, as the paper printed it (35.62):

    >>> round(friedman_test(PAPER_RESULTS.hamming, transposed=True).statistic, 2)
    35.69
    """
    losses = check_table(table)
    if not isinstance(transposed, bool | np.bool_):
        raise TypeError(f"transposed must be a bool, got {transposed!r}.")
    alpha = check_alpha(alpha)
    if len(losses) < 2:
        raise ValueError(f"table must have at least 2 datasets, got {len(losses)}.")
    if transposed:
        losses = losses.T
    ranks = stats.rankdata(losses, axis=1)
    n_blocks, k = ranks.shape
    statistic = _chi_square(ranks)
    f, f_pvalue = _iman_davenport(statistic, n_blocks, k - 1)
    return FriedmanTest(
        statistic=statistic,
        pvalue=float(stats.chi2.sf(statistic, k - 1)),
        critical_value=float(stats.chi2.ppf(1 - alpha, k - 1)),
        mean_ranks=ranks.mean(axis=0),
        df=k - 1,
        alpha=alpha,
        iman_davenport=f,
        iman_davenport_pvalue=f_pvalue,
    )
