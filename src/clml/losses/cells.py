"""Weights of single cells: what a row is without its missing labels.

A cell is one label of one row. Its weight, not negative, says how much its truth is
worth; 0 says that the truth is missing, and then the label takes part in nothing:
it is no decision, has no rank, and is neither relevant nor irrelevant. With weights
c_k the statistics of a row are

- wrong, hits, predicted, relevant, cross-entropy, and those per label: sums over
  cells, each times c_k; row log loss: Σ c_k times each relevant label's term;
- Jaccard and F1 of a row: the formulas of these sums;
- subset: whether a decision is wrong; a weight that is not 0 does not matter;
- ranking: Σ c_i·c_j over the pairs in the wrong order over that of all pairs;
- LRAP: the mean, with weights c_j, over relevant labels j of Σ c_i over relevant
  labels at least as high (j among them), over Σ c_i of all labels at least as high;
- coverage, one-error, hits among the k highest: counts of labels that are not
  missing; a weight that is not 0 does not matter.

Weights that are all the same change no ratio, and multiply the sums. So a row of which
labels are missing is, in every statistic, the row without these labels.
"""

from __future__ import annotations

import numpy as np

from .._support.compiled import compiled
from . import kernels as kernels
from .kernels import (
    COVERAGE,
    CROSS_ENTROPY,
    EXAMPLE_F1,
    HITS,
    JACCARD,
    LRAP,
    ONE_ERROR,
    PREDICTED,
    RANKING,
    RELEVANT,
    ROW_LOG_LOSS,
    SUBSET,
    WRONG,
)

# Outputs count as no larger than this, so that differences are numbers.
LARGEST = np.float32(1e37)

# What is kept of a row: outputs, weights of relevant and of other labels.
OUTPUT, OWN, OTHER = range(3)
# Numbers of labels; which of those kept are relevant.
LABEL, RELEVANT_AT = range(2)


@compiled(inline=True)
def keep_observed(scores, truth, cells, kept, places):  # type: ignore[no-untyped-def]
    """Write down the labels of a row that are not missing, and count them.

    Parameters
    ----------
    scores : float array (K,)
    truth : uint8 array (K,), or float32
        Without cells it may hold shares: a label is then relevant by its share, and
        irrelevant by the rest.
    cells : float32 array (K,), or of no entries: every weight is 1
    kept : float32 array (3 or more, at least K), overwritten
        ``OUTPUT``, ``OWN`` and ``OTHER`` of each label that is not missing. ``OWN``
        is its weight if it is relevant, otherwise 0, ``OTHER`` the reverse.
    places : int64 array (2 or more, at least K), overwritten
        ``LABEL``: its number. ``RELEVANT_AT``: where those are that are relevant.

    Returns
    -------
    n, n_relevant : int
        Labels that are not missing, and relevant ones among them; n is −1 if an
        output of one is NaN.
    """
    if cells.shape[0] == 0:
        return _keep_all(scores, truth, kept, places)
    n = 0
    n_relevant = 0
    undefined = False
    for k in range(scores.shape[0]):
        observed = cells[k] > 0
        undefined |= observed and scores[k] != scores[k]
        relevant = truth[k] == 1
        # What is missing is written over by the next one.
        kept[OUTPUT, n] = min(max(scores[k], -LARGEST), LARGEST)
        kept[OWN, n] = cells[k] if relevant else np.float32(0)
        kept[OTHER, n] = np.float32(0) if relevant else cells[k]
        places[LABEL, n] = k
        places[RELEVANT_AT, n_relevant] = n
        n += observed
        n_relevant += observed and relevant
    return (-1 if undefined else n), n_relevant


@compiled(inline=True)
def _keep_all(scores, truth, kept, places):  # type: ignore[no-untyped-def]
    """Do what ``keep_observed`` does where nothing is missing: no branches."""
    n = scores.shape[0]
    n_relevant = 0
    for k in range(n):
        score = scores[k]
        score = score if score < LARGEST else LARGEST
        kept[OUTPUT, k] = score if score > -LARGEST else -LARGEST
        kept[OWN, k] = truth[k]
        kept[OTHER, k] = 1 - truth[k]
    for k in range(n):
        places[LABEL, k] = k
        places[RELEVANT_AT, n_relevant] = k
        n_relevant += truth[k] > 0
    return (-1 if kernels._count_nan(scores) > 0 else n), n_relevant


@compiled
def _add_decisions(kept, n, threshold, weight, want_example, totals):  # type: ignore[no-untyped-def]
    wrong = hits = predicted = relevant = 0.0
    for i in range(n):
        own, other = np.float64(kept[OWN, i]), np.float64(kept[OTHER, i])
        relevant += own
        if kept[OUTPUT, i] > threshold:
            hits += own
            predicted += own + other
            wrong += other
        else:
            wrong += own
    totals[WRONG] += weight * wrong
    totals[HITS] += weight * hits
    totals[PREDICTED] += weight * predicted
    totals[RELEVANT] += weight * relevant
    if want_example:
        if wrong > 0:
            totals[SUBSET] += weight
        if hits > 0:
            size = predicted + relevant
            totals[JACCARD] += weight * (hits / (size - hits))
            totals[EXAMPLE_F1] += weight * (2 * hits / size)


@compiled(reorder=True)
def _weigh_at_least(kept, n, value):  # type: ignore[no-untyped-def]
    """Return the weights of relevant and of other labels at least as high."""
    own = others = 0.0
    for i in range(n):
        above = np.float32(kept[OUTPUT, i] >= value)
        own += above * kept[OWN, i]
        others += above * kept[OTHER, i]
    return own, others


@compiled
def _add_ranking(kept, places, n, n_relevant, weight, ks, count, totals):  # type: ignore[no-untyped-def]
    """Add statistics of the order; ``count`` has the shape of ``totals``."""
    relevant = np.empty(n_relevant, np.float32)
    own = others = precision = swapped = 0.0
    for a in range(n_relevant):
        relevant[a] = kept[OUTPUT, places[RELEVANT_AT, a]]
    count[:] = 0
    kernels._add_ranking(kept[OUTPUT, :n], relevant, weight, ks, count)
    totals[COVERAGE] += count[COVERAGE]
    totals[ONE_ERROR] += count[ONE_ERROR]
    totals[kernels.N_COLUMNS :] += count[kernels.N_COLUMNS :]
    if n_relevant == 0 or n_relevant == n:
        totals[LRAP] += weight
        return
    for i in range(n):
        own += kept[OWN, i]
        others += kept[OTHER, i]
    for a in range(n_relevant):
        above, others_above = _weigh_at_least(kept, n, relevant[a])
        cell = kept[OWN, places[RELEVANT_AT, a]]
        precision += cell * (above / (above + others_above))
        swapped += cell * others_above
    totals[LRAP] += weight * (precision / own)
    totals[RANKING] += weight * (swapped / (own * others))


@compiled
def log_sigmoid(z):  # type: ignore[no-untyped-def]
    """Return ln(1 / (1 + e^−z))."""
    return min(z, 0.0) - np.log1p(np.exp(-abs(z)))


@compiled
def log_mass(kept, n):  # type: ignore[no-untyped-def]
    """Return the logarithm of the sum of the labels' probabilities."""
    largest = -np.inf
    for i in range(n):
        largest = max(largest, np.float64(kept[OUTPUT, i]))
    largest = log_sigmoid(largest)
    mass = 0.0
    for i in range(n):
        mass += np.exp(log_sigmoid(np.float64(kept[OUTPUT, i])) - largest)
    return largest + np.log(mass)


@compiled
def add_log_losses(kept, n, weight, totals):  # type: ignore[no-untyped-def]
    """Add cross-entropy and row log loss of a row that was kept."""
    entropy = row = 0.0
    mass = log_mass(kept, n) if n > 0 else 0.0
    for i in range(n):
        z = np.float64(kept[OUTPUT, i])
        own, other = kept[OWN, i], kept[OTHER, i]
        entropy -= own * log_sigmoid(z) + other * log_sigmoid(-z)
        row -= own * (log_sigmoid(z) - mass)
    totals[CROSS_ENTROPY] += weight * entropy
    totals[ROW_LOG_LOSS] += weight * row


@compiled
def accumulate_cells(  # type: ignore[no-untyped-def]
    scores,
    dense,
    weight,
    cells,
    threshold,
    want_ranking,
    want_example,
    want_probability,
    want_labels,
    ks,
    totals,
    label_totals,
):
    """Add the statistics of rows whose cells have weights to the totals.

    What ``_kernels.accumulate`` does for one candidate, with ``cells`` (rows, K) and
    ``totals`` and ``label_totals`` of shapes (13 + number of ks,) and (3, K).
    """
    rows, n_labels = scores.shape
    kept = np.empty((3, n_labels), np.float32)
    places = np.empty((2, n_labels), np.int64)
    count = np.empty_like(totals)
    for r in range(rows):
        w = weight[r]
        if w == 0:
            continue
        n, n_relevant = keep_observed(scores[r], dense[r], cells[r], kept, places)
        if n < 0:
            totals[:] = np.nan
            label_totals[:] = np.nan
            continue
        _add_decisions(kept, n, threshold, w, want_example, totals)
        if want_ranking:
            _add_ranking(kept, places, n, n_relevant, w, ks, count, totals)
        if want_probability:
            add_log_losses(kept, n, w, totals)
        if want_labels:
            for i in range(n):
                k = places[LABEL, i]
                own = w * kept[OWN, i]
                decided = kept[OUTPUT, i] > threshold
                label_totals[0, k] += own * decided
                label_totals[1, k] += (own + w * kept[OTHER, i]) * decided
                label_totals[2, k] += own
