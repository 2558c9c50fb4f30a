"""BLAS kept to one thread while blocks are worked on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = Lock()
_users = 0
_before: list[int] = []


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS to one thread: its threads would compete with ours and round apart.

    The limit holds for the process. Uses may nest and overlap in threads: the first
    one sets it, the last one out restores what was.
    """
    global _users, _before
    with _lock:
        if _users == 0:
            _before = [library.num_threads for library in _libraries()]
            _set_threads([1] * len(_before))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _set_threads(_before)


def _renew_lock() -> None:
    """Forget who held the lock: a forked child has no such thread."""
    global _lock
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


@cache
def _libraries() -> list[Any]:
    """Return the BLAS libraries in the process; looking them up costs milliseconds."""
    found = ThreadpoolController().lib_controllers
    return [library for library in found if library.user_api == "blas"]


def _set_threads(numbers: list[int]) -> None:
    for library, number in zip(_libraries(), numbers, strict=True):
        # Recent threadpoolctl lets only one thread at a time change OpenBLAS and
        # ignores the rest. We count our uses ourselves and must not be ignored: the
        # last one out is often not the thread that came first.
        change = getattr(library, "_real_set_num_threads", library.set_num_threads)
        change(number)
