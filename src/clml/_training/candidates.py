"""Populations as arrays or as a device's tensors: the few things that differ."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.torch import import_torch


def as_single(population: Any) -> Any:
    """Return a population in float32, where it is."""
    if isinstance(population, np.ndarray):
        return population.astype(np.float32, copy=False)
    return population.float()


def stacked(population: Any, candidate: NDArray[np.float32]) -> Any:
    """Return a population with one more candidate, from the host, at its end."""
    if isinstance(population, np.ndarray):
        return np.vstack([population, candidate])
    torch = import_torch()
    last = torch.as_tensor(candidate, device=population.device)
    return torch.cat([population, last[None]])


def side_by_side(before: NDArray[np.float32], last: Any) -> Any:
    """Return candidates that begin with the same weights, from the host."""
    if isinstance(last, np.ndarray):
        same = np.broadcast_to(before, (len(last), len(before)))
        return np.concatenate([same, last], axis=1)
    torch = import_torch()
    same = torch.as_tensor(before, device=last.device).expand(len(last), -1)
    return torch.cat([same, last], dim=1)


def host_rows(population: Any, which: NDArray[np.integer]) -> NDArray[np.float32]:
    """Return some candidates as an array of their own."""
    if isinstance(population, np.ndarray):
        return population[which]
    torch = import_torch()
    index = torch.as_tensor(which, device=population.device)
    return population[index].cpu().numpy()
