"""How large a difference between two methods is, whatever its significance.

All three say how often a value of the first is above one of the second. For losses
the first method is the better one where that is less often than not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from .._support.names import match_names, row_names
from ._ranks import FloatArray


def _samples(
    first: ArrayLike, second: ArrayLike, paired: bool
) -> tuple[FloatArray, FloatArray]:
    a = np.asarray(first, dtype=np.float64)
    b = np.asarray(second, dtype=np.float64)
    if paired and len(a) == len(b):  # rows of series are pairs by their names
        order = match_names(row_names(first), row_names(second), "second", "first")
        b = b if order is None else b[order]
    for name, values in (("first", a), ("second", b)):
        if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
            raise ValueError(
                f"{name} must be a list of at least one finite number, got "
                f"{values.tolist()}."
            )
    if paired and len(a) != len(b):
        raise ValueError(
            "first and second must have the same length, one pair for each dataset; "
            f"got {len(a)} and {len(b)}."
        )
    return a, b


def paired_differences(first: ArrayLike, second: ArrayLike) -> FloatArray:
    """Return first − second, rounded to a part in 10¹² of the largest value.

    Ranks of differences depend on which of them are equal: 0.3 − 0.2 and 0.2 − 0.1
    are, except for the last digits of floating-point numbers.
    """
    a, b = _samples(first, second, paired=True)
    unit = 1e-12 * max(np.abs(a).max(), np.abs(b).max())
    if unit == 0:
        return np.zeros_like(a)
    differences: FloatArray = np.round((a - b) / unit) * unit
    return differences


def rank_biserial(first: ArrayLike, second: ArrayLike) -> float:
    """Return the matched-pairs rank-biserial correlation.

    The ranks of the absolute differences are summed apart for positive and for
    negative differences; the result is the difference of the two sums over their
    total. It is the effect size that belongs to Wilcoxon's signed-rank test.

    Parameters
    ----------
    first, second : array-like of shape (n_pairs,)

    Returns
    -------
    float
        Between −1 (the first is smaller in every pair) and 1 (larger in every pair).
        Equal pairs are left out; 0 if there are no others.

    Examples
    --------
    Differences −1, −2 and 3, whose ranks are 1, 2 and 3:

    >>> from clml.experiments import rank_biserial
    >>> rank_biserial([1.0, 1.0, 4.0], [2.0, 3.0, 1.0])
    0.0
    """
    differences = paired_differences(first, second)
    differences = differences[differences != 0]
    if not len(differences):
        return 0.0
    ranks = stats.rankdata(np.abs(differences))
    return float((ranks * np.sign(differences)).sum() / ranks.sum())


def cliffs_delta(first: ArrayLike, second: ArrayLike) -> float:
    """Return how much more often a value of the first is above one of the second.

    Parameters
    ----------
    first : array-like of shape (n,)
    second : array-like of shape (m,)
        Every value is compared with every value of `first`; nothing is paired.

    Returns
    -------
    float
        P(first > second) − P(first < second), between −1 and 1.

    Examples
    --------
    >>> from clml.experiments import cliffs_delta
    >>> cliffs_delta([1.0, 2.0], [2.0, 3.0])
    -0.75
    """
    a, b = _samples(first, second, paired=False)
    # Counting by sorted search needs no matrix of all comparisons.
    ordered = np.sort(b)
    below = np.searchsorted(ordered, a, side="left").sum()
    not_above = np.searchsorted(ordered, a, side="right").sum()
    return float((below + not_above - len(a) * len(b)) / (len(a) * len(b)))


def vargha_delaney(first: ArrayLike, second: ArrayLike) -> float:
    """Return how often a value of the first is above one of the second.

    Parameters
    ----------
    first : array-like of shape (n,)
    second : array-like of shape (m,)

    Returns
    -------
    float
        Vargha's and Delaney's A, P(first > second) + P(first = second) / 2: between 0
        and 1, one half where neither is larger.

    Examples
    --------
    >>> from clml.experiments import vargha_delaney
    >>> vargha_delaney([1.0, 2.0], [2.0, 3.0])
    0.125
    """
    return (cliffs_delta(first, second) + 1) / 2
