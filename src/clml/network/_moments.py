"""Mean, deviation and range of columns, of all rows at once or merged from parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

# Columns of smaller numbers count as constant: weights are divided by the scale.
_LEAST_SIZE = 1e-270
# Columns of larger ones, or of smaller than its inverse, are taken in another unit.
_LARGE = 1e100


@dataclass(frozen=True, eq=False)
class Moments:
    """What some rows say about the scale of the columns.

    Those of disjoint sets of rows add up to those of their union. No square of a
    number is ever kept, so columns may be as large as float64 holds.

    Attributes
    ----------
    weight : float
        Sum of the row weights.
    mean, deviation, low, high : float64 arrays (D,)
        The deviation is the population's; that of a constant column is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.network import Moments
    >>> merged = Moments.of(np.array([[1.0], [3.0]])) + Moments.of(np.array([[8.0]]))
    >>> merged.weight, merged.mean, merged.deviation
    (3.0, array([4.]), array([2.94392029]))
    """

    weight: float
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def of(cls, X: Any, sample_weight: NDArray[np.float64] | None = None) -> Moments:
        """Take those of rows, dense or sparse; weights are frequencies."""
        weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        share = weight / weight.sum()
        if sp.issparse(X):
            X = X.tocsc(copy=True).astype(np.float64)
            X.sum_duplicates()
            low, high = (m.toarray().ravel() for m in (X.min(axis=0), X.max(axis=0)))
        else:
            X = np.asarray(X, dtype=np.float64)
            low, high = X.min(axis=0), X.max(axis=0)
        constant, unit = _constant(low, high)
        own_low, own_high = low, high
        if (unit != 1).any():
            X, low, high = _divided(X, unit), low / unit, high / unit
        mean = np.asarray(X.T @ share).ravel() if sp.issparse(X) else share @ X
        # Squares of what lies within [-1, 1] neither overflow nor vanish.
        reach = np.where(constant, 1.0, np.maximum(high - mean, mean - low))
        if sp.issparse(X):
            deviation = reach * _sparse_deviation(X, share, mean, reach)
        else:
            deviation = reach * np.sqrt(share @ ((X - mean) / reach) ** 2)
        return cls(
            float(weight.sum()),
            np.where(constant, own_low, mean * unit),
            np.where(constant, 0.0, deviation * unit),
            own_low,
            own_high,
        )

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Which columns differ by rounding at most, or are too small to scale."""
        return _constant(self.low, self.high)[0]

    def __add__(self, other: Moments) -> Moments:
        weight = self.weight + other.weight
        a, b = self.weight / weight, other.weight / weight
        # The means lie between the limits: their halves' difference is finite.
        half = other.mean / 2 - self.mean / 2
        within = np.hypot(np.sqrt(a) * self.deviation, np.sqrt(b) * other.deviation)
        return Moments(
            weight,
            self.mean + b * half + b * half,
            np.hypot(within, np.sqrt(a * b) * half * 2),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )


def _constant(low: NDArray, high: NDArray) -> tuple[NDArray[np.bool_], NDArray]:
    """Return which columns are constant, and the units to take them in."""
    size = np.maximum(np.abs(low), np.abs(high))
    unit = _units(size)
    spread = high / unit - low / unit
    constant = spread <= 10 * np.finfo(np.float64).eps * (size / unit)
    return constant | (size < _LEAST_SIZE), unit


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
