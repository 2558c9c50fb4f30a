"""Ascent of the smoothed losses in the deviations of a map.

A map has few numbers, and the gradient of the smoothed losses
(:func:`clml.losses.smoothed_gradient`) says where each of them should go: some thirty
steps find what an evolution takes thousands of candidates for.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .._training.adam import Adam
from ..losses import measure_gradient, smoothed_gradient, supports_gradient
from .score_engine import ScoreEngine

_STEPS = 30
# Of the first step, in logits; it falls to 0 along a half cosine.
_RATE = 0.1
# Deviation of the noise that smooths the losses, in logits.
_SMOOTHING = 0.25


def can_ascend(engine: ScoreEngine) -> bool:
    """Tell whether the losses have a gradient."""
    return supports_gradient(engine.loss_set.losses)


def ascended_deviations(
    engine: ScoreEngine, shift: float, n_steps: int = _STEPS
) -> NDArray[np.float64]:
    """Return the deviations (n,) from the shifted identity that the losses lead to.

    Parameters
    ----------
    engine : ScoreEngine
        Whose candidates are maps, on the rows to learn from.
    shift : float
        The bias that all labels have in common.
    n_steps : int, default=30
        With fewer, deviations stay nearer to 0.

    Examples
    --------
    A label whose scores are all too high; the other is right as it is:

    >>> import numpy as np
    >>> from clml._maps.map_ascent import ascended_deviations
    >>> from clml._maps.score_engine import ScoreEngine
    >>> from clml._maps.score_map import MapSpace
    >>> from clml.losses import RowTargets
    >>> truth = np.random.default_rng(0).normal(size=(200, 2))
    >>> targets = RowTargets.from_indicator(truth > 0)
    >>> space = MapSpace("bias", 2, scale=np.ones(1), offset=np.zeros(1))
    >>> scores = (truth + [0.5, 0.0])[:, None]
    >>> engine = ScoreEngine(space, scores, targets, ("hamming",))
    >>> ascended_deviations(engine, 0.0).round(1) + 0.0
    array([-0.5,  0. ])
    """
    space, targets, loss_set = engine.space, engine.targets, engine.loss_set
    deviations = np.zeros(space.n_deviations, dtype=np.float32)
    adam = Adam(len(deviations), maximize=True)
    weight = float(targets.weight.sum())
    for t in range(n_steps):
        theta = space.maps(deviations[None], shift)
        logits = engine.scores(theta)[0].astype(np.float32)
        totals = loss_set.new_totals(1)
        loss_set.accumulate(totals, logits[None], targets)
        prices = measure_gradient(loss_set, totals, weight)
        slope, _ = smoothed_gradient(
            logits, targets, None, _SMOOTHING, prices, loss_set
        )
        gradient = space.pulled_back(deviations, *engine.slopes_of_map(slope))
        falling = 0.5 * (1 + math.cos(math.pi * t / n_steps))
        adam.step(deviations, gradient.astype(np.float32), _RATE * falling)
    return deviations.astype(np.float64)
