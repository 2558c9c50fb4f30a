"""How unevenly the labels of a dataset are spread over its rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..datasets.bunch import label_figures

RARE = 10


class LabelDispersion(NamedTuple):
    """Figures of a label matrix; :func:`label_dispersion` defines them."""

    rare_share: float
    mean_imbalance: float
    max_imbalance: float
    concurrence: float


def _concurrence(Y: Any, ratios: Any) -> float:
    """Return the mean over rows of 1 − geometric / arithmetic mean of label ratios."""
    relevant = np.asarray(Y.sum(axis=1), dtype=np.float64).reshape(-1)
    finite = np.where(np.isfinite(ratios), ratios, 1.0)  # those occur in no row
    count = np.maximum(relevant, 1)
    arithmetic = np.asarray(Y @ finite).reshape(-1) / count
    geometric = np.exp(np.asarray(Y @ np.log(finite)).reshape(-1) / count)
    uneven = 1 - geometric / np.where(relevant > 0, arithmetic, 1.0)
    return float(np.where(relevant > 0, uneven, 0.0).mean())


def label_dispersion(Y: Any) -> LabelDispersion:
    """Return how rare, unbalanced and mixed the labels of a dataset are.

    Parameters
    ----------
    Y : array or sparse array of shape (n_samples, n_labels)
        Indicator with values 0 and 1.

    Returns
    -------
    LabelDispersion
        ``rare_share``, the share of labels with fewer than 10 positive rows.
        ``mean_imbalance`` and ``max_imbalance`` of the imbalance ratios IRLbl: how
        many times the most frequent label is as frequent as a label; labels that
        never occur are left out.
        ``concurrence``, SCUMBLE [1]_: for each row 1 − the geometric over the
        arithmetic mean of the imbalance ratios of its labels, 0 for a row without
        labels, then the mean over rows. 0: frequent and rare labels never share a
        row.

    References
    ----------
    .. [1] F. Charte, A. Rivera, M. J. del Jesus, F. Herrera, "Concurrence among
       imbalanced labels and its influence on multilabel resampling algorithms",
       Hybrid Artificial Intelligence Systems, 2014.

    Examples
    --------
    The first label occurs four times, the second once, with the first: ratios 1 and
    4, so that one of four rows has 1 − 2 / 2.5 = 0.2.

    >>> import numpy as np
    >>> from clml.experiments import label_dispersion
    >>> spread = label_dispersion(np.array([[1, 0], [1, 0], [1, 0], [1, 1]]))
    >>> spread.mean_imbalance, spread.max_imbalance, round(spread.concurrence, 3)
    (2.5, 4.0, 0.05)
    """
    if not sparse.issparse(Y):
        Y = np.asarray(Y)
    if Y.ndim != 2 or not all(Y.shape):
        raise ValueError(
            "Y must have shape (n_samples, n_labels) with at least one of each, got "
            f"shape {Y.shape}."
        )
    figures = label_figures(Y)
    ratios = figures["imbalance_ratios"]
    counts = np.asarray(Y.sum(axis=0)).reshape(-1)
    occurring = ratios[np.isfinite(ratios)]
    return LabelDispersion(
        rare_share=float((counts < RARE).mean()),
        mean_imbalance=float(figures["mean_imbalance_ratio"]),
        max_imbalance=float(occurring.max()) if len(occurring) else float("nan"),
        concurrence=_concurrence(Y, ratios),
    )
