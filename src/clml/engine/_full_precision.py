"""Products of float32 in float32, whatever the process allows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from .._support.torch import import_torch

# A setting of the process: the first user notes what it was, the last one restores it.
_lock = Lock()
_n_users = 0
_rounded: list[tuple[Any, str, Any]] = []


@contextmanager
def full_precision() -> Iterator[None]:
    """Let no product be rounded to TF32 or bfloat16, for a while.

    Where nothing else is allowed nothing is touched: PyTorch refuses some mixtures of
    its older and newer settings.
    """
    global _n_users
    with _lock:
        if _n_users == 0:
            _forbid_rounding()
        _n_users += 1
    try:
        yield
    finally:
        with _lock:
            _n_users -= 1
            if _n_users == 0:
                while _rounded:
                    backend, name, before = _rounded.pop()
                    setattr(backend, name, before)


def _forbid_rounding() -> None:
    torch = import_torch()
    on_gpu = torch.backends.cuda.matmul
    on_cpu: Any = getattr(torch.backends.mkldnn, "matmul", None)
    for backend in (on_gpu, on_cpu):
        before = getattr(backend, "fp32_precision", None)
        if before in ("tf32", "bf16"):
            _rounded.append((backend, "fp32_precision", before))
            backend.fp32_precision = "ieee"
    # Before PyTorch 2.9.
    if not hasattr(on_gpu, "fp32_precision") and on_gpu.allow_tf32:
        _rounded.append((on_gpu, "allow_tf32", True))
        on_gpu.allow_tf32 = False
