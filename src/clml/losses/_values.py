"""Losses of given scores."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.names import column_names, in_order
from ._loss_set import LossSet
from ._registry import get_losses
from ._targets import RowTargets


def loss_values(
    Y: ArrayLike,
    scores: ArrayLike,
    losses: Any = ("hamming", "lrap", "micro_f1"),
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.0,
) -> NDArray[np.float64]:
    """Losses of one score matrix or of a population of them.

    Parameters
    ----------
    Y : array-like or sparse matrix of shape (n, K)
        The true labels, 0 or 1. Where Y and scores are frames with names, their
        columns are matched by them.
    scores : array-like of shape (n, K) or (population, n, K)
        Logits, or any scores: a label is decided for when its score is above
        ``threshold``. A candidate with a NaN score has NaN losses.
    losses : sequence of str, Loss or callable, default=("hamming", "lrap", "micro_f1")
        See :func:`list_losses`.
    sample_weight : array-like of shape (n,), default=None
    threshold : float, default=0.0
        Use 0.5 for probabilities.

    Returns
    -------
    float64 array of shape (o,) or (population, o)
        One column a loss, in the order of ``losses``; smaller is better.

    Examples
    --------
    >>> from clml.losses import loss_values
    >>> Y = [[1, 0, 0], [0, 1, 1]]
    >>> scores = [[2.0, -1.0, 0.5], [-1.0, 3.0, -0.5]]
    >>> loss_values(Y, scores)
    array([0.33333333, 0.        , 0.33333333])
    >>> loss_values(Y, [scores, scores], losses=("one_error", "precision_at_2"))
    array([[0.  , 0.25],
           [0.  , 0.25]])
    """
    targets = RowTargets.from_indicator(Y, sample_weight)
    scores = in_order(scores, column_names(Y), "scores", "Y")
    population, single = _check_scores(scores, targets)
    if isinstance(threshold, bool) or not isinstance(threshold, Real):
        raise TypeError(f"threshold must be a number, got {threshold!r}.")
    threshold = float(threshold)
    if not np.isfinite(threshold):
        raise ValueError(f"threshold must be finite, got {threshold}.")
    weight = float(targets.weight.sum())
    if not weight > 0:
        raise ValueError(
            "Losses need at least one row of positive weight, "
            f"got {targets.n_rows} rows with weights that sum to {weight}."
        )
    loss_set = LossSet(get_losses(losses), targets.n_labels, threshold)
    values = loss_set.evaluate(population, targets)
    return values[0] if single else values


def _check_scores(
    scores: ArrayLike, targets: RowTargets
) -> tuple[NDArray[np.floating], bool]:
    array = np.asarray(scores)
    if array.dtype.kind not in "buif":
        raise ValueError(f"scores must be numbers, got dtype {array.dtype}.")
    if array.dtype != np.float32:
        array = array.astype(np.float64, copy=False)
    n, k = targets.n_rows, targets.n_labels
    if array.ndim not in (2, 3) or array.shape[-2:] != (n, k):
        raise ValueError(
            f"scores must have shape ({n}, {k}) or (population, {n}, {k}), as Y has, "
            f"got {array.shape}."
        )
    single = array.ndim == 2
    return np.ascontiguousarray(array[None] if single else array), single
