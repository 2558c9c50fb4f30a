"""The one way functions are compiled here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(
    function: Callable[..., Any] | None = None, *, reorder: bool = False
) -> Any:
    """Compile a kernel: serial, without the interpreter lock, cached on disk.

    With ``reorder`` sums may be taken in another order, so that they become vector
    instructions; NaN keeps its meaning.

    Threads are the callers' own. Divisions follow IEEE: a check for zero would keep
    loops from becoming vector instructions. Where no cache can be written (a read-only
    installation without a home) the kernel is compiled in every process.
    """
    if function is None:
        return lambda f: compiled(f, reorder=reorder)
    fastmath = {"reassoc", "nsz", "contract"} if reorder else False
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": fastmath,
    }
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # numba found no place for its cache
        return njit(**options)(function)
