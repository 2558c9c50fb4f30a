"""Probabilities of labels: one scale and bias for all of them, and each its own.

A label with thousands of positive rows says well how its scores are to be read, one
with five hardly. So the labels' own scales and biases are held towards those that all
labels share, as draws of a normal distribution would be, and what its deviations are is
told by the labels together: those under which the labels are most probable [1]_.

References
----------
.. [1] D. J. C. MacKay, "Bayesian interpolation", Neural Computation 4(3), 1992.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._support.compiled import compiled
from ..losses import RowTargets
from .platt import fit_platt

# What deviations are tried of the labels' scales, as shares of the common one, and of
# their biases.
_SCALES = (0.03, 0.1, 0.2, 0.4, 0.8)
_BIASES = (0.03, 0.1, 0.2, 0.4, 0.8, 1.6)
# Of a label's scale to the common one: a label is never turned round.
_LEAST_SCALE = 0.05
# Scores that choose what all labels have in common, at most.
_MOST_SCORES = 1_000_000


@dataclass(frozen=True, eq=False)
class LabelCalibration:
    """How logits become those of probabilities: gain·z + bias, label by label.

    Attributes
    ----------
    gain, bias : float64 arrays (K,)
    spread : tuple of two float
        The deviations of the labels' own scales and biases.
    """

    gain: NDArray[np.float64]
    bias: NDArray[np.float64]
    spread: tuple[float, float]


def fit_label_calibration(
    logits: NDArray[np.floating],
    targets: RowTargets,
    spread: tuple[float, float] | None = None,
) -> LabelCalibration:
    """Learn what logits have to be multiplied by, and what is to be added.

    Parameters
    ----------
    logits : float array (n, K)
        Finite.
    targets : RowTargets
    spread : tuple of two float, default=None
        Deviations of the labels' own scales and biases; None for those under which the
        labels are most probable.

    Examples
    --------
    Two labels whose scores are right but for a bias of the second:

    >>> import numpy as np
    >>> from clml._maps.label_calibration import fit_label_calibration
    >>> from clml.losses import RowTargets
    >>> generator = np.random.default_rng(0)
    >>> z = generator.normal(size=(5000, 2)) * 2
    >>> p = 1 / (1 + np.exp(-z - [0.0, 1.0]))
    >>> Y = generator.random((5000, 2)) < p
    >>> found = fit_label_calibration(z, RowTargets.from_indicator(Y))
    >>> found.gain.round(1), abs(found.bias.round(1))
    (array([1., 1.]), array([0., 1.]))
    """
    # The common scale and the deviations are few numbers: some rows are enough.
    most = max(1, _MOST_SCORES // targets.n_labels)
    some = _some_rows(targets, most)
    few = slice(None) if some is None else some
    gain, bias = fit_platt(logits[few], targets if some is None else targets.take(some))
    shared = np.ascontiguousarray((gain * logits + bias).T, dtype=np.float64)
    relevant = np.ascontiguousarray(targets.dense.T)
    # Rows of weight 1 on average: the labels' own deviations have a unit.
    weight = targets.weight / (targets.weight[targets.weight > 0].mean() or 1.0)
    if spread is None:
        spread = _likeliest_spread(
            np.ascontiguousarray(shared[:, few]),
            np.ascontiguousarray(relevant[:, few]),
            weight[few],
        )
    own = np.zeros((len(shared), 2))
    _fit_labels(shared, relevant, weight, *spread, _LEAST_SCALE, own)
    scale = 1 + own[:, 0]
    return LabelCalibration(scale * gain, scale * bias + own[:, 1], spread)


def _some_rows(targets: RowTargets, most: int) -> NDArray[np.intp] | None:
    """Return at most so many rows, drawn; None where all are that few."""
    if targets.n_rows <= most:
        return None
    return np.sort(np.random.default_rng(0).permutation(targets.n_rows)[:most])


def _likeliest_spread(
    logits: NDArray[np.float64],
    relevant: NDArray[np.uint8],
    weight: NDArray[np.float64],
) -> tuple[float, float]:
    """Return the deviations under which the labels (K, n) are most probable."""
    best, found = -math.inf, (_SCALES[0], _BIASES[0])
    own = np.zeros((len(logits), 2))  # each fit begins where the one before ended
    for scale in _SCALES:
        for bias in _BIASES:
            evidence = _fit_labels(
                logits, relevant, weight, scale, bias, _LEAST_SCALE, own
            )
            if evidence > best:
                best, found = evidence, (scale, bias)
    return found


@compiled
def _fit_labels(logits, relevant, weight, scale, bias, least, own):  # type: ignore[no-untyped-def]
    """Fit each label's own scale and bias, and return the evidence.

    Parameters
    ----------
    logits, relevant : arrays (K, n)
    weight : float64 array (n,)
    scale, bias : float
        Deviations of the normal distributions that labels are drawn from.
    least : float
        Of a scale, 1 + own.
    own : float64 array (K, 2), changed
        The scale less 1 and the bias of each label; where to begin.
    """
    evidence = 0.0
    for k in range(len(logits)):
        a, b = own[k, 0], own[k, 1]
        value, ga, gb, of_a, of_both, of_b = _posterior(
            logits[k], relevant[k], weight, scale, bias, a, b
        )
        for _ in range(50):
            det = of_a * of_b - of_both * of_both
            if not det > 0.0:
                break
            step_a = (of_b * ga - of_both * gb) / det
            step_b = (of_a * gb - of_both * ga) / det
            if a + step_a < least - 1.0:
                # Newton's step along the bound: that of both would be of another scale.
                step_a = least - 1.0 - a
                step_b = (gb - of_both * step_a) / of_b
            share = 1.0
            better = False
            for _ in range(30):
                trial = a + share * step_a
                height = b + share * step_b
                found = _posterior(
                    logits[k], relevant[k], weight, scale, bias, trial, height
                )
                if found[0] >= value:
                    better = True
                    break
                share *= 0.5
            if not better:
                break
            moved = max(abs(trial - a), abs(height - b))
            a, b = trial, height
            value, ga, gb, of_a, of_both, of_b = found
            if moved < 1e-6:
                break
        own[k, 0], own[k, 1] = a, b
        # The integral over both, as that of a normal density around the maximum.
        det = of_a * of_b - of_both * of_both
        evidence += value - np.log(scale * bias) - 0.5 * np.log(max(det, 1e-300))
    return evidence


@compiled
def _posterior(logits, relevant, weight, scale, bias, a, b):  # type: ignore[no-untyped-def]
    """Return the log posterior of a label's own scale and bias, and its derivatives.

    Those by the scale and by the bias; then those of second order, times −1.
    """
    value = -0.5 * ((a / scale) ** 2 + (b / bias) ** 2)
    ga, gb = -a / scale**2, -b / bias**2
    of_a, of_both, of_b = 1 / scale**2, 0.0, 1 / bias**2
    for i in range(len(logits)):
        z = (1.0 + a) * logits[i] + b
        small = np.exp(-abs(z))
        p = 1.0 / (1.0 + small) if z >= 0 else small / (1.0 + small)
        value -= weight[i] * (max(z, 0.0) + np.log1p(small))
        if relevant[i]:
            value += weight[i] * z
            error = weight[i] * (1.0 - p)
        else:
            error = -weight[i] * p
        curvature = weight[i] * p * (1.0 - p)
        ga += error * logits[i]
        gb += error
        of_a += curvature * logits[i] * logits[i]
        of_both += curvature * logits[i]
        of_b += curvature
    return value, ga, gb, of_a, of_both, of_b
