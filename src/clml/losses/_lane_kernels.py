"""Row statistics of sixteen candidates at a time, compiled.

The scores of a row are (K, LANES), a candidate in each lane. Which labels are relevant
is the same for all of them, so every comparison is one instruction for all candidates,
whatever the number of labels. The sums are those of ``_kernels.accumulate``, bit for
bit: counts are whole numbers, the rest is added in the same order in float64.
"""

from __future__ import annotations

import numpy as np

from .._compiled import compiled
from .._simd import (
    COUNTED,
    LANES,
    add_decisions,
    add_ratios,
    address,
    count_lanes,
    decide_lanes,
)
from ._kernels import (
    COVERAGE,
    EXAMPLE_F1,
    JACCARD,
    LRAP,
    ONE_ERROR,
    RANKING,
    SUBSET,
    WRONG,
)


@compiled(inline=True)
def _rank(scores, row, relevant, n_relevant, ranks):  # type: ignore[no-untyped-def]
    """Fill the ranks of relevant labels, among all labels and among themselves."""
    n_labels = scores.shape[1]
    room = relevant.shape[0] * LANES
    for first in range(0, n_relevant, COUNTED):
        # The arrays have room for the last ones that are counted in vain.
        here = first * LANES
        limits = address(relevant, here)
        of_row = address(scores, row * n_labels * LANES)
        count_lanes(of_row, n_labels, limits, address(ranks, here))
        own = address(relevant, 0)
        count_lanes(own, n_relevant, limits, address(ranks, room + here))


@compiled(inline=True)
def _add_precision(ranks, n_relevant, n_labels, weight, totals):  # type: ignore[no-untyped-def]
    """Add LRAP of a row from the ranks (2, relevant labels, LANES)."""
    if n_relevant == 0 or n_relevant == n_labels:
        for a in range(LANES):
            totals[LRAP, a] += weight
        return
    own = address(ranks, ranks.shape[1] * LANES)
    total = address(totals, LRAP * LANES)
    add_ratios(own, address(ranks, 0), n_relevant, weight, total)


@compiled(inline=True)
def _add_order(ranks, n_relevant, n_labels, weight, sums, totals):  # type: ignore[no-untyped-def]
    """Add ranking loss, coverage and one-error of a row."""
    sums[:] = 0.0  # others above a relevant label, labels with none, the lowest rank
    for j in range(n_relevant):
        for a in range(LANES):
            rank, above = ranks[0, j, a], ranks[0, j, a] - ranks[1, j, a]
            sums[0, a] += np.float64(above)
            sums[1, a] += np.float64(above == 0)
            sums[2, a] = max(sums[2, a], np.float64(rank))
    for a in range(LANES):
        totals[COVERAGE, a] += weight * sums[2, a]
        totals[ONE_ERROR, a] += weight * np.float64(sums[1, a] == 0.0)
    if 0 < n_relevant < n_labels:
        pairs = np.float64(n_relevant * (n_labels - n_relevant))
        for a in range(LANES):
            totals[RANKING, a] += weight * (sums[0, a] / pairs)


@compiled(inline=True)
def add_row(scores, r, target, rows, threshold, wants, room, sums):  # type: ignore[no-untyped-def]
    """Add the statistics of one row to the sums of LANES candidates.

    Parameters
    ----------
    scores : float array (rows, K, LANES)
    r, target : int
        The row of the scores, and that of the targets which it is.
    rows : (dense, indptr, indices, weight)
        The fields of ``RowTargets``.
    threshold : float
    wants : (bool, bool, bool, bool)
        Whether LRAP, other statistics of the order, those of single rows, and those
        of labels are asked for; see ``LossSet.lane_statistics``.
    room : tuple of arrays
        Of ``working_room``, overwritten.
    sums : (totals, label_totals, n_nan), added to
        float64 arrays (13, LANES) and (3, K, LANES), or of no label, and int64
        (LANES,): how many scores are NaN. See ``LossSet.new_lane_totals``.
    """
    dense, indptr, indices, weights = rows
    want_lrap, want_order, want_example, want_labels = wants
    relevant, ranks, decided, order = room
    totals, label_totals, n_nan = sums
    weight = weights[target]
    if weight == 0:
        return
    n_labels = scores.shape[1]
    first = indptr[target]
    n_relevant = indptr[target + 1] - first
    for j in range(n_relevant):
        label = indices[first + j]
        for a in range(LANES):
            relevant[j, a] = scores[r, label, a]
    of_row = address(scores, r * n_labels * LANES)
    decide_lanes(of_row, n_labels, threshold, address(decided, 0))
    hit = address(decided, 2 * LANES)
    decide_lanes(address(relevant, 0), n_relevant, threshold, hit)
    # The totals begin with these four.
    total = address(totals, WRONG * LANES)
    add_decisions(address(decided, 0), hit, n_relevant, weight, total)
    for a in range(LANES):
        n_nan[a] += decided[1, a]
    if want_example:
        for a in range(LANES):
            predicted, hits = np.float64(decided[0, a]), np.float64(decided[2, a])
            size = predicted + n_relevant
            if size - 2 * hits > 0:
                totals[SUBSET, a] += weight
            if hits > 0:
                totals[JACCARD, a] += weight * (hits / (size - hits))
                totals[EXAMPLE_F1, a] += weight * (2 * hits / size)
    if want_lrap or want_order:
        _rank(scores, r, relevant, n_relevant, ranks)
    if want_lrap:
        _add_precision(ranks, n_relevant, n_labels, weight, totals)
    if want_order:
        _add_order(ranks, n_relevant, n_labels, weight, order, totals)
    if want_labels:
        for k in range(n_labels):
            is_relevant = dense[target, k] == 1
            for a in range(LANES):
                found = weight * np.float64(scores[r, k, a] > threshold)
                label_totals[1, k, a] += found
                if is_relevant:
                    label_totals[0, k, a] += found
                    label_totals[2, k, a] += weight


@compiled
def working_room(n_labels, like):  # type: ignore[no-untyped-def]
    """Return what ``add_row`` overwrites, of the precision of an array."""
    return (
        np.zeros((n_labels + COUNTED, LANES), like.dtype),
        np.empty((2, n_labels + COUNTED, LANES), np.int32),
        np.empty((4, LANES), np.int32),
        np.empty((3, LANES), np.float64),
    )
