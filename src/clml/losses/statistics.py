"""The row statistics that losses are made of, each defined in plain NumPy.

A statistic is one number a row (or one a row and label) that is added up over the
rows, weighted by the row weights. Everything else in the library follows from that
sum: chunks of rows, sparse data, bagging by row weights, several machines.

These definitions say what a statistic *is*; :mod:`clml.losses.kernels` computes the
same sums fast, and the tests hold the two together.

Shapes: ``Y`` (rows, K) boolean, ``scores`` (population, rows, K); the result is
(population, rows), or (population, rows, K) for a statistic kept per label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logsumexp

Array = NDArray[np.floating]
Define = Callable[[NDArray[np.bool_], Array, float], NDArray]


@dataclass(frozen=True)
class Statistic:
    """One additive row statistic.

    Parameters
    ----------
    name : str
        The name under which its sum is handed to a loss's closing formula.
    define : callable
        ``define(Y, scores, threshold)`` with Y (rows, K) boolean and scores
        (population, rows, K) returns (population, rows), or (population, rows, K)
        if ``per_label``. It must treat each row on its own: sums over rows are taken
        by the library, in chunks.
    per_label : bool, default=False
        Whether the sum is kept for each label.
    """

    name: str
    define: Define
    per_label: bool = False


def _wrong(Y: NDArray[np.bool_], scores: Array, threshold: float) -> NDArray:
    return ((scores > threshold) != Y).sum(axis=-1)


def _hits(Y: NDArray[np.bool_], scores: Array, threshold: float) -> NDArray:
    return ((scores > threshold) & Y).sum(axis=-1)


def _predicted(Y: NDArray[np.bool_], scores: Array, threshold: float) -> NDArray:
    return (scores > threshold).sum(axis=-1)


def _relevant(Y: NDArray[np.bool_], scores: Array, threshold: float) -> NDArray:
    return np.broadcast_to(Y.sum(axis=-1), scores.shape[:-1])


def _subset(Y: NDArray[np.bool_], scores: Array, threshold: float) -> NDArray:
    return ((scores > threshold) != Y).any(axis=-1)


def _jaccard(Y: NDArray[np.bool_], scores: Array, threshold: float) -> NDArray:
    decided = scores > threshold
    union = (decided | Y).sum(axis=-1)
    return (decided & Y).sum(axis=-1) / np.maximum(union, 1)


def _example_f1(Y: NDArray[np.bool_], scores: Array, threshold: float) -> NDArray:
    decided = scores > threshold
    size = decided.sum(axis=-1) + Y.sum(axis=-1)
    return 2.0 * (decided & Y).sum(axis=-1) / np.maximum(size, 1)


def _ranks(Y: NDArray[np.bool_], scores: Array) -> tuple[NDArray, NDArray]:
    """Rank of each label, and how many relevant labels stand at least as high."""
    at_least = scores[..., None, :] >= scores[..., :, None]
    return at_least.sum(axis=-1), (at_least & Y[:, None, :]).sum(axis=-1)


def _lrap(Y: NDArray[np.bool_], scores: Array, threshold: float) -> NDArray:
    n_relevant = Y.sum(axis=-1)
    rank, relevant_rank = _ranks(Y, scores)
    precision = np.where(Y, relevant_rank / rank, 0.0).sum(axis=-1)
    trivial = (n_relevant == 0) | (n_relevant == Y.shape[1])
    return np.where(trivial, 1.0, precision / np.maximum(n_relevant, 1))


def _ranking(Y: NDArray[np.bool_], scores: Array, threshold: float) -> NDArray:
    n_relevant = Y.sum(axis=-1)
    rank, relevant_rank = _ranks(Y, scores)
    swapped = np.where(Y, rank - relevant_rank, 0).sum(axis=-1)
    return swapped / np.maximum(n_relevant * (Y.shape[1] - n_relevant), 1)


def _coverage(Y: NDArray[np.bool_], scores: Array, threshold: float) -> NDArray:
    rank, _ = _ranks(Y, scores)
    return np.where(Y, rank, 0).max(axis=-1)


def _one_error(Y: NDArray[np.bool_], scores: Array, threshold: float) -> NDArray:
    best_relevant = np.where(Y, scores, -np.inf).max(axis=-1)
    best_other = np.where(Y, -np.inf, scores).max(axis=-1)
    undecided = (best_relevant <= best_other) & ~Y.all(axis=-1)
    return undecided | ~Y.any(axis=-1)


def _cross_entropy(Y: NDArray[np.bool_], scores: Array, threshold: float) -> NDArray:
    z = scores.astype(np.float64)
    return -np.where(Y, log_expit(z), log_expit(-z)).sum(axis=-1)


def _row_log_loss(Y: NDArray[np.bool_], scores: Array, threshold: float) -> NDArray:
    log_p = log_expit(scores.astype(np.float64))
    normalised = log_p - logsumexp(log_p, axis=-1, keepdims=True)
    return -np.where(Y, normalised, 0.0).sum(axis=-1)


def _label_hits(Y: NDArray[np.bool_], scores: Array, threshold: float) -> NDArray:
    return (scores > threshold) & Y


def _label_predicted(Y: NDArray[np.bool_], scores: Array, threshold: float) -> NDArray:
    return scores > threshold


def _label_relevant(Y: NDArray[np.bool_], scores: Array, threshold: float) -> NDArray:
    return np.broadcast_to(Y, scores.shape)


@cache
def top_hits(k: int) -> Statistic:
    """Return the count of relevant labels among the k highest, ties against."""

    def define(Y: NDArray[np.bool_], scores: Array, threshold: float) -> NDArray:
        # Sorted by falling score and, within a tie, the irrelevant labels first.
        order = np.lexsort((np.broadcast_to(Y, scores.shape), -scores), axis=-1)
        sorted_Y = np.take_along_axis(np.broadcast_to(Y, scores.shape), order, axis=-1)
        return sorted_Y[..., :k].sum(axis=-1)

    return Statistic(f"top_hits_{k}", define)


# The order is the kernel's column order: see ``_kernels``.
SCALAR_STATISTICS = (
    Statistic("wrong", _wrong),
    Statistic("hits", _hits),
    Statistic("predicted", _predicted),
    Statistic("relevant", _relevant),
    Statistic("subset", _subset),
    Statistic("jaccard", _jaccard),
    Statistic("example_f1", _example_f1),
    Statistic("lrap", _lrap),
    Statistic("ranking", _ranking),
    Statistic("coverage", _coverage),
    Statistic("one_error", _one_error),
    Statistic("cross_entropy", _cross_entropy),
    Statistic("row_log_loss", _row_log_loss),
)
LABEL_STATISTICS = (
    Statistic("label_hits", _label_hits, per_label=True),
    Statistic("label_predicted", _label_predicted, per_label=True),
    Statistic("label_relevant", _label_relevant, per_label=True),
)
STATISTICS = {s.name: s for s in SCALAR_STATISTICS + LABEL_STATISTICS}


def built_in_statistic(name: str) -> Statistic | None:
    """Return the built-in statistic of that name, which the kernels compute."""
    k = name.removeprefix("top_hits_")
    if k != name and k.isdecimal():
        return top_hits(int(k))
    return STATISTICS.get(name)
