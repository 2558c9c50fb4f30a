"""Pareto dominance: pairs, fronts, and the layers beneath the front."""

import moocore
import numpy as np
import numpy.typing as npt

from ._inputs import (
    BoolArray,
    FloatArray,
    IntArray,
    check_losses,
    check_vector,
)


def has_nan(losses: FloatArray) -> BoolArray:
    """Return which rows of `losses` (m, o) hold a NaN."""
    return np.any(np.isnan(losses), axis=1)


def _finite(losses: FloatArray) -> FloatArray:
    """Return losses of the same dominance without infinities (NaN excluded).

    From three columns on, moocore 0.3.2 finds wrong fronts among infinite losses and
    may crash on negative ones. Dominance depends on the order within each column
    alone, so that ranks can stand in.
    """
    if np.isfinite(losses).all():
        return losses
    ranks = [np.unique(column, return_inverse=True)[1] for column in losses.T]
    return np.column_stack(ranks).astype(np.float64)


def maximal(references: FloatArray) -> FloatArray:
    """Return the rows (r, o) that lie below no other row, each once.

    The box below any other row is part of one of these boxes.
    """
    if len(references) == 1:
        return references
    return references[moocore.is_nondominated(references, maximise=True)]


def dominates(a: npt.ArrayLike, b: npt.ArrayLike) -> bool:
    """Tell whether loss vector `a` dominates loss vector `b`.

    Parameters
    ----------
    a, b : array-like of shape (o,)
        Two loss vectors of the same length.

    Returns
    -------
    bool
        True if `a` is no worse than `b` everywhere and better somewhere. A vector
        with NaN neither dominates nor is dominated.

    Examples
    --------
    >>> from clml.lebesgue import dominates
    >>> dominates([0.1, 0.5], [0.2, 0.5])
    True

    Neither of two equal or of two incomparable vectors dominates the other:

    >>> dominates([0.1, 0.5], [0.1, 0.5]), dominates([0.1, 0.5], [0.2, 0.4])
    (False, False)
    """
    left, right = check_vector(a, "a"), check_vector(b, "b")
    if left.shape != right.shape:
        raise ValueError(
            f"b must be as long as a, which has length {left.size}. "
            f"Got length {right.size}."
        )
    return bool((left <= right).all() and (left < right).any())


def nondominated(L: npt.ArrayLike) -> BoolArray:
    """Find the members that no other member dominates.

    Parameters
    ----------
    L : array-like of shape (m, o)
        Loss vectors, one row per member.

    Returns
    -------
    ndarray of bool of shape (m,)
        True for every non-dominated member, all copies of a vector included. A row
        with NaN is never non-dominated and dominates nothing.

    Examples
    --------
    >>> from clml.lebesgue import nondominated
    >>> nondominated([[0.1, 0.5], [0.4, 0.2], [0.4, 0.6]])
    array([ True,  True, False])

    Copies stand or fall together; NaN is out:

    >>> nondominated([[0.1, 0.5], [0.1, 0.5], [float("nan"), 0.0]])
    array([ True,  True, False])
    """
    losses = check_losses(L)
    front = ~has_nan(losses)
    if front.any():
        front[front] = moocore.is_nondominated(_finite(losses[front]), keep_weakly=True)
    return front


def dominance_depth(L: npt.ArrayLike) -> IntArray:
    """Find how many layers of non-dominated members lie above each member.

    Parameters
    ----------
    L : array-like of shape (m, o)
        Loss vectors, one row per member.

    Returns
    -------
    ndarray of int64 of shape (m,)
        0 for the non-dominated members, 1 for those that are non-dominated once
        layer 0 is taken away, and so on. Copies share a layer. Rows with NaN share
        one last layer, beyond all others.

    Examples
    --------
    >>> from clml.lebesgue import dominance_depth
    >>> dominance_depth([[0.1, 0.5], [0.4, 0.2], [0.4, 0.6], [0.5, 0.6]])
    array([0, 0, 1, 2])
    >>> dominance_depth([[float("nan"), 0.0], [0.1, 0.5], [0.1, 0.5]])
    array([1, 0, 0])
    """
    losses = check_losses(L)
    ranked = ~has_nan(losses)
    depth = np.zeros(len(losses), dtype=np.int64)
    if ranked.any():
        depth[ranked] = moocore.pareto_rank(_finite(losses[ranked]))
        depth[~ranked] = depth[ranked].max() + 1
    return depth
