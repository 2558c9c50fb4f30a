"""The built-in losses, each defined once: statistics and a closing formula.

Conventions are scikit-learn's. A label's rank counts every label scored at least as
high, so ties count against it; a row with no relevant label, or with all of them, has
a perfect ranking; F1 and Jaccard with nothing to divide are 0.

Macro-AUC and macro average precision rank the rows of a label against each other. No
sum over rows gives that, so they are whole-matrix losses, for evaluation alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._loss import Loss, MatrixLoss, Sums
from .statistics import Statistic, top_hits


def _one_minus(share: NDArray) -> NDArray[np.float64]:
    """1 − share, not below 0: weighted sums may round to just above the total."""
    return np.maximum(1.0 - share, 0.0)


def _ratio(numerator: NDArray, denominator: NDArray) -> NDArray[np.float64]:
    """Numerator over denominator, 0 where there is nothing to divide; NaN stays."""
    nothing = denominator == 0
    return np.where(nothing, 0.0, numerator / np.where(nothing, 1.0, denominator))


class Hamming(Loss):
    """Share of wrong decisions."""

    name = "hamming"
    statistics = ("wrong",)
    affine = True

    def close(self, sums: Sums, weight: float, n_labels: int) -> NDArray[np.float64]:
        """Wrong decisions over all decisions."""
        return np.minimum(sums["wrong"] / (weight * n_labels), 1.0)


class LRAP(Loss):
    """1 − label ranking average precision."""

    name = "lrap"
    statistics = ("lrap",)
    affine = True

    def close(self, sums: Sums, weight: float, n_labels: int) -> NDArray[np.float64]:
        """1 − the rows' mean."""
        return _one_minus(sums["lrap"] / weight)


class MicroF1(Loss):
    """1 − F1 over all decisions together."""

    name = "micro_f1"
    statistics = ("hits", "predicted", "relevant")

    def close(self, sums: Sums, weight: float, n_labels: int) -> NDArray[np.float64]:
        """1 − 2·hits / (predicted + relevant)."""
        size = sums["predicted"] + sums["relevant"]
        return _one_minus(_ratio(2.0 * sums["hits"], size))


class MacroF1(Loss):
    """1 − the mean over labels of each label's F1."""

    name = "macro_f1"
    statistics = ("label_hits", "label_predicted", "label_relevant")

    def close(self, sums: Sums, weight: float, n_labels: int) -> NDArray[np.float64]:
        """1 − the labels' mean of 2·hits / (predicted + relevant)."""
        size = sums["label_predicted"] + sums["label_relevant"]
        return _one_minus(_ratio(2.0 * sums["label_hits"], size).mean(axis=-1))


class ExampleF1(Loss):
    """1 − the mean over rows of each row's F1."""

    name = "example_f1"
    statistics = ("example_f1",)
    affine = True

    def close(self, sums: Sums, weight: float, n_labels: int) -> NDArray[np.float64]:
        """1 − the rows' mean."""
        return _one_minus(sums["example_f1"] / weight)


class Jaccard(Loss):
    """1 − the mean over rows of intersection over union."""

    name = "jaccard"
    statistics = ("jaccard",)
    affine = True

    def close(self, sums: Sums, weight: float, n_labels: int) -> NDArray[np.float64]:
        """1 − the rows' mean."""
        return _one_minus(sums["jaccard"] / weight)


class SubsetZeroOne(Loss):
    """Share of rows with at least one wrong decision."""

    name = "subset_zero_one"
    statistics = ("subset",)
    affine = True

    def close(self, sums: Sums, weight: float, n_labels: int) -> NDArray[np.float64]:
        """Wrong rows over rows."""
        return np.minimum(sums["subset"] / weight, 1.0)


class OneError(Loss):
    """Share of rows without a relevant label strictly above all others.

    Ties count against, and so does a row that has no relevant label: this is
    1 − precision at 1.
    """

    name = "one_error"
    statistics = ("one_error",)
    affine = True

    def close(self, sums: Sums, weight: float, n_labels: int) -> NDArray[np.float64]:
        """Rows in error over rows."""
        return np.minimum(sums["one_error"] / weight, 1.0)


class Coverage(Loss):
    """How far down the ranking the last relevant label stands, in [0, 1].

    max(0, scikit-learn's ``coverage_error`` − 1) / (K − 1); 0 for a single label.
    """

    name = "coverage"
    statistics = ("coverage",)

    def close(self, sums: Sums, weight: float, n_labels: int) -> NDArray[np.float64]:
        """Mean depth, moved and scaled to [0, 1]."""
        depth = np.maximum(sums["coverage"] / weight - 1.0, 0.0)
        return np.minimum(depth, n_labels - 1) / max(n_labels - 1, 1)


class RankingLoss(Loss):
    """Mean share of (relevant, irrelevant) pairs in the wrong order, ties wrong."""

    name = "ranking_loss"
    statistics = ("ranking",)
    affine = True

    def close(self, sums: Sums, weight: float, n_labels: int) -> NDArray[np.float64]:
        """Return the rows' mean."""
        return np.minimum(sums["ranking"] / weight, 1.0)


class PrecisionAtK(Loss):
    """1 − the mean share of relevant labels among the k highest, ties against.

    Parameters
    ----------
    k : int
        At least 1 and at most the number of labels.
    """

    def __init__(self, k: int):
        if k < 1:
            raise ValueError(f"precision_at_k needs k of at least 1, got {k}.")
        self.k = k
        self.name = f"precision_at_{k}"

    def resolved_statistics(self) -> tuple[Statistic, ...]:
        """Return the hits among the k highest."""
        return (top_hits(self.k),)

    def check(self, n_labels: int) -> None:
        """Refuse a k beyond the number of labels."""
        if self.k > n_labels:
            raise ValueError(
                f"Loss {self.name!r} needs at least {self.k} labels, got {n_labels}."
            )

    def close(self, sums: Sums, weight: float, n_labels: int) -> NDArray[np.float64]:
        """1 − hits / k, averaged over rows."""
        return _one_minus(sums[f"top_hits_{self.k}"] / (weight * self.k))

    def __repr__(self) -> str:
        return f"PrecisionAtK({self.k})"


class BinaryCrossEntropy(Loss):
    """Mean binary cross-entropy of the scores read as logits (the paper's L4)."""

    name = "binary_cross_entropy"
    statistics = ("cross_entropy",)
    role = "tracked"

    def close(self, sums: Sums, weight: float, n_labels: int) -> NDArray[np.float64]:
        """Mean over rows and labels."""
        return sums["cross_entropy"] / (weight * n_labels)


class RowLogLoss(Loss):
    """−Σ_k y_k·ln(p_k / Σ_j p_j), averaged over rows.

    What the paper's tables print as L4. No probability is clipped.
    """

    name = "row_log_loss"
    statistics = ("row_log_loss",)
    role = "tracked"

    def close(self, sums: Sums, weight: float, n_labels: int) -> NDArray[np.float64]:
        """Return the rows' mean."""
        return sums["row_log_loss"] / weight


class MacroAUC(MatrixLoss):
    """1 − the mean area under the ROC curve, over labels with both classes.

    Not a sum over rows: every row is ranked against every other. NaN if no label has
    both classes.
    """

    name = "macro_auc"
    role = "evaluation"

    def evaluate(
        self,
        Y: NDArray[np.uint8],
        scores: NDArray[np.floating],
        sample_weight: NDArray[np.float64] | None,
        threshold: float,
    ) -> float:
        """Rank the rows of each label."""
        positive, negative, ends = _curves(Y, scores, sample_weight)
        total_positive, total_negative = positive[-1], negative[-1]
        both = (total_positive > 0) & (total_negative > 0)
        if not both.any():
            return float("nan")
        # Trapezoids between the distinct scores.
        area = np.zeros(Y.shape[1])
        for k in np.flatnonzero(both):
            tp = np.concatenate(([0.0], positive[ends[:, k], k]))
            fp = np.concatenate(([0.0], negative[ends[:, k], k]))
            area[k] = np.trapezoid(tp, fp) / (total_positive[k] * total_negative[k])
        return float(1.0 - area[both].mean())


class MacroAveragePrecision(MatrixLoss):
    """1 − the mean average precision, over labels with a relevant row.

    Not a sum over rows: every row is ranked against every other. NaN if no label has
    a relevant row.
    """

    name = "macro_average_precision"
    role = "evaluation"

    def evaluate(
        self,
        Y: NDArray[np.uint8],
        scores: NDArray[np.floating],
        sample_weight: NDArray[np.float64] | None,
        threshold: float,
    ) -> float:
        """Rank the rows of each label."""
        positive, negative, ends = _curves(Y, scores, sample_weight)
        some = positive[-1] > 0
        if not some.any():
            return float("nan")
        average = np.zeros(Y.shape[1])
        for k in np.flatnonzero(some):
            tp, fp = positive[ends[:, k], k], negative[ends[:, k], k]
            gained = np.diff(tp, prepend=0.0) / tp[-1]
            average[k] = (gained * _ratio(tp, tp + fp)).sum()
        return float(1.0 - average[some].mean())


def _curves(
    Y: NDArray[np.uint8],
    scores: NDArray[np.floating],
    sample_weight: NDArray[np.float64] | None,
) -> tuple[NDArray, NDArray, NDArray[np.bool_]]:
    """Weight of positive and negative rows at or above each score, per label.

    All are (n, K), in the order of falling scores; ``ends`` marks the last row of
    each run of equal scores, where the sums are those of a threshold.
    """
    order = np.argsort(-scores, axis=0, kind="stable")
    falling = np.take_along_axis(scores, order, axis=0)
    relevant = np.take_along_axis(Y, order, axis=0).astype(np.float64)
    weight = np.ones(len(Y)) if sample_weight is None else sample_weight
    weights = weight[order]
    ends = np.ones(falling.shape, dtype=bool)
    ends[:-1] = falling[:-1] != falling[1:]
    positive = np.cumsum(weights * relevant, axis=0)
    negative = np.cumsum(weights * (1.0 - relevant), axis=0)
    return positive, negative, ends
