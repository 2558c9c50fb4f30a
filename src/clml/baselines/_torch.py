"""Where PyTorch comes in: it is optional, so nobody imports it at the top."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

#: The parameters of a network, and what it keeps beside them, by name.
Weights = dict[str, "Tensor"]
#: The same as arrays: what an estimator holds, copies and saves.
Arrays = dict[str, NDArray[np.float32]]


def import_torch() -> ModuleType:
    """Return PyTorch, or say how to install it."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "This estimator needs PyTorch. Install it with: pip install 'clml[torch]'"
        ) from error
    return torch


def find_device(name: str) -> Any:
    """Return the device of a name; "auto" is a GPU where there is one."""
    torch = import_torch()
    has_gpu = torch.cuda.is_available()
    if name == "auto":
        name = "cuda" if has_gpu else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(
            f"device must be 'auto', 'cpu', 'cuda' or 'cuda:<number>', got {name!r}."
        ) from error
    if device.type == "cuda":
        n_gpus = torch.cuda.device_count() if has_gpu else 0
        if (device.index or 0) >= n_gpus:
            raise ValueError(
                f"device={name!r} was asked for, but PyTorch sees {n_gpus} GPUs. "
                "Use device='cpu', or 'auto' for a GPU where there is one."
            )
    return device


def as_arrays(weights: Weights) -> Arrays:
    """Copy weights to arrays, from whatever device."""
    return {name: w.detach().cpu().numpy().copy() for name, w in weights.items()}


def as_tensors(arrays: Arrays, device: Any, dtype: Any) -> Weights:
    """Copy arrays to weights that are not trained."""
    torch = import_torch()
    return {
        name: torch.tensor(array, dtype=dtype, device=device)
        for name, array in arrays.items()
    }
