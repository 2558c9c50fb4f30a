"""What says which epoch is best, from logits and labels of validation rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from ..losses import loss_values
from ._training import Criteria

# Probabilities that MPVAE's authors try.
_THRESHOLDS = np.r_[1:10, 10:100:5] / 100


def ranking_first(
    logits: NDArray, Y: NDArray, weight: NDArray | None = None
) -> Criteria:
    """Average precision, then Hamming loss, then cross-entropy: DELA's and CLIF's rule.

    Average precision is 1 - LRAP. It is that of the authors, who leave rows without
    labels out, up to a constant share of these rows.
    """
    return _losses(logits, Y, weight, "lrap", "hamming", "binary_cross_entropy")


def cross_entropy(
    logits: NDArray, Y: NDArray, weight: NDArray | None = None
) -> Criteria:
    """Mean binary cross-entropy."""
    return _losses(logits, Y, weight, "binary_cross_entropy")


def f1_sum(logits: NDArray, Y: NDArray, weight: NDArray | None = None) -> Criteria:
    """Loss of micro-F1 plus that of macro-F1, at probability 0.5: C2AE's rule."""
    values = _losses(logits, Y, weight, "micro_f1", "macro_f1")
    return {"micro_f1_and_macro_f1": values["micro_f1"] + values["macro_f1"]}


def macro_f1_at_best(
    logits: NDArray, Y: NDArray, weight: NDArray | None = None
) -> Criteria:
    """Loss of macro-F1 at the probability that suits it best: MPVAE's rule."""
    found = [
        float(
            loss_values(Y, logits, ("macro_f1",), sample_weight=weight, threshold=odds)[
                0
            ]
        )
        for odds in logit(_THRESHOLDS)
    ]
    return {"macro_f1": min(found)}


def _losses(
    logits: NDArray, Y: NDArray, weight: NDArray | None, *names: str
) -> Criteria:
    values = loss_values(Y, logits, names, sample_weight=weight)
    return dict(zip(names, map(float, values), strict=True))
