"""The Bayes front: what no predictor betters in all of the losses at once.

Losses of a model are means over rows, or a ratio of such means, and each row may be
treated for itself. A row's treatment is an order of its labels and how many of them are
predicted, the first ones: a label is predicted where its score is positive, so what is
predicted stands before all else. Three sums over the rows say what their treatments
come to: the expected LRAP, the marginals of predicted labels, and the number of these.
Hamming loss and LRAP are linear in the sums; micro-F1, a ratio of two that are, exceeds
a given value on one side of a plane.

The sums that many rows attain fill a convex set. So what is better than a point of the
front in all losses, three half-spaces that meet, is parted from that set by a plane,
and the point is the best in some weighted sum of its three planes, no weight negative.
That of micro-F1 goes by the ratio F of the point itself. Whatever the weights, a
predicted label counts p_j - t for its marginal p_j, with a threshold t between F/2
(micro-F1) and 1/2 (Hamming loss). Two numbers are left, t and how much predicted labels
count beside LRAP, and with both given each row is treated for itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._support.compiled import compiled
from ..lebesgue import lebesgue_measure, nondominated
from ._bayes_risk import LOSS_NAMES, Floats, best_micro_f1

# What counts next to nothing: it chooses among equals.
_LITTLE = 1e-9
# How much a predicted label may count beside LRAP; rows differ by a thousandth and more
# in both.
_WEIGHTS = (1e-3, 1e3)
# The ratio of a point and its threshold suit each other after a few steps.
_STEPS = 30


class BayesFront(NamedTuple):
    """Losses of predictors that no other one dominates.

    Attributes
    ----------
    loss_names : tuple of str
    losses : float64 array (M, o)
        A point for each predictor, sorted by the first loss.
    lebesgue_measure : float
        Of what the points dominate below 1.
    """

    loss_names: tuple[str, ...]
    losses: Floats
    lebesgue_measure: float


class Treatments(NamedTuple):
    """What can be done with rows, but for what is worse in every respect.

    Attributes
    ----------
    lrap : float64 array (T,)
        Expected LRAP of the best order that begins with the predicted labels.
    hits : float64 array (T,)
        Sum of their marginals.
    predicted : float64 array (T,)
        Their number.
    start : int64 array (n + 1,)
        Where the treatments of each row begin, and where the last ones end.
    """

    lrap: Floats
    hits: Floats
    predicted: Floats
    start: NDArray[np.int64]


def treatments_of_rows(pairs: Floats, empty: Floats, marginals: Floats) -> Treatments:
    """Return the treatments of rows: for each set of labels, that it is predicted.

    Parameters
    ----------
    pairs : float64 array (n, K, K)
        See :func:`clml.datasets._bayes_risk.pair_expectations`.
    empty : float64 array (n,)
        Probability of no label.
    marginals : float64 array (n, K)
    """
    n, n_labels = marginals.shape
    found = np.empty((3, n << n_labels))
    start = np.zeros(n + 1, np.int64)
    _list_treatments(pairs, empty, marginals, found, start)
    lrap, hits, predicted = found[:, : start[-1]].copy()
    return Treatments(lrap, hits, predicted, start)


def joined(parts: list[Treatments]) -> Treatments:
    """Return the treatments of the rows of several parts, one part after the other."""
    lrap, hits, predicted = (
        np.concatenate([part[i] for part in parts]) for i in range(3)
    )
    counts = np.concatenate([np.diff(part.start) for part in parts])
    return Treatments(lrap, hits, predicted, np.append(0, np.cumsum(counts)))


@compiled
def _list_treatments(pairs, empty, marginals, found, start):  # type: ignore[no-untyped-def]
    n, n_labels = marginals.shape
    n_sets = 1 << n_labels
    size = np.zeros(n_sets, np.int64)
    for members in range(1, n_sets):
        size[members] = size[members >> 1] + (members & 1)
    precision = np.zeros((n_sets, n_labels))  # Σ_{k in S} A_jk / |S|, for every S and j
    hits = np.zeros(n_sets)
    head = np.zeros(n_sets)  # of the best order of S
    tail = np.zeros(n_sets)  # of the best order of the rest, after S
    place = np.empty(n_sets)
    n_found = 0
    for i in range(n):
        for members in range(1, n_sets):
            k = 0  # one of the members; the rest is a set seen before
            while not (members >> k) & 1:
                k += 1
            rest = members ^ (1 << k)
            hits[members] = hits[rest] + marginals[i, k]
            best = -1.0
            for j in range(n_labels):
                total = precision[rest, j] * size[rest] + pairs[i, j, k]
                precision[members, j] = total / size[members]
                if (members >> j) & 1:
                    total = head[members ^ (1 << j)] + precision[members, j]
                    best = max(best, total)
            head[members] = best
        for members in range(n_sets - 2, -1, -1):
            best = -1.0
            for j in range(n_labels):
                if not (members >> j) & 1:
                    longer = members | (1 << j)
                    best = max(best, precision[longer, j] + tail[longer])
            tail[members] = best
        # A set is left out if one that is no larger has as many hits and as much
        # precision. Marginals add up to less than twice the number of labels.
        for members in range(n_sets):
            place[members] = size[members] - hits[members] / (2 * n_labels)
        first = n_found
        for members in np.argsort(place):
            lrap = empty[i] + head[members] + tail[members]
            dominated = False
            for other in range(first, n_found):
                if found[0, other] >= lrap and found[1, other] >= hits[members]:
                    dominated = True
                    break
            if not dominated:
                found[0, n_found] = lrap
                found[1, n_found] = hits[members]
                found[2, n_found] = size[members]
                n_found += 1
        start[i + 1] = n_found


@compiled
def best_sums(lrap, hits, predicted, start, settings):  # type: ignore[no-untyped-def]
    """Sum over rows what the best treatment has, by the settings of what is best.

    Parameters
    ----------
    lrap, hits, predicted, start
        Of :class:`Treatments`.
    settings : float64 array (m, 3)
        Weight of LRAP, weight of decisions, threshold t: rows are treated for the
        largest weight·LRAP + weight·(hits - t·predicted).

    Returns
    -------
    float64 array (m, 3)
        Sums of LRAP, hits and predicted.
    """
    sums = np.zeros((len(settings), 3))
    for s in range(len(settings)):
        ranking, deciding, threshold = settings[s]
        for i in range(len(start) - 1):
            best, chosen = -np.inf, start[i]
            for j in range(start[i], start[i + 1]):
                worth = ranking * lrap[j] + deciding * (
                    hits[j] - threshold * predicted[j]
                )
                if worth > best:
                    best, chosen = worth, j
            sums[s, 0] += lrap[chosen]
            sums[s, 1] += hits[chosen]
            sums[s, 2] += predicted[chosen]
    return sums


def losses_of_sums(sums: Floats, marginals: Floats) -> Floats:
    """Return hamming, lrap and micro_f1 (m, 3) of sums (m, 3)."""
    lrap, hits, predicted = sums.T
    size = predicted + marginals.sum()
    ratio = np.divide(2 * hits, size, out=np.zeros(len(sums)), where=size > 0)
    hamming = (size - 2 * hits) / marginals.size
    # Probabilities may sum to just above 1.
    return np.clip(np.stack([hamming, 1 - lrap / len(marginals), 1 - ratio], 1), 0, 1)


def front_of_rows(
    treatments: Treatments,
    marginals: Floats,
    loss_names: tuple[str, ...],
    resolution: int,
) -> BayesFront:
    """Return the front that the treatments of all rows together make."""

    def points(settings: list[tuple[float, float, float]]) -> Floats:
        return losses_of_sums(best_sums(*treatments, np.array(settings)), marginals)

    best_ratio = best_micro_f1(marginals)
    settings = []
    for ranking, deciding in _weights(loss_names, resolution):
        # Where micro-F1 and LRAP alone count, the threshold is half of what the ratio
        # then is, which is at most the best one.
        low = best_ratio / 2
        if "micro_f1" in loss_names:
            for _ in range(_STEPS):
                lower = (1 - points([(ranking, deciding, low)])[0, 2]) / 2
                if lower == low:
                    break
                low = lower
        settings += [
            (ranking, deciding, low + share * (0.5 - low))
            for share in _shares_of_hamming(loss_names, resolution)
        ]
    columns = [LOSS_NAMES.index(name) for name in loss_names]
    found = np.unique(points(settings)[:, columns], axis=0)
    found = found[nondominated(found)]
    return BayesFront(loss_names, found, lebesgue_measure(found))


def _weights(loss_names: tuple[str, ...], resolution: int) -> list[tuple[float, float]]:
    """Return weights of LRAP and of a predicted label; ends are one, then the other."""
    ends = [(1.0, _LITTLE), (_LITTLE, 1.0)]
    if "lrap" not in loss_names:
        return ends[1:]
    if len(loss_names) == 1:
        return ends[:1]
    between = [(1.0, float(w)) for w in np.geomspace(*_WEIGHTS, resolution)]
    return [ends[0], *between, ends[1]]


def _shares_of_hamming(loss_names: tuple[str, ...], resolution: int) -> list[float]:
    """Return how far thresholds lie between those of micro-F1 and of Hamming loss."""
    if "micro_f1" not in loss_names:
        return [1.0]
    if "hamming" not in loss_names:
        return [0.0]
    return np.linspace(0, 1, resolution).tolist()
