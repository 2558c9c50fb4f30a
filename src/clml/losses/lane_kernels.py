"""Row statistics of sixteen candidates at a time, compiled.

The scores of a row are (K, LANES), a candidate in each lane. Which labels are relevant
is the same for all of them, so every comparison is one instruction for all candidates,
whatever the number of labels. Ranks of few relevant labels are counted, |y|·K
comparisons; those of many are found by buckets, in linear time. The sums are those of
``_kernels.accumulate``, bit for bit: counts are whole numbers, the rest is added in the
same order in float64.
"""

from __future__ import annotations

import numpy as np

from .._support.compiled import compiled
from .._support.simd import (
    COUNTED,
    LANES,
    add_decisions,
    add_ratios,
    address,
    count_lanes,
    decide_lanes,
)
from .kernels import (
    COVERAGE,
    EXAMPLE_F1,
    JACCARD,
    LRAP,
    ONE_ERROR,
    RANKING,
    SUBSET,
    WRONG,
)

# Labels below which counting is always quicker, and those from which on buckets would
# have no numbers in float32.
_MANY, _TOO_MANY = 128, 2**20
# Those of them that are compared in any case.
_AT_ONCE = 4
# Values of its bucket that a limit is compared with, on average; beyond, counting is
# quicker.
_MOST_COMPARED = 16


@compiled
def _rank_among(values, n, limits, n_limits, room, ranks):  # type: ignore[no-untyped-def]
    """Count the values that are at least as high as each limit, in linear time.

    Values are dealt to as many buckets, of equal width. What lies in a higher one than
    a limit counts, and only those in its own are compared with it.

    Parameters
    ----------
    values, limits : float arrays (n, LANES) and (n_limits, LANES), or longer
        The limits are some of the values. There is no NaN among them.
    room : tuple of arrays
        Of ``_buckets``, overwritten.
    ranks : int32 array (n_limits, LANES), or longer
        The counts.

    Returns
    -------
    bool
        False if values are infinite, or too many lie in one bucket; ``ranks`` then
        mean nothing.
    """
    bounds, ends, bucket, grouped, begins = room
    for a in range(LANES):
        bounds[0, a] = bounds[1, a] = values[0, a]
    for j in range(n):
        for a in range(LANES):
            value, low, high = values[j, a], bounds[0, a], bounds[1, a]
            bounds[0, a] = value if value < low else low
            bounds[1, a] = value if value > high else high
    for a in range(LANES):
        width = bounds[1, a] - bounds[0, a]
        if not width < np.inf:
            return False
        # 0 of lanes that are empty: all of their values are the same.
        bounds[1, a] = (n - 1) / width if width > 0 else 0
        if not bounds[1, a] < np.inf:
            return False
    ends[: n + 1] = 0
    for j in range(n):
        # Rounding keeps the order: a higher value is never in a lower bucket.
        for a in range(LANES):
            bucket[j, a] = np.int32((values[j, a] - bounds[0, a]) * bounds[1, a])
        for a in range(LANES):
            ends[np.uint32(bucket[j, a]), a] += 1
    work = 0
    for j in range(n_limits):
        for a in range(LANES):
            ranks[j, a] = np.int32((limits[j, a] - bounds[0, a]) * bounds[1, a])
            if bounds[1, a] > 0:
                work += ends[np.uint32(ranks[j, a]), a]
    if work > _MOST_COMPARED * n_limits * LANES:
        return False
    # From the highest bucket on: first where each begins, then, filled, where it ends.
    begins[:] = 0
    for b in range(n - 1, -1, -1):
        for a in range(LANES):
            size = ends[b, a]
            ends[b, a] = begins[a]
            begins[a] += size
    for j in range(n):
        for a in range(LANES):
            here = np.uint32(bucket[j, a])
            grouped[np.uint32(ends[here, a]), a] = values[j, a]
            ends[here, a] += 1
    for j in range(n_limits):
        for a in range(LANES):
            here = np.uint32(ranks[j, a])
            begin, end = ends[here + np.uint32(1), a], ends[here, a]
            limit, count = limits[j, a], begin
            # The first ones without a branch, which nothing could foresee.
            for i in range(_AT_ONCE):
                reached = grouped[np.uint32(begin + i), a] >= limit
                count += np.int32(reached) & np.int32(begin + i < end)
            if end - begin > _AT_ONCE:
                for i in range(begin + _AT_ONCE, end):
                    count += np.int32(grouped[np.uint32(i), a] >= limit)
            ranks[j, a] = count
    for a in range(LANES):
        if bounds[1, a] == 0:
            for j in range(n_limits):
                ranks[j, a] = n
    return True


@compiled
def _rank_many(scores, row, relevant, n_relevant, room, ranks):  # type: ignore[no-untyped-def]
    """Do what ``_rank`` does where many labels are relevant; tell whether it could."""
    n_labels = scores.shape[1]
    return _rank_among(
        scores[row], n_labels, relevant, n_relevant, room, ranks[0]
    ) and _rank_among(relevant, n_relevant, relevant, n_relevant, room, ranks[1])


@compiled(inline=True)
def _rank(scores, row, relevant, n_relevant, n_nan, buckets, ranks):  # type: ignore[no-untyped-def]
    """Fill the ranks of relevant labels, among all labels and among themselves."""
    n_labels = scores.shape[1]
    if (
        _MANY <= n_labels < _TOO_MANY
        and n_nan == 0
        # What both take, in comparisons.
        and n_relevant * (n_labels + n_relevant) > 64 * n_labels + 384 * n_relevant
        and _rank_many(scores, row, relevant, n_relevant, buckets, ranks)
    ):
        return
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
    relevant, ranks, decided, order, buckets = room
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
    n_nan_here = 0
    for a in range(LANES):
        n_nan[a] += decided[1, a]
        n_nan_here += decided[1, a]
    if want_example:
        for a in range(LANES):
            predicted, hits = np.float64(decided[0, a]), np.float64(decided[2, a])
            size = predicted + n_relevant
            if size - 2 * hits > 0:
                totals[SUBSET, a] += weight
            if hits > 0:
                totals[JACCARD, a] += weight * (hits / (size - hits))
                totals[EXAMPLE_F1, a] += weight * (2 * hits / size)
    if want_order or (want_lrap and n_relevant < n_labels):
        _rank(scores, r, relevant, n_relevant, n_nan_here, buckets, ranks)
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
        _buckets(n_labels if _MANY <= n_labels < _TOO_MANY else 0, like),
    )


@compiled
def _buckets(n, like):  # type: ignore[no-untyped-def]
    """Return what ``_rank_among`` overwrites, for so many values."""
    return (
        np.empty((2, LANES), like.dtype),
        np.empty((n + 1, LANES), np.int32),
        np.empty((n, LANES), np.int32),
        np.empty((n + _AT_ONCE, LANES), like.dtype),
        np.empty(LANES, np.int32),
    )
