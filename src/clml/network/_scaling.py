"""Standardisation of the features, applied to rows or folded into the first layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

# Columns of smaller numbers count as constant: weights are divided by the scale.
_LEAST_SIZE = 1e-270
# Columns of larger ones, or of smaller than its inverse, are fitted in another unit.
_LARGE = 1e100


@dataclass(frozen=True, eq=False)
class Scaling:
    """Features are used as (x − mean) / scale.

    Dense rows are scaled directly. Sparse rows stay as they are: scaling them is a
    change of the first layer, (x − m)/s · E + b = x · (E/s) + (b − m/s · E), computed
    in float64 because the two terms may nearly cancel.

    Parameters
    ----------
    mean, scale : float64 arrays (D,)
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def identity(cls, n_features: int) -> Scaling:
        """Return the scaling that changes nothing."""
        return cls(np.zeros(n_features), np.ones(n_features))

    @classmethod
    def fit(
        cls,
        X: Any,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> Scaling:
        """Take mean and standard deviation of the columns; constant ones keep scale 1.

        The deviation is the population's, and weights are frequencies. A column is
        constant if its values differ by rounding at most: dividing by such a deviation
        would blow up the first other value to come. So is one of numbers below 1e-270;
        numbers may be as large as float64 holds.
        """
        weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        share = weight / weight.sum()
        if sp.issparse(X):
            X = X.tocsc(copy=True).astype(np.float64)
            X.sum_duplicates()
            low, high = (m.toarray().ravel() for m in (X.min(axis=0), X.max(axis=0)))
        else:
            X = np.asarray(X, dtype=np.float64)
            low, high = X.min(axis=0), X.max(axis=0)
        size = np.maximum(np.abs(low), np.abs(high))
        unit, own_low = _units(size), low
        if (unit != 1).any():
            X, low, high = _divided(X, unit), low / unit, high / unit
        mean = np.asarray(X.T @ share).ravel() if sp.issparse(X) else share @ X
        constant = high - low <= 10 * np.finfo(np.float64).eps * (size / unit)
        constant |= size < _LEAST_SIZE
        # Squares of what lies within [-1, 1] neither overflow nor vanish.
        reach = np.where(constant, 1.0, np.maximum(high - mean, mean - low))
        if sp.issparse(X):
            deviation = reach * _sparse_deviation(X, share, mean, reach)
        else:
            deviation = reach * np.sqrt(share @ ((X - mean) / reach) ** 2)
        return cls(
            np.where(constant, own_low, mean * unit),
            np.where(constant, 1.0, deviation * unit),
        )

    def apply(self, X: NDArray) -> NDArray[np.float64]:
        """Scale dense rows."""
        return (X - self.mean) / self.scale

    def fold(self, first: NDArray) -> NDArray[np.float64]:
        """Move the scaling into first-layer matrices (..., D + 1, C), in float64."""
        folded = np.array(first, dtype=np.float64)
        folded[..., :-1, :] /= self.scale[:, None]
        folded[..., -1, :] -= self.mean @ folded[..., :-1, :]
        return folded


def _units(size: NDArray) -> NDArray[np.float64]:
    """Return powers of two near sizes whose differences may overflow, 1 for others.

    Dividing by them and multiplying again changes no digit.
    """
    extreme = (size > _LARGE) | ((size < 1 / _LARGE) & (size > 0))
    return np.where(extreme, np.ldexp(1.0, np.frexp(size)[1] - 1), 1.0)


def _divided(X: Any, unit: NDArray[np.float64]) -> Any:
    """Return columns in other units."""
    if not sp.issparse(X):
        return X / unit
    X.data = X.data / np.repeat(unit, np.diff(X.indptr))
    return X


def _sparse_deviation(
    X: Any, share: NDArray, mean: NDArray, reach: NDArray
) -> NDArray[np.float64]:
    """Return the deviation of sparse columns over reach: stored entries, then zeros."""
    columns = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
    w = share[X.indices]
    stored = w * ((X.data - mean[columns]) / reach[columns]) ** 2
    size = X.shape[1]
    variance = np.bincount(columns, weights=stored, minlength=size)
    zeros = 1.0 - np.bincount(columns, weights=w, minlength=size)
    # Where every row is stored the difference is rounding, and a large mean shows it.
    zeros[np.diff(X.indptr) == X.shape[0]] = 0.0
    return np.sqrt(variance + np.maximum(zeros, 0.0) * (mean / reach) ** 2)
