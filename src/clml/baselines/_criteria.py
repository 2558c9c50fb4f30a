"""What says which epoch is best, from logits and labels of validation rows."""

from __future__ import annotations

from numpy.typing import NDArray

from ..losses import loss_values
from ._training import Criteria


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


def _losses(
    logits: NDArray, Y: NDArray, weight: NDArray | None, *names: str
) -> Criteria:
    values = loss_values(Y, logits, names, sample_weight=weight)
    return dict(zip(names, map(float, values), strict=True))
