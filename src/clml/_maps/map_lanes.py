"""Statistics of sixteen score maps at a time, maps side by side in memory."""

from __future__ import annotations

import numpy as np

from .._support.compiled import compiled
from .._support.simd import LANES
from ..losses.lane_kernels import add_row, working_room


@compiled
def sum_map_statistics(  # type: ignore[no-untyped-def]
    weights, bias, scores, start, stop, rows, threshold, wants, sums
):
    """Add the statistics of rows start to stop to the sums of LANES maps.

    The time grows with the labels, not with their square: see ``add_row``.

    Parameters
    ----------
    weights, bias : float64 arrays (M, K, LANES) and (K, LANES)
    scores : float64 array (n, M, K)
    start, stop : int
    rows, threshold, wants, sums
        See ``add_row``.
    """
    m, k = weights.shape[0], weights.shape[1]
    logits = np.empty((1, k, LANES))
    room = working_room(k, logits)
    for i in range(start, stop):
        # In the order of ``_score_map._weigh``, and so the same to the last bit.
        for j in range(k):
            for a in range(LANES):
                logits[0, j, a] = bias[j, a]
        for learner in range(m):
            for j in range(k):
                score = scores[i, learner, j]
                for a in range(LANES):
                    logits[0, j, a] += weights[learner, j, a] * score
        add_row(logits, 0, i, rows, threshold, wants, room, sums)
