"""Which methods differ: from each other, or from one named beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ._effect import paired_differences, rank_biserial
from ._ranks import (
    BoolArray,
    FloatArray,
    bonferroni_dunn_difference,
    check_alpha,
    check_control,
    check_table,
    mean_ranks,
    nemenyi_difference,
    rank_groups,
)


@dataclass(frozen=True, eq=False)
class BonferroniDunnTest:
    """Mean ranks compared with that of a control.

    Attributes
    ----------
    critical_difference : float
        How far a mean rank must be from the control's.
    mean_ranks : float64 array of shape (n_methods,)
    significant : bool array of shape (n_methods,)
        Which methods differ from the control, in either direction; the control does
        not.
    control : int
        Its column.
    alpha : float
    """

    critical_difference: float
    mean_ranks: FloatArray
    significant: BoolArray
    control: int
    alpha: float


@dataclass(frozen=True, eq=False)
class NemenyiTest:
    """Mean ranks compared with each other.

    Attributes
    ----------
    critical_difference : float
        How far two mean ranks must be apart.
    mean_ranks : float64 array of shape (n_methods,)
    significant : bool array of shape (n_methods, n_methods)
        Which pairs differ.
    pvalues : float64 array of shape (n_methods, n_methods)
        Corrected for the number of methods; ones on the diagonal.
    groups : list of tuples of int
        The largest groups of methods that do not differ, best first.
    alpha : float
    """

    critical_difference: float
    mean_ranks: FloatArray
    significant: BoolArray
    pvalues: FloatArray
    groups: list[tuple[int, ...]]
    alpha: float


@dataclass(frozen=True, eq=False)
class WilcoxonTests:
    """Signed-rank tests of pairs of methods, corrected for their number.

    Attributes
    ----------
    pairs : int64 array of shape (n_pairs, 2)
        The columns compared; the control, if there is one, first.
    statistic : float64 array of shape (n_pairs,)
        The smaller sum of signed ranks.
    pvalues, corrected : float64 arrays of shape (n_pairs,)
        Two-sided, as they are and after Holm's correction.
    effect : float64 array of shape (n_pairs,)
        Matched-pairs rank-biserial correlation; below 0 the first of the pair has the
        smaller losses.
    wins : int64 array of shape (n_pairs, 3)
        On how many datasets the first of the pair is better, equal, worse.
    significant : bool array of shape (n_pairs,)
    alpha : float
    """

    pairs: NDArray[np.int64]
    statistic: FloatArray
    pvalues: FloatArray
    corrected: FloatArray
    effect: FloatArray
    wins: NDArray[np.int64]
    significant: BoolArray
    alpha: float


def bonferroni_dunn(
    table: ArrayLike, control: int = 0, alpha: float = 0.05
) -> BonferroniDunnTest:
    """Compare the mean rank of every method with that of a control.

    Parameters
    ----------
    table : array-like of shape (n_datasets, n_methods)
        Losses: smaller is better. No gaps.
    control : int, default=0
        Column of the method that was named beforehand.
    alpha : float, default=0.05
        How often any difference at all is found where there is none.

    Returns
    -------
    BonferroniDunnTest

    Examples
    --------
    >>> from clml.experiments import PAPER_RESULTS, bonferroni_dunn
    >>> test = bonferroni_dunn(PAPER_RESULTS.hamming, control=-1)
    >>> round(test.critical_difference, 3)
    2.687
    >>> [m for m, s in zip(PAPER_RESULTS.methods, test.significant) if s]
    ['GNB-BR', 'C2AE']
    """
    losses = check_table(table)
    n_datasets, n_methods = losses.shape
    control = check_control(control, n_methods)
    ranks = mean_ranks(losses)
    difference = bonferroni_dunn_difference(n_methods, n_datasets, alpha)
    significant = np.abs(ranks - ranks[control]) >= difference
    return BonferroniDunnTest(difference, ranks, significant, control, float(alpha))


def nemenyi(table: ArrayLike, alpha: float = 0.05) -> NemenyiTest:
    """Compare the mean ranks of all pairs of methods.

    Parameters
    ----------
    table : array-like of shape (n_datasets, n_methods)
        Losses: smaller is better. No gaps.
    alpha : float, default=0.05
        How often any difference at all is found where there is none.

    Returns
    -------
    NemenyiTest

    Examples
    --------
    >>> from clml.experiments import nemenyi
    >>> test = nemenyi([[0.1, 0.2, 0.3]] * 6)
    >>> round(test.critical_difference, 3), test.groups
    (1.353, [(0, 1), (1, 2)])
    >>> bool(test.significant[0, 2])
    True
    """
    losses = check_table(table)
    n_datasets, k = losses.shape
    ranks = mean_ranks(losses)
    difference = nemenyi_difference(k, n_datasets, alpha)
    apart = np.abs(ranks[:, None] - ranks)
    deviation = np.sqrt(k * (k + 1) / (6 * n_datasets))
    pvalues = stats.studentized_range.sf(apart / deviation * np.sqrt(2), k, np.inf)
    # Numerical integration: a p-value of 1 may come out as 1 + 1e-16.
    pvalues = np.clip(pvalues, 0.0, 1.0)
    np.fill_diagonal(pvalues, 1.0)
    return NemenyiTest(
        critical_difference=difference,
        mean_ranks=ranks,
        significant=apart >= difference,
        pvalues=pvalues,
        groups=rank_groups(ranks, difference),
        alpha=float(alpha),
    )


def holm(pvalues: ArrayLike) -> FloatArray:
    """Return p-values corrected for their number, by Holm's step-down method.

    Parameters
    ----------
    pvalues : array-like of shape (n_tests,)

    Returns
    -------
    float64 array of shape (n_tests,)

    Examples
    --------
    >>> from clml.experiments import holm
    >>> holm([0.04, 0.01, 0.03])
    array([0.06, 0.03, 0.06])
    """
    p = np.asarray(pvalues, dtype=np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"pvalues must be a list of numbers in [0, 1], got {p}.")
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(stepped, 1)
    return corrected


def _signed_rank(differences: FloatArray) -> tuple[float, float]:
    """Return the statistic and p-value of a two-sided signed-rank test."""
    if not differences.any():
        return 0.0, 1.0
    # Without the ties first: SciPy chooses its method by the number of rows it gets,
    # and an exact distribution must be that of the ranks which are left.
    outcome = stats.wilcoxon(differences[differences != 0], zero_method="wilcox")
    return float(outcome.statistic), float(outcome.pvalue)


def wilcoxon_holm(
    table: ArrayLike, control: int | None = None, alpha: float = 0.05
) -> WilcoxonTests:
    """Compare pairs of methods by signed-rank tests, corrected by Holm's method.

    Parameters
    ----------
    table : array-like of shape (n_datasets, n_methods)
        Losses: smaller is better. Finite, no gaps.
    control : int or None, default=None
        Column of the method to compare all others with; None compares all pairs.
    alpha : float, default=0.05
        How often any difference at all is found where there is none.

    Returns
    -------
    WilcoxonTests

    Notes
    -----
    Datasets where the two are equal are left out. Two-sided p-values of n datasets
    are never below 2 / 2^n: with 9 datasets and 7 methods the smallest corrected
    value of all pairs is 21 · 2 / 512 = 0.08, so that nothing can be significant; the
    six comparisons with a control can.

    Examples
    --------
    >>> from clml.experiments import wilcoxon_holm
    >>> table = [[0.1 * i, 0.1 * i + 0.01 * i, 0.5] for i in range(1, 11)]
    >>> tests = wilcoxon_holm(table, control=0)
    >>> tests.pairs.tolist(), tests.wins.tolist()
    ([[0, 1], [0, 2]], [[10, 0, 0], [4, 1, 5]])
    >>> tests.significant.tolist(), tests.effect.round(2).tolist()
    ([True, False], [-1.0, 0.2])
    """
    losses = check_table(table)
    if not np.isfinite(losses).all():
        raise ValueError("table must hold finite losses, got infinite ones.")
    alpha = check_alpha(alpha)
    n_methods = losses.shape[1]
    if control is None:
        pairs = list(combinations(range(n_methods), 2))
    else:
        control = check_control(control, n_methods)
        pairs = [(control, other) for other in range(n_methods) if other != control]
    columns = [(losses[:, a], losses[:, b]) for a, b in pairs]
    differences = [paired_differences(a, b) for a, b in columns]
    tests = np.array([_signed_rank(d) for d in differences])
    corrected = holm(tests[:, 1])
    return WilcoxonTests(
        pairs=np.array(pairs, dtype=np.int64),
        statistic=tests[:, 0],
        pvalues=tests[:, 1],
        corrected=corrected,
        effect=np.array([rank_biserial(a, b) for a, b in columns]),
        wins=np.array(
            [[(d < 0).sum(), (d == 0).sum(), (d > 0).sum()] for d in differences],
            dtype=np.int64,
        ),
        significant=corrected < alpha,
        alpha=alpha,
    )
