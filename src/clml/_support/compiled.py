"""The one way functions are compiled here."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit

_log = logging.getLogger("clml")
_told = False


def tell_of_compilation(kernel: Any) -> None:
    """Say that kernels are about to be compiled where none is found on disk; once."""
    global _told
    if _told or kernel.signatures or _is_cached(kernel):
        return
    _told = True
    _log.warning(
        "Compiling kernels, which takes some 20 seconds; the next process finds them."
    )


def _is_cached(kernel: Any) -> bool:
    """Tell whether a kernel was compiled before; also if that cannot be told."""
    try:
        folder, stem = kernel._cache.cache_path, kernel._cache._impl.filename_base
    except AttributeError:
        return True
    return any(Path(folder).glob(f"{stem}*.nbi"))


def compiled(
    function: Callable[..., Any] | None = None,
    *,
    reorder: bool = False,
    inline: bool = False,
) -> Any:
    """Compile a kernel: serial, without the interpreter lock, cached on disk.

    With ``reorder`` sums may be taken in another order, so that they become vector
    instructions; NaN keeps its meaning. With ``inline`` the function becomes a part of
    those that call it: passing many arrays takes as long as a hundred instructions.

    Threads are the callers' own. Divisions follow IEEE: a check for zero would keep
    loops from becoming vector instructions. Where no cache can be written (a read-only
    installation without a home) the kernel is compiled in every process.
    """
    if function is None:
        return lambda f: compiled(f, reorder=reorder, inline=inline)
    fastmath = {"reassoc", "nsz", "contract"} if reorder else False
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": fastmath,
        "inline": "always" if inline else "never",
    }
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # numba found no place for its cache
        return njit(**options)(function)
