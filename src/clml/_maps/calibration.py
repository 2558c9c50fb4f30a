"""One temperature a model: the scale of its logits that makes probabilities honest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._support.compiled import compiled
from ..losses import RowTargets

# Root mean square of the calibrated logits stays in this range: few rows, or rows
# without a single error, say nothing about a scale beyond it.
_LEAST, _MOST = 1e-3, 10.0


def fit_temperatures(
    scores: NDArray[np.floating], targets: RowTargets
) -> NDArray[np.float64]:
    """Temperatures that minimise the cross-entropy of sigmoid(scores / temperature).

    A positive scale moves no score across 0 and past no other: decisions and
    rankings stay.

    Parameters
    ----------
    scores : float array (m, n, K)
        Logits of m models.
    targets : RowTargets

    Returns
    -------
    float64 array (m,)
    """
    return np.array(
        [1.0 / _best_scale(s, targets.dense, targets.weight) for s in scores]
    )


@compiled
def _slopes(scores, dense, weight, scale):  # type: ignore[no-untyped-def]
    """First and second derivative of the cross-entropy in the scale."""
    first = 0.0
    second = 0.0
    for i in range(scores.shape[0]):
        for k in range(scores.shape[1]):
            z = np.float64(scores[i, k])
            p = 1.0 / (1.0 + np.exp(-scale * z))
            first += weight[i] * z * (p - dense[i, k])
            second += weight[i] * z * z * p * (1.0 - p)
    return first, second


@compiled
def _best_scale(scores, dense, weight):  # type: ignore[no-untyped-def]
    squares = 0.0
    for i in range(scores.shape[0]):
        for k in range(scores.shape[1]):
            squares += np.float64(scores[i, k]) ** 2
    size = np.sqrt(squares / max(scores.size, 1))
    if not (size > 0.0 and np.isfinite(size)):
        return 1.0
    low, high = _LEAST / size, _MOST / size
    if _slopes(scores, dense, weight, low)[0] >= 0.0:
        return low
    if _slopes(scores, dense, weight, high)[0] <= 0.0:
        return high
    # The cross-entropy is convex in the scale: Newton, kept inside the bracket.
    scale = 1.0 / size
    for _ in range(100):
        first, second = _slopes(scores, dense, weight, scale)
        if first > 0.0:
            high = scale
        else:
            low = scale
        step = scale - first / second if second > 0.0 else low
        if not low < step < high:
            step = 0.5 * (low + high)
        if abs(step - scale) <= 1e-9 * scale:
            break
        scale = step
    return scale
