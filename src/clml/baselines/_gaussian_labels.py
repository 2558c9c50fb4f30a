"""Gaussian naive Bayes of one label: what the chain and binary relevance share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, logsumexp
from sklearn.naive_bayes import GaussianNB

# The logit of a label that was constant in training. Finite, so that sums and
# differences of logits stay numbers; beyond any log-odds that densities give in
# practice, so that the label ranks first or last; and still a float32.
CERTAIN = 1e30

# In `constant_`: the label varies, and a model predicts it.
VARIES = -1

# Beside the largest one, 1.
_SMALLEST_WEIGHT = 1e-300

# What a block of dense rows may take while it is predicted.
_BLOCK_BYTES = 64 * 2**20


def dense_rows(X: Any) -> NDArray[np.float64]:
    """Rows as a C-ordered array: sums are then rounded alike for any kind of X."""
    X = X.toarray() if sp.issparse(X) else X
    return np.ascontiguousarray(X, dtype=np.float64)


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Cut rows so that a block of float64 with these columns stays in its bound."""
    size = max(_BLOCK_BYTES // (8 * n_columns), 1)
    return (slice(i, min(i + size, n_rows)) for i in range(0, n_rows, size))


def check_spread(X: NDArray[np.float64]) -> None:
    """Refuse features whose variances are beyond floats, so that nothing is learnt."""
    with np.errstate(over="ignore", invalid="ignore"):
        largest = X.var(axis=0).max()
    if not np.isfinite(largest) or (largest == 0 and np.ptp(X, axis=0).any()):
        raise ValueError(
            "X must have variances that float64 can hold, got values up to "
            f"{np.abs(X).max():.2g} in absolute value. Scale X first."
        )


def comparable(weight: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    """Return weights over the largest; refuse what then vanishes beside it."""
    if weight is None:
        return None
    weight = weight / weight.max()
    if weight.min() < _SMALLEST_WEIGHT:
        raise ValueError(
            "sample_weight must not span more than 300 orders of magnitude; use 0 for "
            "rows that are not to count."
        )
    return weight


def constant_values(Y: NDArray[np.uint8]) -> NDArray[np.int8]:
    """Return for each label the one value it has, or that it varies."""
    varies = (Y != Y[0]).any(axis=0)
    return np.where(varies, VARIES, Y[0].astype(np.int8)).astype(np.int8)


def _variance_ratio(X: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    """Return the largest weighted variance of a feature over the largest plain one.

    GaussianNB smooths by the latter. Times this ratio, a weight of 2 is the same as
    two rows.
    """
    plain = X.var(axis=0).max()
    if plain == 0:
        return 1.0
    centred = X - np.average(X, axis=0, weights=weight)
    weighted = np.average(np.square(centred, out=centred), axis=0, weights=weight)
    return float(weighted.max() / plain)


def fit_label(
    X: NDArray[np.float64],
    y: NDArray[np.uint8],
    weight: NDArray[np.float64] | None,
    var_smoothing: float,
) -> GaussianNB:
    """Fit the model of a label that varies."""
    if weight is not None:
        var_smoothing *= _variance_ratio(X, weight)
        # Only ratios of weights matter, but GaussianNB takes a class of weight near 0
        # for an empty one.
        weight = weight / weight.min()
    model = GaussianNB(var_smoothing=var_smoothing).fit(X, y, sample_weight=weight)
    if not np.ptp(X, axis=0).any():
        # No feature varies, so none is evidence: with the same density for both
        # classes, any, their frequencies decide. There is no variance to smooth by.
        model.theta_[:], model.var_[:] = X[0], 1.0
    return model


def label_scores(
    model: GaussianNB | None, constant: int, X: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log-odds and probabilities of one label, (n,) each.

    Log-odds are the difference of the two joint log-densities. Probabilities are
    rounded as GaussianNB rounds them: of the larger density exactly 1 as soon as the
    smaller one is lost in rounding.
    """
    if model is None:
        certain = CERTAIN if constant else -CERTAIN
        return np.full(len(X), certain), np.full(len(X), float(constant))
    # Squares of far-off values overflow: a density of 0, and where both are 0 there is
    # no evidence, so the label is not predicted.
    with np.errstate(over="ignore", invalid="ignore"):
        joint = model.predict_joint_log_proba(X)
        logits = joint[:, 1] - joint[:, 0]
        probability = np.exp(joint[:, 1] - logsumexp(joint, axis=1))
    logits = np.clip(np.nan_to_num(logits), -CERTAIN, CERTAIN)
    return logits, np.where(np.isnan(probability), expit(logits), probability)
