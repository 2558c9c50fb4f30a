"""Gradients of smoothed losses in closed form.

Losses jump, so they have no useful derivative in the outputs of a network. With
independent Gaussian noise of deviation σ on every output their expectations do: where
output z_k decides with probability p_k = Φ((z_k − threshold)/σ), and label i is above
label j with probability Φ((z_i − z_j)/(σ√2)), the statistics of a row become

- wrong, hits, predicted, also per label: sums of p_k; subset: 1 minus the product of
  the probabilities of right decisions; ranking: a sum over pairs. All three exactly;
- LRAP, Jaccard, F1 of a row: their formulas of expected counts, which is not the
  expectation of the formula;
- coverage, one-error, hits among the k highest: one output has noise at a time, the
  others stand still. What jumps by h as output k passes t has the derivative
  h·φ((t − z_k)/σ)/σ, exactly, and there are few such t;
- cross-entropy and row log loss: smooth as they are.

:func:`~clml.losses.measure_gradient` prices the sums of these statistics, and
:func:`smoothed_gradient` is the derivative of what a row adds, at these prices.

How far formulas of expected counts are from the expectation: 200 rows whose outputs
are normal with deviation 1.5 around 1 for relevant labels and −1 for others; the mean
expectation, by 4,000 draws of noise a row (1,000 with 174 labels), in brackets the
formula minus it on average, and their correlation over the rows. The noise in the
counts makes LRAP's formula too low, everywhere, and more so with more noise; it orders
rows as the expectation does. F1 and Jaccard are nearer the more labels there are.

=========  =====  =====================  =====================  =====================
labels,
relevant   σ      LRAP                   F1 of a row            Jaccard
=========  =====  =====================  =====================  =====================
6, 2       0.25   0.851 (−0.008) 0.997   0.688 (+0.003) 0.999   0.578 (−0.005) 0.999
6, 2       0.5    0.843 (−0.019) 0.993   0.681 (+0.004) 0.998   0.569 (−0.012) 0.998
6, 2       1      0.817 (−0.044) 0.985   0.653 (+0.007) 0.996   0.535 (−0.019) 0.994
14, 5      0.25   0.777 (−0.008) 0.999   0.663 (+0.000) 1.000   0.520 (−0.003) 1.000
14, 5      0.5    0.766 (−0.021) 0.997   0.655 (+0.001) 1.000   0.511 (−0.005) 1.000
14, 5      1      0.733 (−0.051) 0.990   0.628 (+0.002) 0.999   0.481 (−0.008) 0.999
53, 4      0.25   0.462 (−0.017) 0.996   0.309 (−0.001) 1.000   0.190 (−0.001) 1.000
53, 4      0.5    0.445 (−0.043) 0.991   0.301 (−0.001) 1.000   0.184 (−0.002) 1.000
53, 4      1      0.394 (−0.096) 0.974   0.274 (−0.001) 1.000   0.164 (−0.003) 1.000
174, 27    0.25   0.533 (−0.009) 0.999   0.471 (−0.000) 1.000   0.311 (−0.000) 1.000
174, 27    0.5    0.516 (−0.029) 0.996   0.461 (−0.000) 1.000   0.302 (−0.001) 1.000
174, 27    1      0.461 (−0.071) 0.980   0.430 (−0.000) 1.000   0.276 (−0.001) 1.000
=========  =====  =====================  =====================  =====================
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._loss_set import LossSet, Totals
from ._targets import RowTargets
from .cells import accumulate_cells
from .credit import StatisticWeights, _check_supported
from .smooth_kernels import add_smoothed_rows

# Beyond, densities or their sums would leave float32.
_LEAST, _MOST = 1e-30, 1e30


def smoothed_gradient(
    scores: NDArray[np.float32],
    targets: RowTargets,
    rows: NDArray[np.integer] | None,
    smoothing: float,
    weights: StatisticWeights,
    loss_set: LossSet,
    cells: NDArray[np.float32] | None = None,
) -> tuple[NDArray[np.float32], Totals]:
    """Return the derivative of the smoothed losses in each output of each row.

    That of w·v(z), with w the weight of a row and v the sum of its smoothed
    statistics at the given prices; see the module for what smoothing makes of each.

    Parameters
    ----------
    scores : float32 array (rows, K)
        Finite or infinite. A row with NaN has gradient 0 and makes the totals NaN.
    targets : RowTargets
        Of all rows.
    rows : int array (rows,) or None
        Which of the targets' rows the scores belong to, in any order, repeats allowed;
        None for all of them.
    smoothing : float
        Deviation σ of the noise.
    weights : StatisticWeights
        From :func:`~clml.losses.measure_gradient`; larger values are better.
    loss_set : LossSet
    cells : float32 array (rows, K), not negative, default=None
        Weight of each cell; where it is 0 the truth is missing and the label takes
        part in nothing: the row is as if it did not have that label. Sums (wrong,
        hits, predicted, relevant, cross-entropy) count a cell as often as its weight
        says, ratios (LRAP, F1, ...) depend on how weights compare; whether a row is
        right, coverage, one-error and hits among the highest only on which are 0.
        None: all are 1.

    Returns
    -------
    gradient : float32 array (rows, K)
        0 in rows of weight 0 and where a cell is missing.
    totals : Totals
        The statistics of the scores as they are, without noise, for a population of
        one. Missing cells are no decisions: a loss that is a share of all decisions
        wants their number from the caller, as the weight that it divides by.

    Examples
    --------
    A relevant label just below the threshold, an irrelevant one far below:

    >>> import numpy as np
    >>> from clml.losses import LossSet, RowTargets, get_losses
    >>> from clml.losses import smoothed_gradient, measure_gradient
    >>> loss_set = LossSet(get_losses(("hamming",)), n_labels=2)
    >>> targets = RowTargets.from_indicator([[1, 0]])
    >>> scores = np.array([[-0.5, -3.0]], dtype=np.float32)
    >>> totals = loss_set.new_totals(1)
    >>> loss_set.accumulate(totals, scores[None], targets)
    >>> weights = measure_gradient(loss_set, totals, 1.0)
    >>> gradient, _ = smoothed_gradient(
    ...     scores, targets, np.array([0]), 0.5, weights, loss_set
    ... )
    >>> gradient.round(4)
    array([[0.1613, 0.    ]], dtype=float32)

    With the first label missing there is one decision, and it is right:

    >>> cells = np.array([[0, 1]], dtype=np.float32)
    >>> gradient, totals = smoothed_gradient(
    ...     scores, targets, np.array([0]), 0.5, weights, loss_set, cells
    ... )
    >>> gradient.round(4), totals.columns[0, 0]
    (array([[0., 0.]], dtype=float32), np.float64(0.0))
    """
    batch = targets if rows is None else targets.take(rows)
    _check(scores, batch, smoothing, loss_set, cells)
    totals = _hard_totals(scores, batch, loss_set, cells)
    gradient = np.zeros_like(scores)
    values = np.empty((1, len(weights.columns)))
    want_labels = bool(weights.labels.any())
    _run(
        scores,
        batch,
        smoothing,
        weights,
        want_labels,
        loss_set,
        cells,
        gradient,
        values,
    )
    return gradient, totals


def smoothed_statistics(
    scores: NDArray[np.float32],
    targets: RowTargets,
    rows: NDArray[np.integer],
    smoothing: float,
    loss_set: LossSet,
    cells: NDArray[np.float32] | None = None,
) -> NDArray[np.float64]:
    """Return the smoothed statistics of each row, as they come out of the kernel.

    For tests and studies: the gradient is the derivative of these, at their prices.

    Parameters
    ----------
    scores, targets, rows, smoothing, loss_set, cells
        As those of :func:`smoothed_gradient`.

    Returns
    -------
    float64 array (rows, 13 + number of ks)
        In the order of ``Totals.columns``, without the row weights. Coverage,
        one-error and hits among the highest are those of the scores without noise:
        they are smoothed along one output at a time. Rows with NaN are NaN, rows of
        weight 0 are 0.

    Examples
    --------
    Both labels are decided for or not with the same probability:

    >>> import numpy as np
    >>> from clml.losses import LossSet, RowTargets, get_losses
    >>> from clml.losses._smoothed import smoothed_statistics
    >>> loss_set = LossSet(get_losses(("hamming", "lrap")), n_labels=2)
    >>> targets = RowTargets.from_indicator([[1, 0]])
    >>> scores = np.zeros((1, 2), dtype=np.float32)
    >>> found = smoothed_statistics(scores, targets, np.array([0]), 0.5, loss_set)
    >>> wrong, lrap = found[0, [0, 7]].round(6)
    >>> wrong, lrap  # the relevant label is second with probability 1/2: 1 / 1.5
    (np.float64(1.0), np.float64(0.666667))
    """
    batch = targets.take(rows)
    _check(scores, batch, smoothing, loss_set, cells)
    n_columns = loss_set.new_totals(1).columns.shape[1]
    prices = StatisticWeights(np.ones(n_columns), np.zeros((3, targets.n_labels)))
    values = np.zeros((len(rows), n_columns))
    gradient = np.zeros_like(scores)
    _run(scores, batch, smoothing, prices, False, loss_set, cells, gradient, values)
    return values


def _check(
    scores: NDArray,
    batch: RowTargets,
    smoothing: float,
    loss_set: LossSet,
    cells: NDArray | None,
) -> None:
    _check_supported(loss_set)
    expected = batch.dense.shape
    for name, array in {"scores": scores, "cells": cells}.items():
        if array is None:
            continue
        if array.shape != expected or array.dtype != np.float32:
            raise ValueError(
                f"{name} must be float32 of shape {expected}, one row for each of "
                f"rows, got {array.dtype} of shape {array.shape}."
            )
    if cells is not None and not ((cells >= 0) & (cells < np.inf)).all():
        raise ValueError(
            "cells must hold finite weights that are not negative, "
            f"got values from {cells.min()} to {cells.max()}."
        )
    if not _LEAST <= smoothing <= _MOST:
        raise ValueError(
            f"smoothing must be between {_LEAST} and {_MOST}, got {smoothing}."
        )


def _hard_totals(
    scores: NDArray[np.float32],
    batch: RowTargets,
    loss_set: LossSet,
    cells: NDArray[np.float32] | None,
) -> Totals:
    """Return the statistics of the scores as they are."""
    totals = loss_set.new_totals(1)
    if cells is None:
        loss_set.accumulate(totals, scores[None], batch)
    else:
        accumulate_cells(
            scores,
            batch.dense,
            batch.weight,
            cells,
            np.float32(loss_set.threshold),
            *loss_set._wants,
            totals.columns[0],
            totals.labels[0],
        )
    return totals


def _run(
    scores: NDArray[np.float32],
    batch: RowTargets,
    smoothing: float,
    prices: StatisticWeights,
    want_labels: bool,
    loss_set: LossSet,
    cells: NDArray[np.float32] | None,
    gradient: NDArray[np.float32],
    values: NDArray[np.float64],
) -> None:
    add_smoothed_rows(
        scores,
        batch.dense,
        np.empty((len(scores), 0), dtype=np.float32) if cells is None else cells,
        batch.weight,
        np.float32(loss_set.threshold),
        float(smoothing),
        prices.columns,
        prices.labels,
        want_labels,
        loss_set._ks,
        gradient,
        values,
    )
