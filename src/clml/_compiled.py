"""The one way functions are compiled here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


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
