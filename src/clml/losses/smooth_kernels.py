"""Derivatives of smoothed row statistics, compiled.

One row at a time: :func:`add_smoothed_row` is what a compiled loop over rows calls,
with plain arrays and with room that :func:`smoothing_room` makes once. What each
statistic becomes when outputs carry Gaussian noise is said in ``_smoothed``.

Pairs of labels are what takes time, |y|·K a row: each takes one Φ and one density, in
vectors over the labels. The labels that are not missing are first written side by
side, and the vectors behind them are filled with labels of weight 0, so there is no
rest to be worked on one by one.
"""

from __future__ import annotations

import math

import numpy as np

from .._support.compiled import compiled
from .._support.simd import LANES, address
from ._gaussian import normal_lanes, spread_lanes, weigh_lanes
from .cells import (
    LABEL,
    OTHER,
    OUTPUT,
    OWN,
    RELEVANT_AT,
    add_log_losses,
    keep_observed,
    log_mass,
    log_sigmoid,
)
from .kernels import (
    COVERAGE,
    CROSS_ENTROPY,
    EXAMPLE_F1,
    HITS,
    JACCARD,
    LRAP,
    N_COLUMNS,
    ONE_ERROR,
    PREDICTED,
    RANKING,
    RELEVANT,
    ROW_LOG_LOSS,
    SUBSET,
    WRONG,
)

# Of the room, after what ``keep_observed`` writes.
_PROBABILITY, _DENSITY, _GRADIENT = range(3, 6)
_ORDER = 2
# The density of the standard normal distribution at 0.
_PEAK = 1 / math.sqrt(2 * math.pi)
_ROOT_2 = math.sqrt(2)


@compiled
def smoothing_room(n_labels):  # type: ignore[no-untyped-def]
    """Return the arrays that ``add_smoothed_row`` overwrites."""
    width = (n_labels + LANES - 1) // LANES * LANES
    return (
        np.zeros((6, width), np.float32),
        np.zeros((3, width), np.int64),
        np.zeros(width, np.float64),
    )


@compiled(inline=True)
def _normal(kept, n, centre, scale):  # type: ignore[no-untyped-def]
    """Fill Φ((z − centre)·scale) and its density but for a factor, for all labels."""
    width = kept.shape[1]
    normal_lanes(
        address(kept, OUTPUT * width),
        (n + LANES - 1) // LANES,
        np.float32(centre),
        np.float32(scale),
        address(kept, _PROBABILITY * width),
        address(kept, _DENSITY * width),
    )


@compiled(reorder=True)
def _add_decisions(  # type: ignore[no-untyped-def]
    kept, places, n, scale, columns, labels, want_labels, values
):
    """Add the derivatives of counts of decisions, and of their ratios."""
    hits = predicted = relevant = 0.0
    for i in range(n):
        own, other = kept[OWN, i], kept[OTHER, i]
        hits += own * kept[_PROBABILITY, i]
        predicted += (own + other) * kept[_PROBABILITY, i]
        relevant += own
    values[WRONG] = max(predicted + relevant - 2 * hits, 0.0)
    values[HITS], values[PREDICTED], values[RELEVANT] = hits, predicted, relevant
    by_hits = columns[HITS] - 2 * columns[WRONG]
    by_predicted = columns[PREDICTED] + columns[WRONG]
    values[JACCARD] = values[EXAMPLE_F1] = 0.0
    if relevant > 0:  # without relevant labels both are 0, whatever is predicted
        size = predicted + relevant
        union = size - hits
        values[JACCARD] = hits / union
        values[EXAMPLE_F1] = 2 * hits / size
        by_hits += columns[JACCARD] * (size / union**2)
        by_hits += columns[EXAMPLE_F1] * (2 / size)
        by_predicted -= columns[JACCARD] * (hits / union**2)
        by_predicted -= columns[EXAMPLE_F1] * (2 * hits / size**2)
    peak = _PEAK * scale
    of_own = np.float32(peak * (by_hits + by_predicted))
    of_other = np.float32(peak * by_predicted)
    for i in range(n):
        worth = of_own * kept[OWN, i] + of_other * kept[OTHER, i]
        kept[_GRADIENT, i] += worth * kept[_DENSITY, i]
    if want_labels:
        for i in range(n):
            k = places[LABEL, i]
            own, other = kept[OWN, i], kept[OTHER, i]
            worth = labels[0, k] * own + labels[1, k] * (own + other)
            kept[_GRADIENT, i] += peak * worth * kept[_DENSITY, i]


@compiled
def _add_subset(kept, n, scale, price, products):  # type: ignore[no-untyped-def]
    """Add the derivative of the probability of a wrong decision; return that.

    The product over all other labels is that over those before times that over those
    behind: factors may be 0.
    """
    product = 1.0
    for i in range(n):
        products[i] = product
        p = np.float64(kept[_PROBABILITY, i])
        product *= p if kept[OWN, i] > 0 else 1.0 - p
    behind = _PEAK * scale * price
    for i in range(n - 1, -1, -1):
        p = np.float64(kept[_PROBABILITY, i])
        relevant = kept[OWN, i] > 0
        change = products[i] * behind * kept[_DENSITY, i]
        kept[_GRADIENT, i] += -change if relevant else change
        behind *= p if relevant else 1.0 - p
    return 1.0 - product


@compiled(reorder=True)
def _add_pairs(kept, places, n, n_relevant, scale, columns, values):  # type: ignore[no-untyped-def]
    """Add the derivatives of LRAP and of the share of pairs in the wrong order.

    For relevant label j of weight c, with sums over i of weights times the probability
    that i is above j, q is c plus that over the other relevant labels, r is q plus
    that over the irrelevant ones. LRAP is the mean of q / r, and r − q counts pairs.
    """
    width = kept.shape[1]
    blocks = (n + LANES - 1) // LANES
    output, density = address(kept, OUTPUT * width), address(kept, _DENSITY * width)
    own, other = address(kept, OWN * width), address(kept, OTHER * width)
    gradient = address(kept, _GRADIENT * width)
    weight = other_weight = precision = swapped = 0.0
    for i in range(n):
        weight += kept[OWN, i]
        other_weight += kept[OTHER, i]
    # Two outputs with noise differ by noise of √2 times the deviation.
    scale /= _ROOT_2
    peak = _PEAK * scale
    share_price = peak * columns[LRAP] / weight
    swap_price = peak * columns[RANKING] / (weight * other_weight)
    for a in range(n_relevant):
        j = places[RELEVANT_AT, a]
        c = np.float64(kept[OWN, j])
        q, above = weigh_lanes(
            output, blocks, kept[OUTPUT, j], np.float32(scale), own, other, density
        )
        # Among the relevant ones it counted itself half: Φ(0).
        q = q + 0.5 * c
        r = q + above
        precision += c * (q / r)
        swapped += c * above
        of_own = c * share_price * (above / r / r)
        of_other = c * (swap_price - share_price * (q / r / r))
        moved = spread_lanes(
            density,
            blocks,
            own,
            np.float32(of_own),
            other,
            np.float32(of_other),
            gradient,
        )
        # What lifts another label above j lowers j; itself it moves nowhere.
        kept[_GRADIENT, j] -= moved
    values[LRAP] = precision / weight
    values[RANKING] = swapped / (weight * other_weight)


@compiled(reorder=True)
def _add_coverage(kept, places, n, n_relevant, scale, price):  # type: ignore[no-untyped-def]
    """Add the derivative of the lowest relevant label's rank; return that rank.

    It grows by one where an irrelevant label reaches the lowest relevant one, and
    falls by one where a relevant label passes an irrelevant one that is below all
    other relevant labels.
    """
    lowest = second = np.float32(np.inf)
    for a in range(n_relevant):
        z = kept[OUTPUT, places[RELEVANT_AT, a]]
        if z < lowest:
            lowest, second = z, lowest
        elif z < second:
            second = z
    change = _PEAK * scale * price
    _normal(kept, n, lowest, scale)
    rank = 0.0
    for i in range(n):
        rank += kept[OUTPUT, i] >= lowest
        if kept[OWN, i] == 0:
            kept[_GRADIENT, i] += change * kept[_DENSITY, i]
    for a in range(n_relevant):
        j = places[RELEVANT_AT, a]
        bound = second if kept[OUTPUT, j] == lowest else lowest
        _normal(kept, n, kept[OUTPUT, j], scale)
        passed = np.float64(0)
        for i in range(n):
            counts = (kept[OWN, i] == 0) & (kept[OUTPUT, i] < bound)
            passed += kept[_DENSITY, i] if counts else np.float32(0)
        kept[_GRADIENT, j] -= change * passed
    return rank


@compiled
def _two_highest(kept, n, relevant):  # type: ignore[no-untyped-def]
    """Return the highest output of the relevant, or other, labels, and the next."""
    first = second = np.float32(-np.inf)
    for i in range(n):
        z = kept[OUTPUT, i]
        if (kept[OWN, i] > 0) == relevant:
            if z > first:
                first, second = z, first
            elif z > second:
                second = z
    return first, second


@compiled
def _add_one_error(kept, n, scale, price):  # type: ignore[no-untyped-def]
    """Add the derivative of whether an irrelevant label is highest; return whether.

    An output decides if without it the order would be the other: an irrelevant one
    where it reaches the highest relevant one, a relevant one where it passes the
    highest irrelevant one.
    """
    best, next_best = _two_highest(kept, n, True)
    other, next_other = _two_highest(kept, n, False)
    change = _PEAK * scale * price
    _normal(kept, n, best, scale)
    for i in range(n):
        if kept[OWN, i] == 0:
            rival = next_other if kept[OUTPUT, i] == other else other
            if rival < best:
                kept[_GRADIENT, i] += change * kept[_DENSITY, i]
    _normal(kept, n, other, scale)
    for i in range(n):
        if kept[OWN, i] > 0:
            rival = next_best if kept[OUTPUT, i] == best else best
            if rival <= other:
                kept[_GRADIENT, i] -= change * kept[_DENSITY, i]
    return 0.0 if best > other else 1.0


@compiled
def _find_highest(kept, places, n, most):  # type: ignore[no-untyped-def]
    """Write down the highest labels, by falling output, irrelevant ones first if tied.

    Most labels are lower than those that were found, and are compared once.
    """
    found = 0
    for i in range(n):
        z, relevant = kept[OUTPUT, i], kept[OWN, i] > 0
        at = found
        while at > 0:
            other = places[_ORDER, at - 1]
            tied = kept[OUTPUT, other] == z
            later = tied and kept[OWN, other] > 0 and not relevant
            if not (kept[OUTPUT, other] < z or later):
                break
            if at < most:
                places[_ORDER, at] = other
            at -= 1
        if at < most:
            places[_ORDER, at] = i
            found = min(found + 1, most)


@compiled
def _add_top_hits(kept, places, n, k, scale, price, before):  # type: ignore[no-untyped-def]
    """Add the derivative of relevant labels among the k highest; return their number.

    One of them leaves where it falls below the first that is not among them, and one
    of the rest enters where it reaches the last that is; the two change places.
    """
    hits = 0.0
    for a in range(min(k, n)):
        hits += kept[OWN, places[_ORDER, a]] > 0
    if k >= n:
        return hits
    change = _PEAK * scale * price
    last, first = places[_ORDER, k - 1], places[_ORDER, k]
    for a in range(k):
        before[a] = kept[_GRADIENT, places[_ORDER, a]]
    _normal(kept, n, kept[OUTPUT, last], scale)
    lost = np.float32(kept[OWN, last] > 0)
    for i in range(n):
        gained = np.float32(kept[OWN, i] > 0)
        kept[_GRADIENT, i] += change * (gained - lost) * kept[_DENSITY, i]
    # Those that are among the highest now pass another border.
    _normal(kept, n, kept[OUTPUT, first], scale)
    lost = np.float32(kept[OWN, first] > 0)
    for a in range(k):
        i = places[_ORDER, a]
        gained = np.float32(kept[OWN, i] > 0)
        kept[_GRADIENT, i] = before[a] + change * (gained - lost) * kept[_DENSITY, i]
    return hits


@compiled
def _add_log_losses(kept, n, columns):  # type: ignore[no-untyped-def]
    """Add the derivatives of cross-entropy and row log loss, which are smooth."""
    weight = 0.0
    for i in range(n):
        weight += kept[OWN, i]
    mass = log_mass(kept, n)
    for i in range(n):
        z = np.float64(kept[OUTPUT, i])
        own, other = kept[OWN, i], kept[OTHER, i]
        log_p, log_q = log_sigmoid(z), log_sigmoid(-z)
        p, q = np.exp(log_p), np.exp(log_q)
        share = np.exp(log_p - mass)
        kept[_GRADIENT, i] += columns[CROSS_ENTROPY] * (other * p - own * q)
        kept[_GRADIENT, i] += columns[ROW_LOG_LOSS] * q * (weight * share - own)


@compiled(inline=True)
def add_smoothed_row(  # type: ignore[no-untyped-def]
    scores,
    truth,
    cells,
    weight,
    threshold,
    sigma,
    columns,
    labels,
    want_labels,
    ks,
    room,
    gradient,
    values,
):
    """Add the derivative of a row's smoothed statistics, at their prices.

    Parameters
    ----------
    scores : float32 array (K,)
        If one is NaN, and not missing, nothing is added and the values are NaN.
    truth : uint8 array (K,), or float32
        With shares of labels, in [0, 1], sums of a row are those that labels drawn by
        them have on average: wrong, hits, predicted, relevant, cross-entropy. What is
        no sum is no such average.
    cells : float32 array (K,), or of no entries: every cell has weight 1
    weight : float
        Of the row; multiplies the gradient, not the values.
    threshold, sigma : float
        What decides, and the deviation of the noise.
    columns : float64 array (13 + number of ks,)
        Prices. A statistic with price 0 is not computed.
    labels : float64 array (3, K)
        Prices of hits and predicted of each label, read if ``want_labels``.
    want_labels : bool
    ks : int array
        The k of each count of hits among the k highest.
    room : tuple of arrays
        Of ``smoothing_room``, overwritten.
    gradient : float32 array (K,), added to
    values : float64 array (13 + number of ks,), overwritten
        Smoothed statistics, at least those that have a price; coverage, one-error and
        hits among the highest as they are.
    """
    kept, places, products = room
    n, n_relevant = keep_observed(scores, truth, cells, kept, places)
    if n < 0:
        values[:] = np.nan
        return
    values[:] = 0.0
    for i in range(n, (n + LANES - 1) // LANES * LANES):
        kept[OUTPUT, i] = kept[OWN, i] = kept[OTHER, i] = 0
    for i in range((n + LANES - 1) // LANES * LANES):
        kept[_GRADIENT, i] = 0
    scale = 1.0 / sigma
    priced = want_labels
    for c in range(LRAP):
        priced |= columns[c] != 0
    if priced:
        _normal(kept, n, threshold, scale)
        _add_decisions(kept, places, n, scale, columns, labels, want_labels, values)
        if columns[SUBSET] != 0:
            values[SUBSET] = _add_subset(kept, n, scale, columns[SUBSET], products)
    values[LRAP] = 1.0
    ranked = 0 < n_relevant < n
    if ranked and (columns[LRAP] != 0 or columns[RANKING] != 0):
        _add_pairs(kept, places, n, n_relevant, scale, columns, values)
    if n_relevant > 0 and columns[COVERAGE] != 0:
        price = columns[COVERAGE]
        values[COVERAGE] = _add_coverage(kept, places, n, n_relevant, scale, price)
    values[ONE_ERROR] = n_relevant == 0
    if ranked and columns[ONE_ERROR] != 0:
        values[ONE_ERROR] = _add_one_error(kept, n, scale, columns[ONE_ERROR])
    if ks.shape[0] > 0 and n_relevant > 0:
        _find_highest(kept, places, n, min(ks.max() + 1, n))
        for c in range(N_COLUMNS, columns.shape[0]):
            k, price = ks[c - N_COLUMNS], columns[c]
            values[c] = _add_top_hits(kept, places, n, k, scale, price, products)
    if n > 0 and (columns[CROSS_ENTROPY] != 0 or columns[ROW_LOG_LOSS] != 0):
        add_log_losses(kept, n, 1.0, values)
        _add_log_losses(kept, n, columns)
    factor = np.float32(weight)
    if n == scores.shape[0]:
        for i in range(n):
            gradient[i] += factor * kept[_GRADIENT, i]
        return
    for i in range(n):
        gradient[places[LABEL, i]] += factor * kept[_GRADIENT, i]


@compiled
def add_smoothed_rows(  # type: ignore[no-untyped-def]
    scores,
    dense,
    cells,
    weight,
    threshold,
    sigma,
    columns,
    labels,
    want_labels,
    ks,
    gradient,
    values,
):
    """Do ``add_smoothed_row`` for rows of positive weight.

    Every array but the prices has one more axis, the rows. ``values`` may have a
    single row, which is then overwritten again and again.
    """
    room = smoothing_room(scores.shape[1])
    for r in range(scores.shape[0]):
        if weight[r] > 0:
            add_smoothed_row(
                scores[r],
                dense[r],
                cells[r],
                weight[r],
                threshold,
                sigma,
                columns,
                labels,
                want_labels,
                ks,
                room,
                gradient[r],
                values[r if values.shape[0] > 1 else 0],
            )
