"""Standardisation of the features, applied to rows or folded into the first layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._moments import Moments


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
        return cls.from_moments(Moments.of(X, sample_weight))

    @classmethod
    def from_moments(cls, moments: Moments) -> Scaling:
        """Take the scaling that columns ask for, see ``fit``."""
        constant = moments.constant
        return cls(
            np.where(constant, moments.low, moments.mean),
            np.where(constant, 1.0, moments.deviation),
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
