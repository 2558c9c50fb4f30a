"""Sums of row statistics for a whole population, compiled.

One pass over the scores serves every statistic. Ranks are counted over the relevant
labels of a row only, |y|·K comparisons that the compiler turns into vector
instructions: no score is ever sorted. Counts are kept in float32, where they are exact
(far below 2²⁴) and where the comparison masks have the width of the scores; sums over
rows are float64.

The kernels are serial and release the interpreter lock: callers run them in threads
of their own.
"""

from __future__ import annotations

import numpy as np

from .._support.compiled import compiled

# Columns of the totals; the names are those of ``_statistics.SCALAR_STATISTICS``.
WRONG, HITS, PREDICTED, RELEVANT, SUBSET, JACCARD, EXAMPLE_F1 = range(7)
LRAP, RANKING, COVERAGE, ONE_ERROR, CROSS_ENTROPY, ROW_LOG_LOSS = range(7, 13)
N_COLUMNS = 13


@compiled(reorder=True)
def _count_at_least(scores, value):  # type: ignore[no-untyped-def]
    count = np.float32(0)
    for k in range(scores.shape[0]):
        count += np.float32(scores[k] >= value)
    return count


@compiled(reorder=True)
def _count_above(scores, value):  # type: ignore[no-untyped-def]
    count = np.float32(0)
    for k in range(scores.shape[0]):
        count += np.float32(scores[k] > value)
    return count


@compiled(reorder=True)
def _count_nan(scores):  # type: ignore[no-untyped-def]
    count = np.float32(0)
    for k in range(scores.shape[0]):
        count += np.float32(scores[k] != scores[k])
    return count


@compiled
def _add_ranking(scores, relevant, weight, ks, totals):  # type: ignore[no-untyped-def]
    """Statistics of the order of the scores; ``relevant`` are those of the row."""
    n_labels = scores.shape[0]
    n_relevant = relevant.shape[0]
    precision = 0.0
    swapped = 0.0
    coverage = np.float32(0)
    top_is_relevant = False
    for j in range(n_relevant):
        rank = _count_at_least(scores, relevant[j])
        relevant_rank = _count_at_least(relevant, relevant[j])
        precision += np.float64(relevant_rank) / np.float64(rank)
        others_above = rank - relevant_rank
        swapped += others_above
        coverage = max(coverage, rank)
        top_is_relevant |= others_above == 0
        if ks.shape[0]:
            # Place among the relevant ones: strictly higher, or tied and earlier.
            place = np.float32(0)
            for m in range(n_relevant):
                place += np.float32(
                    relevant[m] > relevant[j] or (relevant[m] == relevant[j] and m < j)
                )
            for c in range(ks.shape[0]):
                if place + others_above < ks[c]:
                    totals[N_COLUMNS + c] += weight
    if n_relevant == 0 or n_relevant == n_labels:
        totals[LRAP] += weight
    else:
        totals[LRAP] += weight * (precision / n_relevant)
        totals[RANKING] += weight * (swapped / (n_relevant * (n_labels - n_relevant)))
    totals[COVERAGE] += weight * coverage
    if not top_is_relevant:
        totals[ONE_ERROR] += weight


@compiled
def _add_probability(scores, truth, weight, totals):  # type: ignore[no-untyped-def]
    """Cross-entropies of the row; the sigmoid of a score is its probability.

    Logarithms are summed as that of a product, which is taken once a row, or before
    it would leave the range of a double.
    """
    n_labels = scores.shape[0]
    entropy = row = mass = 0.0
    product = own = 1.0
    n_relevant = 0
    largest = -np.inf
    for k in range(n_labels):
        z = np.float64(scores[k])
        e = np.exp(-abs(z))
        factor = 1.0 + e
        product *= factor
        if truth[k]:
            n_relevant += 1
            entropy += max(-z, 0.0)
            row -= min(z, 0.0)
            own *= factor
        else:
            entropy += max(z, 0.0)
        if product > 1e150:
            entropy += np.log(product)
            row += np.log(own)
            product = own = 1.0
        mass += (1.0 if z >= 0.0 else e) / factor
        largest = max(largest, z)
    # Far below zero the probabilities vanish, and their logarithms are the scores.
    log_mass = np.log(mass)
    if largest < -600.0:
        mass = 0.0
        for k in range(n_labels):
            mass += np.exp(np.float64(scores[k]) - largest)
        log_mass = largest + np.log(mass)
    totals[CROSS_ENTROPY] += weight * (entropy + np.log(product))
    if n_relevant:  # also where the mass has no logarithm
        totals[ROW_LOG_LOSS] += weight * (row + np.log(own) + n_relevant * log_mass)


@compiled
def accumulate(  # type: ignore[no-untyped-def]
    scores,
    start,
    dense,
    indptr,
    indices,
    weight,
    threshold,
    want_ranking,
    want_example,
    want_probability,
    want_labels,
    ks,
    totals,
    label_totals,
):
    """Add the statistics of a block of rows to the totals of a population.

    Parameters
    ----------
    scores : float array (population, rows, K)
    start : int
        The targets' row that the first row of the block is.
    dense, indptr, indices, weight
        The fields of ``RowTargets``.
    threshold : float
        A label is decided for when its score is above it.
    want_ranking, want_example, want_probability, want_labels : bool
        Which groups of statistics to compute; wrong, hits, predicted and relevant
        always are.
    ks : int array
        The k of each precision-at-k.
    totals : float64 array (population, 13 + number of ks), added to
    label_totals : float64 array (population, 3, K), added to
        Hits, predicted and relevant per label.
    """
    population, rows, n_labels = scores.shape
    buffer = np.empty(n_labels, scores.dtype)
    for p in range(population):
        for i in range(rows):
            row = start + i
            s = scores[p, i]
            w = weight[row]
            if w == 0:
                continue
            if _count_nan(s) > 0:
                totals[p, :] = np.nan
                label_totals[p] = np.nan
                continue
            first, last = indptr[row], indptr[row + 1]
            n_relevant = last - first
            relevant = buffer[:n_relevant]
            for j in range(n_relevant):
                relevant[j] = s[indices[first + j]]
            predicted = _count_above(s, threshold)
            hits = _count_above(relevant, threshold)
            wrong = predicted + n_relevant - 2 * hits
            totals[p, WRONG] += w * wrong
            totals[p, HITS] += w * hits
            totals[p, PREDICTED] += w * predicted
            totals[p, RELEVANT] += w * n_relevant
            if want_example:
                if wrong > 0:
                    totals[p, SUBSET] += w
                if hits > 0:
                    size = np.float64(predicted + n_relevant)
                    totals[p, JACCARD] += w * (hits / (size - hits))
                    totals[p, EXAMPLE_F1] += w * (2 * hits / size)
            if want_ranking:
                _add_ranking(s, relevant, w, ks, totals[p])
            if want_probability:
                _add_probability(s, dense[row], w, totals[p])
            if want_labels:
                for k in range(n_labels):
                    decided = s[k] > threshold
                    label_totals[p, 0, k] += w * (decided and dense[row, k] == 1)
                    label_totals[p, 1, k] += w * decided
                    label_totals[p, 2, k] += w * dense[row, k]
