"""Credit of single outputs: how the losses of a row change when one output moves.

The losses jump, so they have no useful derivative in the outputs of a network. But
they are closing formulas of sums over rows. The closing formulas are smooth, and what
one row adds to the sums can be seen for any outputs of that row. So two steps give
every output its credit, from the losses themselves:

1. :func:`measure_gradient` prices a unit of each sum: the derivative of
   ln Π(2 − L), the logarithm of the Lebesgue measure, in that sum;
2. :func:`output_gradient` moves each output of each row up and down and adds up, at
   these prices, what the row's statistics would be.

Moving output k of a row changes the rank of another label by one at most, and only if
k passes it. The ranks are therefore counted once a row, and a move costs |y|
comparisons, vectorised over the labels; see ``_add_rank_changes``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.compiled import compiled
from . import kernels as kernels
from ._loss import Loss, MatrixLoss
from ._loss_set import LossSet, Statistics, Totals
from ._registry import get_losses
from ._targets import RowTargets
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
    ROW_LOG_LOSS,
    SUBSET,
    WRONG,
)
from .statistics import (
    LABEL_STATISTICS,
    Statistic,
    built_in_statistic,
)

# Central differences: relative steps, and for sums near 0 relative to the weight.
_STEP = 1e-4
_SMALL_SHARE = 1e-4
# The measure is that below twice the worst loss: below the worst itself a network at
# the start, with some loss at 1, would have a measure of 0 and care for nothing else.
_REFERENCE = 2.0

# Numbers of a population whose losses are closed at a time.
_MOST_NUMBERS = 2**19
_FEW = 16
# Where statistics stand in the totals of labels.
_LABEL_ROW = {s.name: i for i, s in enumerate(LABEL_STATISTICS)}

# Re-evaluated for each move, as the hits among the k highest are.
_REEVALUATED_ORDER = [COVERAGE, ONE_ERROR]
_PROBABILITY = [CROSS_ENTROPY, ROW_LOG_LOSS]


@dataclass(frozen=True, eq=False)
class StatisticWeights:
    """What a unit of each statistic's sum is worth.

    Attributes
    ----------
    columns : float64 array (13 + number of ks,)
        In the order of ``Totals.columns``; 0 for statistics that no loss needs.
    labels : float64 array (3, K)
        Hits, predicted and relevant of each label.
    """

    columns: NDArray[np.float64]
    labels: NDArray[np.float64]


def supports_gradient(losses: Any) -> bool:
    """Whether :func:`output_gradient` can be had for these losses.

    It can for losses made of built-in row statistics, whoever wrote their closing
    formulas. Losses of the whole score matrix have no row statistics, and statistics
    of a user's own would be re-evaluated in Python for each output.

    Parameters
    ----------
    losses : sequence of losses, as everywhere: names, classes, instances or functions

    Examples
    --------
    >>> from clml.losses import supports_gradient
    >>> supports_gradient(("hamming", "lrap", "micro_f1"))
    True
    >>> supports_gradient(("hamming", "macro_auc"))
    False
    """
    return all(_made_of_built_in_statistics(loss) for loss in get_losses(losses))


def _made_of_built_in_statistics(loss: Loss) -> bool:
    if isinstance(loss, MatrixLoss):
        return False
    return all(built_in_statistic(s.name) == s for s in loss.resolved_statistics())


def _check_supported(loss_set: LossSet) -> None:
    if loss_set.is_built_in:
        return
    refused = [x.name for x in loss_set.losses if not _made_of_built_in_statistics(x)]
    raise ValueError(
        "Credit needs losses made of built-in row statistics "
        f"(clml.losses.STATISTICS), got {refused}."
    )


def measure_gradient(
    loss_set: LossSet, totals: Totals, weight: float
) -> StatisticWeights:
    """Return the derivative of ln Π(2 − L) in the sum of each statistic.

    By central differences of the losses' closing formulas; a derivative that is not
    finite counts as 0.

    Parameters
    ----------
    loss_set : LossSet
    totals : Totals
        Of one candidate: the sums where the derivative is taken.
    weight : float
        Sum of the row weights behind the totals.

    Returns
    -------
    StatisticWeights

    Examples
    --------
    Two rows of two labels, one decision wrong: the loss is 1/4 and another wrong
    decision would add 1/4. So its price is −(1/4) / (2 − 1/4).

    >>> import numpy as np
    >>> from clml.losses import LossSet, RowTargets, get_losses, measure_gradient
    >>> loss_set = LossSet(get_losses(("hamming",)), n_labels=2)
    >>> totals = loss_set.new_totals(1)
    >>> targets = RowTargets.from_indicator([[1, 0], [0, 1]])
    >>> loss_set.accumulate(totals, np.array([[[1.0, -1.0], [1.0, 1.0]]]), targets)
    >>> measure_gradient(loss_set, totals, 2.0).columns[0].round(6)
    np.float64(-0.142857)
    """
    found = measure_gradients(loss_set, totals, weight)
    return StatisticWeights(found.columns[0], found.labels[0])


def measure_gradients(
    loss_set: LossSet, totals: Totals, weight: float
) -> StatisticWeights:
    """Return :func:`measure_gradient` of each of several candidates.

    Parameters
    ----------
    loss_set : LossSet
    totals : Totals
        Of the candidates.
    weight : float
        Sum of the row weights behind the totals of each.

    Returns
    -------
    StatisticWeights
        With one more axis, of the candidates, in front.
    """
    _check_supported(loss_set)
    statistics = loss_set.statistics(totals, weight)
    n = len(totals.columns)
    columns = np.zeros((n, N_COLUMNS + len(loss_set._ks)))
    labels = np.zeros((n, len(LABEL_STATISTICS), loss_set.n_labels))
    for loss, needed in zip(loss_set.losses, loss_set.made_of, strict=True):
        values, slopes = _slopes(loss, needed, statistics, loss_set.n_labels)
        slopes = slopes * _price_of_loss(values)[:, None]
        slopes[~np.isfinite(slopes)] = 0.0
        place = 0
        for statistic in needed:
            if statistic.per_label:
                end = place + loss_set.n_labels
                labels[:, _LABEL_ROW[statistic.name]] += slopes[:, place:end]
            else:
                end = place + 1
                columns[:, loss_set.column(statistic.name)] += slopes[:, place]
            place = end
    return StatisticWeights(columns, labels)


def _price_of_loss(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the derivative of ln(2 − L) in losses L."""
    return -1.0 / (_REFERENCE - np.minimum(np.maximum(losses, 0.0), 1.0))


def _signs(first: int, last: int, n: int) -> NDArray[np.float64]:
    """Return 0 for n entries, then 1 for each of some, then −1: (1 + 2·some, n)."""
    some = np.eye(last - first, n, k=first)
    return np.concatenate([np.zeros((1, n)), some, -some])


# Those of the losses that close a handful of sums, many times an epoch.
_signs_of_all = lru_cache(lambda n: _signs(0, n, n))


def _slopes(
    loss: Loss,
    needed: tuple[Statistic, ...],
    statistics: Statistics,
    n_labels: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a loss of each candidate, and its derivatives (candidates, entries).

    The closing formula is called for populations: the sums as they are, then with
    some entries moved, each up and then each down.
    """
    if is_affine(loss):
        name = needed[0].name
        values = loss.close({name: statistics.sums[name]}, statistics.weight, n_labels)
        slope = affine_slope(loss, name, statistics.weight, n_labels)
        return np.asarray(values), np.full((len(values), 1), slope)
    ends, totals = [0], []
    for statistic in needed:
        total = statistics.sums[statistic.name]
        totals.append(total if statistic.per_label else total[:, None])
        ends.append(ends[-1] + (n_labels if statistic.per_label else 1))
    flat = np.concatenate(totals, axis=1)
    n_candidates, n = flat.shape
    step = _STEP * np.maximum(np.abs(flat), _SMALL_SHARE * statistics.weight)
    at_once = max(1, _MOST_NUMBERS // (n * n_candidates))
    slopes = np.empty_like(flat)
    for first in range(0, n, at_once):
        last = min(first + at_once, n)
        all_few = last - first == n <= _FEW
        signs = _signs_of_all(n) if all_few else _signs(first, last, n)
        moved = flat[:, None] + signs * step[:, None]
        moved = moved.reshape(-1, n)
        sums = {
            statistic.name: moved[:, a:b] if statistic.per_label else moved[:, a]
            for statistic, a, b in zip(needed, ends, ends[1:], strict=False)
        }
        values = np.asarray(loss.close(sums, statistics.weight, n_labels))
        values = values.reshape(n_candidates, -1)
        middle = 1 + (last - first)
        up, down = values[:, 1:middle], values[:, middle:]
        with np.errstate(invalid="ignore"):  # losses that are not finite
            slopes[:, first:last] = (up - down) / (2 * step[:, first:last])
    return values[:, 0], slopes


def is_affine(loss: Loss) -> bool:
    """Whether a loss says so itself: a subclass may have another closing formula."""
    return bool(vars(type(loss)).get("affine", False))


@lru_cache(maxsize=256)
def affine_slope(loss: Loss, name: str, weight: float, n_labels: int) -> float:
    """Return the derivative of an affine loss, the same at every sum."""
    # Rows have some of each statistic on average, between none and 1: within bounds.
    sums = {name: np.array([0.25, 0.75]) * weight}
    low, high = loss.close(sums, weight, n_labels)
    return float((high - low) / (0.5 * weight))


def output_gradient(
    scores: NDArray[np.float32],
    targets: RowTargets,
    rows: NDArray[np.integer],
    shifts: NDArray[np.float32],
    gains: NDArray[np.float32],
    weights: StatisticWeights,
    loss_set: LossSet,
) -> tuple[NDArray[np.float32], Totals]:
    """Return what moving each output of each row is worth.

    With v(z) the weighted sum of a row's statistics, w its weight and e_k the k-th
    unit vector, output k of the row has the credit

        w · gain · [v(z + shift·e_k) − v(z − shift·e_k)].

    Shifts σ·|ξ| and gains |ξ| / (2σ) with standard normal ξ make its expectation the
    derivative in z_k of v smoothed along z_k with a Gaussian of deviation σ.

    Parameters
    ----------
    scores : float32 array (rows, K)
        Finite or infinite. A row with NaN has credit 0 and makes the totals NaN.
    targets : RowTargets
        Of all rows.
    rows : int array (rows,)
        Which of the targets' rows the scores belong to, in any order, repeats allowed.
    shifts : float32 array (rows, K), not negative
    gains : float32 array (rows, K)
    weights : StatisticWeights
        From :func:`measure_gradient`; larger values are better.
    loss_set : LossSet

    Returns
    -------
    credit : float32 array (rows, K)
        0 in rows of weight 0.
    totals : Totals
        The statistics of the scores as they are, for a population of one.

    Examples
    --------
    A relevant label just below the threshold, an irrelevant one far below:

    >>> import numpy as np
    >>> from clml.losses import LossSet, RowTargets, get_losses
    >>> from clml.losses import output_gradient, measure_gradient
    >>> loss_set = LossSet(get_losses(("hamming",)), n_labels=2)
    >>> targets = RowTargets.from_indicator([[1, 0]])
    >>> scores = np.array([[-0.5, -3.0]], dtype=np.float32)
    >>> totals = loss_set.new_totals(1)
    >>> loss_set.accumulate(totals, scores[None], targets)
    >>> weights = measure_gradient(loss_set, totals, 1.0)
    >>> ones = np.ones((1, 2), dtype=np.float32)
    >>> credit, _ = output_gradient(
    ...     scores, targets, np.array([0]), ones, ones, weights, loss_set
    ... )
    >>> credit
    array([[0.33333334, 0.        ]], dtype=float32)
    """
    _check_supported(loss_set)
    _check_arrays(scores, targets, rows, shifts, gains)
    batch = targets.take(rows)
    totals = loss_set.new_totals(1)
    loss_set.accumulate(totals, scores[None], batch)
    credit = np.empty_like(scores)
    columns = weights.columns
    _credit_rows(
        scores,
        batch.dense,
        batch.indptr,
        batch.indices,
        batch.weight,
        np.float32(loss_set.threshold),
        shifts,
        gains,
        columns,
        weights.labels,
        bool(columns[_REEVALUATED_ORDER].any() or columns[N_COLUMNS:].any()),
        bool(columns[_PROBABILITY].any()),
        loss_set._ks,
        credit,
    )
    return credit, totals


def _check_arrays(
    scores: NDArray,
    targets: RowTargets,
    rows: NDArray,
    shifts: NDArray,
    gains: NDArray,
) -> None:
    expected = (len(rows), targets.n_labels)
    named = {"scores": scores, "shifts": shifts, "gains": gains}
    for name, array in named.items():
        if array.shape != expected or array.dtype != np.float32:
            raise ValueError(
                f"{name} must be float32 of shape {expected}, one row for each of "
                f"rows, got {array.dtype} of shape {array.shape}."
            )
    if not (shifts >= 0).all():
        raise ValueError(f"shifts must not be negative, got {shifts.min()}.")


@compiled
def _decision_value(hits, predicted, n_relevant, columns):  # type: ignore[no-untyped-def]
    """Worth of the statistics that the decisions of a row give."""
    wrong = predicted + n_relevant - 2 * hits
    value = columns[WRONG] * wrong + columns[HITS] * hits
    value += columns[PREDICTED] * predicted
    if wrong > 0:
        value += columns[SUBSET]
    if hits > 0:
        size = np.float64(predicted + n_relevant)
        value += columns[JACCARD] * (hits / (size - hits))
        value += columns[EXAMPLE_F1] * (2 * hits / size)
    return value


@compiled
def _add_decision_changes(  # type: ignore[no-untyped-def]
    scores, truth, n_relevant, threshold, low, high, columns, labels, change
):
    """Add what each label's decision is worth, where the move changes it."""
    n_labels = scores.shape[0]
    hits = 0
    predicted = 0
    for k in range(n_labels):
        decided = scores[k] > threshold
        predicted += decided
        hits += decided & (truth[k] == 1)
    # Worth of deciding for a label, by whether it is relevant and decided for now.
    worth = (
        _decision_value(hits, predicted + 1, n_relevant, columns)
        - _decision_value(hits, predicted, n_relevant, columns),
        _decision_value(hits, predicted, n_relevant, columns)
        - _decision_value(hits, predicted - 1, n_relevant, columns),
        _decision_value(hits + 1, predicted + 1, n_relevant, columns)
        - _decision_value(hits, predicted, n_relevant, columns),
        _decision_value(hits, predicted, n_relevant, columns)
        - _decision_value(hits - 1, predicted - 1, n_relevant, columns),
    )
    for k in range(n_labels):
        if high[k] > threshold and not low[k] > threshold:
            decided = scores[k] > threshold
            if truth[k] == 1:
                value = worth[3] if decided else worth[2]
                value += labels[0, k]
            else:
                value = worth[1] if decided else worth[0]
            change[k] += np.float32(value + labels[1, k])


@compiled
def _rank_value(relevant_rank, rank, precision, swap):  # type: ignore[no-untyped-def]
    """Worth of a relevant label's place: LRAP's share, and others above it."""
    return precision * (relevant_rank / rank) + swap * (rank - relevant_rank)


@compiled(reorder=True)
def _add_passing(scores, low, high, value, below, above, change):  # type: ignore[no-untyped-def]
    """Add what passing a label of score ``value`` is worth, to the labels that can.

    A label counts in its rank if it scores at least as high. ``below`` is the worth
    if the passing label does not count now, ``above`` if it does.
    """
    for k in range(scores.shape[0]):
        step = above if scores[k] >= value else below
        passes = (low[k] < value) & (high[k] >= value)
        change[k] += step if passes else np.float32(0)


@compiled(reorder=True)
def _sum_passing(score, low, high, relevant, below, above, itself):  # type: ignore[no-untyped-def]
    """Return what a relevant label's move is worth through the others it passes."""
    total = np.float32(0)
    for a in range(relevant.shape[0]):
        value = relevant[a]
        step = above[a] if score >= value else below[a]
        passes = (low < value) & (high >= value) & (a != itself)
        total += step if passes else np.float32(0)
    return total


@compiled
def _add_rank_changes(  # type: ignore[no-untyped-def]
    scores, labels, relevant, low, high, precision, swap, steps, change
):
    """Add what the ranks of the relevant labels are worth when one output moves.

    Relevant label a stands at rank r among all labels and q among the relevant ones,
    both counting itself. A move of k from below to above it gives r + 1, and q + 1 if
    k is relevant too; with k above it now, the same step starts from r − 1. Only the
    rank of the moved label itself, if relevant, is counted anew.

    Parameters
    ----------
    scores, low, high : float32 arrays (K,)
    labels, relevant : arrays (|y|,)
        The relevant labels, and their scores.
    precision, swap : float
        Worth of q / r and of r − q.
    steps : float32 array (5, K), overwritten
    change : float32 array (K,), added to
    """
    n_relevant = relevant.shape[0]
    other_below, other_above = steps[0], steps[1]
    relevant_below, relevant_above = steps[2], steps[3]
    moved_relevant = steps[4]
    for a in range(n_relevant):
        r = np.float64(kernels._count_at_least(scores, relevant[a]))
        q = np.float64(kernels._count_at_least(relevant, relevant[a]))
        now = _rank_value(q, r, precision, swap)
        other_below[a] = _rank_value(q, r + 1, precision, swap) - now
        # Nobody is above: never used, and 1 / 0.
        other_above[a] = 0
        relevant_above[a] = 0
        if r > q:
            other_above[a] = now - _rank_value(q, r - 1, precision, swap)
        relevant_below[a] = _rank_value(q + 1, r + 1, precision, swap) - now
        if q > 1:
            relevant_above[a] = now - _rank_value(q - 1, r - 1, precision, swap)
    for b in range(n_relevant):
        k = labels[b]
        up = _own_rank_value(scores, relevant, relevant[b], high[k], precision, swap)
        down = _own_rank_value(scores, relevant, relevant[b], low[k], precision, swap)
        passing = _sum_passing(
            relevant[b],
            low[k],
            high[k],
            relevant,
            relevant_below[:n_relevant],
            relevant_above[:n_relevant],
            b,
        )
        moved_relevant[b] = change[k] + np.float32(up - down) + passing
    for a in range(n_relevant):
        _add_passing(
            scores, low, high, relevant[a], other_below[a], other_above[a], change
        )
    for b in range(n_relevant):
        change[labels[b]] = moved_relevant[b]


@compiled
def _own_rank_value(scores, relevant, before, after, precision, swap):  # type: ignore[no-untyped-def]
    """Worth of the place of a label that moved from ``before`` to ``after``."""
    # Itself it counts always; the counts see it where it was.
    missing = np.float64(before < after)
    r = kernels._count_at_least(scores, after) + missing
    q = kernels._count_at_least(relevant, after) + missing
    return _rank_value(q, r, precision, swap)


@compiled
def _credit_rows(  # type: ignore[no-untyped-def]
    scores,
    dense,
    indptr,
    indices,
    weight,
    threshold,
    shifts,
    gains,
    columns,
    labels,
    want_order,
    want_probability,
    ks,
    credit,
):
    """Fill the credit (rows, K); see ``output_gradient``.

    ``want_order`` and ``want_probability`` say which groups of statistics have to be
    re-evaluated for each move.
    """
    rows, n_labels = scores.shape
    low = np.empty(n_labels, np.float32)
    high = np.empty(n_labels, np.float32)
    change = np.empty(n_labels, np.float32)
    values = np.empty(n_labels, np.float32)
    steps = np.empty((5, n_labels), np.float32)
    moved = np.empty((2, 1, n_labels), np.float32)
    totals = np.empty((2, columns.shape[0]))
    no_labels = np.empty((2, 3, 0))
    for i in range(rows):
        s = scores[i]
        if weight[i] == 0 or kernels._count_nan(s) > 0:
            credit[i, :] = 0
            continue
        for k in range(n_labels):
            low[k] = s[k] - shifts[i, k]
            high[k] = s[k] + shifts[i, k]
            change[k] = 0
        here = indices[indptr[i] : indptr[i + 1]]
        n_relevant = here.shape[0]
        _add_decision_changes(
            s, dense[i], n_relevant, threshold, low, high, columns, labels, change
        )
        ranked = 0 < n_relevant < n_labels
        if ranked and (columns[LRAP] != 0 or columns[RANKING] != 0):
            relevant = values[:n_relevant]
            for a in range(n_relevant):
                relevant[a] = s[here[a]]
            precision = columns[LRAP] / n_relevant
            swap = columns[RANKING] / (n_relevant * (n_labels - n_relevant))
            _add_rank_changes(
                s, here, relevant, low, high, precision, swap, steps, change
            )
        for k in range(n_labels):
            credit[i, k] = weight[i] * gains[i, k] * change[k]
        if want_order or want_probability:
            moved[:, 0] = s
            for k in range(n_labels):
                moved[0, 0, k] = high[k]
                moved[1, 0, k] = low[k]
                totals[:] = 0
                kernels.accumulate(
                    moved,
                    i,
                    dense,
                    indptr,
                    indices,
                    weight,
                    threshold,
                    want_order,
                    False,
                    want_probability,
                    False,
                    ks,
                    totals,
                    no_labels,
                )
                moved[:, 0, k] = s[k]
                value = 0.0
                for c in range(COVERAGE, columns.shape[0]):
                    if columns[c] != 0:
                        value += columns[c] * (totals[0, c] - totals[1, c])
                if np.isfinite(value):
                    credit[i, k] += gains[i, k] * value
