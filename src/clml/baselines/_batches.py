"""Rows as tensors, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._base.rows import Part
from .._support.torch import import_torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class Batch:
    """Features (B, D), labels (B, K) and weights (B,), whose mean over all rows is 1.

    A loss that is a mean over rows weighs each row by its weight and divides by B.
    """

    x: Tensor
    y: Tensor
    weight: Tensor


class Features:
    """A matrix of features, given out as blocks of dense rows on a device.

    Dense ones move to the device whole; sparse ones stay sparse where they are, and
    only the rows asked for become dense.
    """

    def __init__(self, X: Any, device: Any, dtype: Any):
        torch = import_torch()
        self._device, self._dtype = device, dtype
        values = X.data if sp.issparse(X) else X
        largest = max(values.max(initial=0), -values.min(initial=0))
        if largest > np.finfo(np.float32).max:
            raise ValueError(
                "X must hold values that float32 can hold, got "
                f"{largest:.2g} in absolute value. Scale X first."
            )
        self._X = X if dtype == torch.float64 else X.astype(np.float32)
        self._tensor = None
        if not sp.issparse(X):
            # A copy: PyTorch would warn of an array that cannot be written to.
            self._tensor = torch.tensor(self._X, dtype=dtype, device=device)

    def __len__(self) -> int:
        return self._X.shape[0]

    def rows(self, rows: slice | NDArray[np.int64]) -> Tensor:
        """Return these rows, (B, D)."""
        torch = import_torch()
        if self._tensor is None:
            block = self._X[rows].toarray()
            return torch.as_tensor(block, dtype=self._dtype, device=self._device)
        if isinstance(rows, slice):
            return self._tensor[rows]
        return self._tensor[torch.as_tensor(rows, device=self._device)]

    def blocks(self, size: int) -> Iterator[Tensor]:
        """Return all rows in order, so many at a time."""
        for start in range(0, len(self), size):
            yield self.rows(slice(start, start + size))


class TrainingRows:
    """The rows that train, shuffled into batches every epoch."""

    def __init__(self, part: Part, device: Any):
        torch = import_torch()
        weight = np.ones(len(part.Y)) if part.weight is None else part.weight
        weight = weight / weight.max()  # whose sum could overflow
        self._features = Features(part.X, device, torch.float32)
        self.y = torch.as_tensor(part.Y, dtype=torch.float32, device=device)
        self.weight = torch.as_tensor(
            weight / weight.mean(), dtype=torch.float32, device=device
        )
        self._device = device

    def __len__(self) -> int:
        return len(self._features)

    def batches(
        self, size: int, generator: np.random.Generator, *, equal: bool
    ) -> Iterator[Batch]:
        """Return all rows in a random order, ``size`` at a time.

        With ``equal`` the last batch is topped up from the beginning of the order.
        """
        torch = import_torch()
        order = generator.permutation(len(self))
        size = min(size, len(order))
        if equal:
            order = np.concatenate([order, order[: -len(order) % size]])
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            index = torch.as_tensor(rows, device=self._device)
            yield Batch(self._features.rows(rows), self.y[index], self.weight[index])
