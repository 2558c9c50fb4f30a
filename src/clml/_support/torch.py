"""Where PyTorch comes in: it is optional, so nobody imports it at the top."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from .forks import was_forked
from .sklearn_compat import warn_user

if TYPE_CHECKING:
    from torch import Tensor

#: The parameters of a network, and what it keeps beside them, by name.
Weights = dict[str, "Tensor"]
#: The same as arrays: what an estimator holds, copies and saves.
Arrays = dict[str, NDArray[np.float32]]


_lock = Lock()
_users = 0
_before = 0
_here = local()


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
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise ValueError(
            f"device must be 'auto', 'cpu', 'cuda' or 'cuda:<number>', got {name!r}."
        )
    if device.type == "cuda":
        n_gpus = torch.cuda.device_count() if has_gpu else 0
        if (device.index or 0) >= n_gpus:
            raise ValueError(
                f"device={name!r} was asked for, but PyTorch sees {n_gpus} GPUs. "
                "Use device='cpu', or 'auto' for a GPU where there is one."
            )
    return device


@contextmanager
def cpu_threads(n_jobs: int | None) -> Iterator[None]:
    """Let PyTorch have so many threads on the CPU, and no others, for a while.

    Sums are rounded differently by different numbers of threads: what a seed gives
    should not depend on how many a machine has. And on busy cores threads that wait
    for each other are many times slower than one.
    """
    if n_jobs == 0:
        raise ValueError("n_jobs must be a number of threads, -1 or None, got 0.")
    n_threads = effective_n_jobs(n_jobs)
    if n_threads > 1 and was_forked():
        warn_user(
            "PyTorch's threads do not survive a fork: one thread is used, not "
            f"{n_threads}. Start processes by 'spawn', or fork before the first fit."
        )
        n_threads = 1
    torch = import_torch()
    # What a thread that comes later finds is what others have set: the first one in
    # notes what was, for all. A use inside another ends with what that one had.
    global _users, _before
    depth = getattr(_here, "depth", 0)
    before = torch.get_num_threads()
    with _lock:
        if _users == 0:
            _before = before
        _users += 1
        torch.set_num_threads(n_threads)
    _here.depth = depth + 1
    try:
        yield
    finally:
        _here.depth = depth
        with _lock:
            _users -= 1
            torch.set_num_threads(before if depth else _before)


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
