"""Partitions that one process holds: as many in memory as a budget allows.

The others are read again in every pass, the next one while one is worked on. What is
read from the second pass on is not the source but a copy on disk of the rows as they
are computed with: checked, split and scaled.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import IO, Self

import numpy as np
from numpy.typing import NDArray

from ..losses import Statistics
from ._numpy import NumpyEngine
from .partitioned import Held, Request, statistics_of, total

# Candidates in flight, as a share of the budget.
_WORKING_SHARE = 0.1
# Partitions' worth of memory beside those that are kept: one is worked on, one is read,
# and while it is made of its source it takes as much again, twice.
_IN_FLIGHT = 4


@dataclass(frozen=True, eq=False)
class _Copy:
    """Where a partition's rows are on disk; the engines say what the arrays are."""

    start: int
    engines: dict[str, NumpyEngine]
    n_arrays: dict[str, int]


class _Scratch:
    """Copies on disk of partitions' rows, in one file that has no name.

    The system takes such a file back when the process ends, however it ends.
    """

    def __init__(self) -> None:
        # Without a buffer NumPy reads and writes the file itself.
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="clml-", buffering=0)
        # One partition is read while another is written.
        self._lock = threading.Lock()
        self._end = 0
        self._copies: dict[int, _Copy] = {}

    def __contains__(self, index: int) -> bool:
        return index in self._copies

    def close(self) -> None:
        """Give the disk back."""
        self._file.close()

    def write(self, held: Held) -> None:
        """Copy rows that are in the memory of this process; not those of others."""
        engines: dict[str, NumpyEngine] = {}
        n_arrays = {}
        with self._lock:
            self._file.seek(self._end)
            for part, engine in held.engines.items():
                if not isinstance(engine, NumpyEngine):
                    return
                arrays = engine.arrays()
                for array in arrays:
                    np.lib.format.write_array(self._file, array, allow_pickle=False)
                n_arrays[part] = len(arrays)
                engines[part] = engine.with_arrays([a[:1].copy() for a in arrays])
            self._copies[held.index] = _Copy(self._end, engines, n_arrays)
            self._end = self._file.tell()

    def read(self, index: int) -> Held:
        """Return a partition as it was."""
        copy = self._copies[index]
        engines = {}
        with self._lock:
            self._file.seek(copy.start)
            for part, engine in copy.engines.items():
                arrays = [
                    np.lib.format.read_array(self._file, allow_pickle=False)
                    for _ in range(copy.n_arrays[part])
                ]
                engines[part] = engine.with_arrays(arrays)
        return Held(index, engines)


class LocalHolders:
    """Holds partitions in this process.

    Parameters
    ----------
    load : callable
        Returns the partition of an index, as a ``Held``.
    n_partitions : int
    memory_mb : float
        What rows in memory may take, those that are being read included.
    executor : Executor, default=None
        Threads that help with the arithmetic.
    beside_mb : float, default=0
        What is taken of it already.

    Attributes
    ----------
    n_kept : int
        Partitions that stay in memory.
    n_read : int
        Partitions that were read so far.
    """

    def __init__(
        self,
        load: Callable[[int], Held],
        n_partitions: int,
        memory_mb: float,
        executor: Executor | None = None,
        beside_mb: float = 0.0,
    ):
        self._load, self._n = load, n_partitions
        self._executor = executor
        self._memory_mb = memory_mb
        # A tenth at least: a partition that does not fit says what is missing.
        left = max(memory_mb - beside_mb, 0.1 * memory_mb)
        self._budget = left * 2**20 * (1 - _WORKING_SHARE)
        self._kept: dict[int, Held] = {}
        self._kept_bytes = 0
        self._largest = 0
        self._scratch: _Scratch | None = None
        self.n_read = 0

    @property
    def n_kept(self) -> int:
        """Partitions that stay in memory."""
        return len(self._kept)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._kept.clear()
        if self._scratch is not None:
            self._scratch.close()

    def evaluate(
        self, thetas: NDArray[np.floating], requests: tuple[Request, ...]
    ) -> list[Statistics | None]:
        """Return the sums over all partitions for each request, in one pass."""
        # Closed at once after an interrupt: left to the garbage collector, the reader
        # might be waited for inside a thread that is just starting, for ever.
        with closing(self._held()) as held:
            found = statistics_of(held, thetas, requests, self._n, self._executor)
        return [total(nodes, self._n) for nodes in found]

    def _held(self) -> Generator[Held, None, None]:
        """Yield all partitions in order; the next one is read meanwhile."""
        missing = [i for i in range(self._n) if i not in self._kept]
        if not missing:
            yield from (self._kept[i] for i in range(self._n))
            return
        with ThreadPoolExecutor(1, thread_name_prefix="clml-read") as reader:
            ahead = reader.submit(self._read, missing[0])
            for i in range(self._n):
                if i in self._kept:
                    yield self._kept[i]
                    continue
                held = ahead.result()
                self._keep(held)
                missing.remove(i)
                # One that is worked on and one that is read: only if both fit.
                at_once = self._kept_bytes + 2 * self._largest <= self._budget
                if missing and at_once:
                    ahead = reader.submit(self._read, missing[0])
                yield held
                del held
                if missing and not at_once:
                    ahead = reader.submit(self._read, missing[0])

    def _read(self, index: int) -> Held:
        self.n_read += 1
        if self._scratch is not None and index in self._scratch:
            return self._scratch.read(index)
        return self._load(index)

    def _keep(self, held: Held) -> None:
        """Keep a partition in memory if there is room for it, else on disk."""
        self._largest = max(self._largest, held.nbytes)
        if held.nbytes > self._budget:
            raise ValueError(
                f"memory_mb must hold a partition, got memory_mb={self._memory_mb:g}, "
                f"of which {self._budget / 2**20:.3g} MB are for rows, and "
                f"{held.nbytes / 2**20:.3g} MB in partition {held.index}. Use more "
                "memory, or cut the rows into smaller partitions."
            )
        room = self._budget - _IN_FLIGHT * self._largest
        while self._kept and self._kept_bytes > room:  # this one is larger than others
            _, other = self._kept.popitem()
            self._kept_bytes -= other.nbytes
            self._copy(other)
        if self._kept_bytes + held.nbytes <= room:
            self._kept[held.index] = held
            self._kept_bytes += held.nbytes
        else:
            self._copy(held)

    def _copy(self, held: Held) -> None:
        try:
            if self._scratch is None:
                self._scratch = _Scratch()
            if held.index not in self._scratch:
                self._scratch.write(held)
        except OSError as error:
            raise OSError(
                error.errno,
                f"The rows that do not fit memory_mb={self._memory_mb:g} are copied to "
                f"a temporary file, which failed: {error.strerror}. Another place for "
                "it is set by the environment variable TMPDIR",
            ) from error
