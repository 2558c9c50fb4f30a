"""Thresholds, one a label: the best trade-offs of Hamming loss and micro-F1, exactly.

Both losses read two sums over the labels: what is predicted, P, and the hits among it,
TP. A trade-off that puts a price λ on each prediction, TP − λ·P, is best label by
label, and the best thresholds of one label are corners of the concave hull of its
(P, TP). Between two corners lie rows whose share of positives is the slope of the
hull: shares that fall with the score, as isotonic regression finds them. So a price λ
predicts, in every label, the rows of shares above λ. Hamming loss is the price 1/2;
micro-F1 is the price F/2, where F is the F1 that it attains [1]_; the prices in between
give the front between the two losses, as far as it is convex in (P, TP).

References
----------
.. [1] Z. C. Lipton, C. Elkan, B. Naryanaswamy, "Optimal thresholding of classifiers to
   maximize F1 measure", ECML PKDD 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import NamedTuple

import moocore
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.compiled import compiled
from ..losses import RowTargets, get_loss

# Sums of weights round: shares within this factor, and losses that agree in so many
# digits, are equal.
_ROUNDING, _DIGITS = 1e-12, 12


@dataclass(frozen=True, eq=False)
class ThresholdFront:
    """Thresholds of which none is better than another in both losses.

    Attributes
    ----------
    thresholds : float64 array (m, K)
        A member decides for a label where the score is above its threshold.
    losses : float64 array (m, 2)
        Hamming loss and micro-F1 loss of each member, the first rising and the second
        falling. They are those of ``loss_values`` for ``scores - thresholds[i]``, with
        weights up to the rounding of their sums.
    """

    thresholds: NDArray[np.float64]
    losses: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.losses)

    def __repr__(self) -> str:
        return f"ThresholdFront({len(self)} members)"


class _Blocks(NamedTuple):
    """The rows of a label, from the highest score down, in blocks of falling shares.

    ``hits``, ``misses`` and ``shares`` are (b,): weight of the positive rows, weight of
    the others, share of the positive ones. ``cuts`` (b + 1,) are the thresholds that
    predict the first 0, 1, ..., b blocks.
    """

    hits: NDArray[np.float64]
    misses: NDArray[np.float64]
    shares: NDArray[np.float64]
    cuts: NDArray[np.float64]


def threshold_front(
    scores: ArrayLike,
    Y: ArrayLike,
    weight: ArrayLike | None = None,
    max_members: int | None = None,
) -> ThresholdFront:
    """Thresholds, one a label, that trade Hamming loss for micro-F1 best.

    The first member has the smallest Hamming loss that any thresholds reach, and of
    those the largest micro-F1; the last has the largest micro-F1, and of those the
    smallest Hamming loss. Between them are all corners of the front's supported part:
    for every price between the losses, TP − λ·P, one of the members is best.

    Parameters
    ----------
    scores : array-like of shape (n, K)
        Finite. Rows of equal scores are decided alike.
    Y : array-like or sparse matrix of shape (n, K)
        The true labels, 0 or 1.
    weight : array-like of shape (n,), default=None
        Row weights, at least one of them positive. Rows of weight 0 count as absent,
        whatever their scores.
    max_members : int, default=None
        Keep at most so many members, at least 2: both ends, and others at even steps
        between them.

    Returns
    -------
    ThresholdFront

    Notes
    -----
    Where shares are equal, in one label or in several, the rows enter together: what
    lies between would be on the straight line from one corner to the next. Shares and
    losses that agree in twelve digits count as equal, for weighted sums round.

    A threshold lies midway between the two scores that it parts. One that parts
    nothing stands beyond the label's highest score (no row predicted, as for a label
    that is never positive) or below its lowest (every row predicted) by half the
    label's range, or by 1 if all its scores are equal: shares say that a score beyond
    those seen is to be decided as the outermost ones are.

    Examples
    --------
    The first label's shares are 1 (the highest row) and 1/4 (the other four), the
    second's 2/5 (all rows):

    >>> from clml._maps.thresholds import threshold_front
    >>> scores = [[5.0, 5.0], [4.0, 4.0], [3.0, 3.0], [2.0, 2.0], [1.0, 1.0]]
    >>> Y = [[1, 0], [0, 0], [0, 1], [0, 0], [1, 1]]
    >>> front = threshold_front(scores, Y)
    >>> front.losses
    array([[0.3, 0.6],
           [0.4, 0.4]])
    >>> front.thresholds
    array([[ 4.5,  7. ],
           [ 4.5, -1. ]])
    """
    targets = RowTargets.from_indicator(Y, weight)
    used = targets.weight > 0
    if not used.any():
        raise ValueError(
            "weight must be positive for at least one row, "
            f"got {targets.n_rows} rows and none of positive weight."
        )
    given = _check_scores(scores, used, targets.n_labels)
    _check_max_members(max_members)
    relevant = targets.dense[used].astype(bool)
    weights = targets.weight[used]
    labels = [
        _blocks(given[:, k], relevant[:, k], weights) for k in range(targets.n_labels)
    ]
    prices, losses = _corners(labels, float(weights.sum()))
    chosen = _even_steps(len(losses), max_members)
    thresholds = [
        label.cuts[np.searchsorted(-label.shares, -prices[chosen], side="right")]
        for label in labels
    ]
    return ThresholdFront(np.stack(thresholds, axis=1), losses[chosen])


def _corners(
    labels: list[_Blocks], weight: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least share (m,) that each member predicts, and its losses (m, 2)."""
    shares = np.concatenate([label.shares for label in labels])
    order = np.argsort(-shares, kind="stable")
    shares = shares[order]
    # Element i is the sum over the i blocks of largest shares.
    hits = _sums_from_zero(np.concatenate([label.hits for label in labels])[order])
    misses = _sums_from_zero(np.concatenate([label.misses for label in labels])[order])

    falls = shares[1:] < shares[:-1] * (1.0 - _ROUNDING)
    corners = np.concatenate([[0], np.flatnonzero(falls) + 1, [len(shares)]])
    losses = _close(hits[corners], misses[corners], hits[-1], weight, len(labels))
    # Along the corners the Hamming loss falls while shares are above 1/2, then rises;
    # F1 rises while shares are above F1 / 2, then falls. Neither end dominates a corner
    # between them, and they dominate the others, such as that before a share of 1/2.
    kept = moocore.is_nondominated(losses.round(_DIGITS))
    prices = np.concatenate([[np.inf], shares])[corners[kept]]
    return prices, losses[kept]


def _close(
    hits: NDArray[np.float64],
    misses: NDArray[np.float64],
    relevant: float,
    weight: float,
    n_labels: int,
) -> NDArray[np.float64]:
    sums = {
        "wrong": misses + (relevant - hits),
        "hits": hits,
        "predicted": hits + misses,
        "relevant": np.full_like(hits, relevant),
    }
    closed = [
        get_loss(name).close(sums, weight, n_labels) for name in ("hamming", "micro_f1")
    ]
    return np.stack(closed, axis=1)


def _sums_from_zero(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([[0.0], np.cumsum(values)])


def _blocks(
    scores: NDArray[np.float64],
    relevant: NDArray[np.bool_],
    weight: NDArray[np.float64],
) -> _Blocks:
    order = np.argsort(-scores, kind="stable")
    falling = scores[order]
    hits, misses, ends = _pool(falling, relevant[order], weight[order])
    return _Blocks(hits, misses, hits / (hits + misses), _cuts(falling, ends))


@compiled
def _pool(falling, relevant, weight):  # type: ignore[no-untyped-def]
    """Pool neighbouring rows until shares of positives fall strictly.

    The pooled sums are kept, not differences of running ones: small weights count
    beside large ones. Returns hits, misses and the end (in rows) of each block.
    """
    n = len(falling)
    hits = np.empty(n)
    misses = np.empty(n)
    ends = np.empty(n, np.int64)
    count = 0
    end = 0
    while end < n:
        score = falling[end]
        hit = 0.0
        miss = 0.0
        while end < n and falling[end] == score:
            if relevant[end]:
                hit += weight[end]
            else:
                miss += weight[end]
            end += 1
        while count > 0 and (
            hits[count - 1] / (hits[count - 1] + misses[count - 1])
            <= hit / (hit + miss)
        ):
            count -= 1
            hit += hits[count]
            miss += misses[count]
        hits[count] = hit
        misses[count] = miss
        ends[count] = end
        count += 1
    return hits[:count].copy(), misses[:count].copy(), ends[:count].copy()


def _cuts(falling: NDArray[np.float64], ends: NDArray[np.int64]) -> NDArray[np.float64]:
    """Thresholds (b + 1,) that predict no row, and the rows up to each end."""
    highest, lowest = falling[0], falling[-1]
    margin = 0.5 * highest - 0.5 * lowest or 1.0
    upper, lower = falling[ends[:-1] - 1], falling[ends[:-1]]
    middle = 0.5 * upper + 0.5 * lower
    # Between neighbouring floats the middle is one of them, and may be the upper.
    middle = np.where((lower <= middle) & (middle < upper), middle, lower)
    # Beside the largest floats an infinite threshold decides as it should.
    with np.errstate(over="ignore"):
        above = highest + margin
        below = min(lowest - margin, np.nextafter(lowest, -np.inf))
    return np.concatenate([[above], middle, [below]])


def _even_steps(size: int, most: int | None) -> NDArray[np.int64]:
    """At most ``most`` of the indices below ``size``, the first and last included."""
    if most is None or size <= most:
        return np.arange(size)
    return np.arange(most) * (size - 1) // (most - 1)


def _check_scores(
    scores: ArrayLike, used: NDArray[np.bool_], n_labels: int
) -> NDArray[np.float64]:
    """Return the scores of the used rows as float64."""
    array = np.asarray(scores)
    if array.dtype.kind not in "buif":
        raise ValueError(f"scores must be numbers, got dtype {array.dtype}.")
    expected = (len(used), n_labels)
    if array.shape != expected:
        raise ValueError(
            f"scores must have shape {expected}, as Y has, got {array.shape}."
        )
    values = array[used].astype(np.float64)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, column = int(np.flatnonzero(used)[bad[0, 0]]), int(bad[0, 1])
        raise ValueError(
            f"scores must be finite, got {array[row, column]} at row {row}, "
            f"column {column}."
        )
    return values


def _check_max_members(max_members: int | None) -> None:
    if max_members is None:
        return
    whole = isinstance(max_members, Integral) and not isinstance(max_members, bool)
    if not whole or max_members < 2:
        raise ValueError(
            "max_members must be None or an integer of at least 2, for the two ends, "
            f"got {max_members!r}."
        )
