"""The shift of logits that is best for a loss, if they are those of probabilities.

Counting errors on rows tells two shifts apart by the few rows whose decisions differ.
What a loss is to be expected, when labels are as probable as their logits say, depends
on all rows, and changes smoothly with the shift. For Hamming loss the best shift is 0,
for micro-F1 that of the probability F/2, where F is what it attains [1]_.

References
----------
.. [1] Z. C. Lipton, C. Elkan, B. Naryanaswamy, "Optimal thresholding of classifiers to
   maximize F1 measure", ECML PKDD 2014.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..losses import Loss, LossSet, MatrixLoss, RowTargets, get_loss, list_losses

# Shifts that are tried; positive ones predict more labels.
_SHIFTS = np.arange(-15, 46) / 15
# Labels that are drawn where no formula says what to expect, and how often at most.
_DRAWN, _MOST_DRAWS = 60_000, 200
# Logits of drawn rows at a time, for all shifts.
_AT_ONCE = 2_000_000

# Sums over labels of what is true and what is predicted: their expectations follow from
# the probabilities.
_SUMS = frozenset({"wrong", "hits", "predicted", "relevant"})
_SUMS_OF_LABELS = frozenset({"label_hits", "label_predicted", "label_relevant"})
# What a shift of all labels leaves as it is.
_OF_RANKS = frozenset({"lrap", "ranking", "coverage", "one_error"})
# What is smallest where probabilities are as they are.
_OF_PROBABILITIES = frozenset({"cross_entropy", "row_log_loss"})


def best_shifts(
    losses: tuple[Loss, ...],
    logits: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> list[NDArray[np.float64] | None]:
    """Return the best shifts (K,) for each loss, None where shifts do not matter.

    All labels have the same shift, but for losses that are averages over labels, where
    each has its own.

    Parameters
    ----------
    losses : tuple of Loss
    logits : float64 array (n, K)
        Of probabilities.
    weight : float64 array (n,)
        Of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from clml._maps.expected_losses import best_shifts
    >>> from clml.losses import get_losses
    >>> logits = np.random.default_rng(0).normal(-1, 2, size=(1000, 3))
    >>> losses = get_losses(("hamming", "lrap", "micro_f1"))
    >>> hamming, lrap, f1 = best_shifts(losses, logits, np.ones(1000))
    >>> abs(hamming), lrap, f1.round(1)
    (array([0., 0., 0.]), None, array([0.6, 0.6, 0.6]))
    """
    return [_best(loss, logits, weight) for loss in losses]


def expects_decisions(name: str) -> bool:
    """Tell whether probabilities say where to cut for a loss, by its name.

    A loss of a user's own that is not registered is not known.
    """
    return name in list_losses() and _decides(get_loss(name))


def _decides(loss: Loss) -> bool:
    # A function of all rows may be slow, and cannot be asked so often.
    if isinstance(loss, MatrixLoss):
        return False
    names = {statistic.name for statistic in loss.resolved_statistics()}
    return not names <= _without_decisions(names)


def _without_decisions(names: set[str]) -> set[str]:
    """Return the statistics of ranks and probabilities, those among names included."""
    counts = {name for name in names if name.startswith("top_hits_")}
    return {*_OF_RANKS, *_OF_PROBABILITIES, *counts}


def decides_rows(loss: Loss) -> bool:
    """Tell whether a loss may depend on which labels of a row are decided together.

    Sums over labels do not, nor do ranks and probabilities. Of functions, and of
    statistics of a user's own, it is not known.
    """
    names = {statistic.name for statistic in loss.resolved_statistics()}
    of_others = _SUMS | _SUMS_OF_LABELS | _without_decisions(names)
    return isinstance(loss, MatrixLoss) or not names <= of_others


def _best(
    loss: Loss, logits: NDArray[np.float64], weight: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    if not _decides(loss):
        return None
    n_labels, total = logits.shape[1], float(weight.sum())
    names = {statistic.name for statistic in loss.resolved_statistics()}
    if names <= _SUMS:
        sums = _expected_sums(logits, weight)
        values = loss.close({n: sums[n].sum(axis=1) for n in names}, total, n_labels)
        return np.full(n_labels, _shift_of(values))
    if names <= _SUMS_OF_LABELS:
        sums = _expected_sums(logits, weight)
        own = {name: sums[name.removeprefix("label_")] for name in names}
        return np.array(
            [
                _shift_of(loss.close({n: own[n][:, [k]] for n in names}, total, 1))
                for k in range(n_labels)
            ]
        )
    return np.full(n_labels, _shift_of(_losses_of_draws(loss, logits, weight)))


def _shift_of(values: NDArray[np.float64]) -> float:
    """Return the shift of the smallest value, of several the nearest to 0."""
    values = np.where(np.isnan(values), np.inf, values)
    return float(_SHIFTS[np.lexsort((np.abs(_SHIFTS), values))[0]])


def _expected_sums(
    logits: NDArray[np.float64], weight: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Return what to expect of sums over rows (shifts, K)."""
    shape = (len(_SHIFTS), logits.shape[1])
    hits, predicted = np.empty(shape), np.empty(shape)
    for k, own in enumerate(logits.T):
        order = np.argsort(-own)
        falling = own[order]
        # After so many rows, from the highest logit down.
        of_rows = np.concatenate([[0.0], np.cumsum(weight[order])])
        likely = expit(falling) * weight[order]
        of_hits = np.concatenate([[0.0], np.cumsum(likely)])
        n_predicted = np.searchsorted(-falling, _SHIFTS, side="left")
        hits[:, k], predicted[:, k] = of_hits[n_predicted], of_rows[n_predicted]
    relevant = np.broadcast_to(weight @ expit(logits), shape)
    wrong = predicted - hits + relevant - hits
    return {"hits": hits, "predicted": predicted, "relevant": relevant, "wrong": wrong}


def _losses_of_draws(
    loss: Loss, logits: NDArray[np.float64], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the loss (shifts,) on labels that are drawn."""
    generator = np.random.default_rng(0)
    loss_set = LossSet((loss,), logits.shape[1])
    totals = loss_set.new_totals(len(_SHIFTS))
    n_draws = int(np.clip(_DRAWN // logits.size, 1, _MOST_DRAWS))
    step = max(1, _AT_ONCE // (len(_SHIFTS) * logits.shape[1]))
    probability = expit(logits)
    for _ in range(n_draws):
        drawn = generator.random(logits.shape) < probability
        for start in range(0, len(logits), step):
            some = slice(start, start + step)
            targets = RowTargets.from_indicator(
                drawn[some].astype(np.uint8), weight[some]
            )
            loss_set.accumulate(totals, logits[some] + _SHIFTS[:, None, None], targets)
    statistics = loss_set.statistics(totals, n_draws * float(weight.sum()))
    return loss_set.close(statistics)[:, 0]
