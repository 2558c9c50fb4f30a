"""One scale and one bias a learner: scores of any unit as logits of one unit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from ..losses import RowTargets

# The scaled logits' deviation stays in this range: rows without a single error say
# nothing of a scale beyond it, and a learner worse than chance is let go, not turned.
_LEAST, _MOST = 1e-3, 10.0


def fit_platt(scores: NDArray[np.floating], targets: RowTargets) -> tuple[float, float]:
    """Scale and bias that minimise the cross-entropy of sigmoid(scale·scores + bias).

    Parameters
    ----------
    scores : float array (n, K)
        Finite.
    targets : RowTargets
        Rows of weight 0 count as absent.

    Returns
    -------
    scale, bias : float
        The scale is positive. Scores that are all equal, or labels that are, have
        nothing to say: 1 and 0.

    Examples
    --------
    >>> import numpy as np
    >>> from clml._maps.platt import fit_platt
    >>> from clml.losses import RowTargets
    >>> scores = np.array([[1.0], [1.0], [1.0], [-1.0], [-1.0], [-1.0]])
    >>> targets = RowTargets.from_indicator([[1], [1], [0], [0], [0], [1]])
    >>> scale, bias = fit_platt(scores, targets)  # the shares are 2/3 and 1/3
    >>> round(float(np.exp(scale)), 6), abs(round(bias, 6))
    (2.0, 0.0)
    """
    used = targets.weight > 0
    given = np.asarray(scores, dtype=np.float64)[used]
    truth = targets.dense[used].ravel()
    weight = np.repeat(targets.weight[used], targets.n_labels)
    if not weight.size:
        return 1.0, 0.0
    weight = weight / weight.sum()
    share = weight @ truth
    size = np.abs(given).max()
    if not size > 0.0 or not 0.0 < share < 1.0:
        return 1.0, 0.0
    x = given.ravel() / size  # squares neither overflow nor vanish
    centre = weight @ x
    spread = np.sqrt(weight @ (x - centre) ** 2)
    # A mean of equal numbers may round away from them.
    if not spread > 1e-12:
        return 1.0, 0.0
    slope, height = _newton((x - centre) / spread, truth, weight, float(logit(share)))
    return float(slope / spread / size), float(height - slope * centre / spread)


def _newton(
    x: NDArray[np.float64],
    truth: NDArray[np.uint8],
    weight: NDArray[np.float64],
    height: float,
) -> tuple[float, float]:
    """Slope, kept in its range, and height; the objective is convex in both."""
    point = np.array([1.0, height])
    value = _cross_entropy(x, truth, weight, point)
    for _ in range(100):
        p = expit(point[0] * x + point[1])
        error, curvature = weight * (p - truth), weight * p * (1.0 - p)
        gradient = np.array([error @ x, error.sum()])
        hessian = np.array(
            [
                [curvature @ (x * x), curvature @ x],
                [curvature @ x, curvature.sum()],
            ]
        )
        outwards = point[0] <= _LEAST if gradient[0] > 0 else point[0] >= _MOST
        if outwards:
            step = np.array([0.0, gradient[1] / max(hessian[1, 1], 1e-300)])
        else:
            step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        point, value, moved = _descend(x, truth, weight, point, value, step)
        if moved <= 1e-9:
            break
    return float(point[0]), float(point[1])


def _descend(
    x: NDArray[np.float64],
    truth: NDArray[np.uint8],
    weight: NDArray[np.float64],
    point: NDArray[np.float64],
    value: float,
    step: NDArray[np.float64],
) -> tuple[NDArray[np.float64], float, float]:
    """Take the step, halved until it helps; return where, the value, how far."""
    for halving in range(40):
        trial = point - step * 0.5**halving
        trial[0] = np.clip(trial[0], _LEAST, _MOST)
        trial_value = _cross_entropy(x, truth, weight, trial)
        if trial_value < value:
            return trial, trial_value, float(np.abs(trial - point).max())
    return point, value, 0.0


def _cross_entropy(
    x: NDArray[np.float64],
    truth: NDArray[np.uint8],
    weight: NDArray[np.float64],
    point: NDArray[np.float64],
) -> float:
    z = point[0] * x + point[1]
    return float(weight @ (np.logaddexp(0.0, z) - truth * z))
