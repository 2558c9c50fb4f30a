"""Where partitions come from and are worked on: in this process, or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import scipy.sparse as sp

from ._partition_rows import EnginePlan, Parts, SplitPlan, split_rows
from .engine._dask import DaskHolders
from .engine._local import LocalHolders
from .engine._partitioned import Held

Result = TypeVar("Result")


class Partitions(Protocol):
    """Partitions, wherever they are."""

    @property
    def n(self) -> int:
        """How many there are."""

    def map_rows(self, function: Callable[[Any, int], Result]) -> list[Result]:
        """Return what a function makes of each partition, as given, and its index."""

    def map(
        self, function: Callable[[Parts, int], Result], plan: SplitPlan
    ) -> list[Result]:
        """Return what a function makes of each partition, split, and its index."""

    def held(self, plan: SplitPlan, engines: EnginePlan, beside_mb: float) -> Any:
        """Return a context of those who hold the partitions, as they are computed.

        So much of this process's memory is taken already.
        """


class LocalPartitions:
    """Partitions that this process reads, one at a time.

    Parameters
    ----------
    loaders : sequence of callables
        Each returns X, Y and weights or None.
    memory_mb : float
    executor : Executor or None
    """

    def __init__(
        self,
        loaders: Sequence[Callable[[], Any]],
        memory_mb: float,
        executor: Executor | None,
    ):
        self._loaders = loaders
        self._memory_mb, self._executor = memory_mb, executor

    @property
    def n(self) -> int:
        """How many there are."""
        return len(self._loaders)

    def map_rows(self, function: Callable[[Any, int], Result]) -> list[Result]:
        """Return what a function makes of each partition, as given, and its index."""
        return [function(load(), i) for i, load in enumerate(self._loaders)]

    def map(
        self, function: Callable[[Parts, int], Result], plan: SplitPlan
    ) -> list[Result]:
        """Return what a function makes of each partition, split, and its index."""
        return self.map_rows(lambda rows, i: function(split_rows(rows, i, plan), i))

    @contextmanager
    def held(
        self, plan: SplitPlan, engines: EnginePlan, beside_mb: float = 0.0
    ) -> Iterator[LocalHolders]:
        """Yield what holds the partitions, as they are computed with."""

        def load(index: int) -> Held:
            return engines.hold(split_rows(self._loaders[index](), index, plan), index)

        # A tenth at least: a partition that does not fit says what is missing.
        left = max(self._memory_mb - beside_mb, 0.1 * self._memory_mb)
        with LocalHolders(load, self.n, left, self._executor) as holders:
            yield holders


class ClusterPartitions:
    """Partitions on the workers of a dask cluster.

    Parameters
    ----------
    client : distributed.Client
    sources : sequence of callables or of dask's Delayed
        Each returns X, Y and weights or None.
    """

    def __init__(self, client: Any, sources: Sequence[Any]):
        self._client, self._sources = client, sources
        self._rows: list[Any] = []
        self._parts: list[Any] = []

    @property
    def n(self) -> int:
        """How many there are."""
        return len(self._sources)

    def map_rows(self, function: Callable[[Any, int], Result]) -> list[Result]:
        """Return what a function makes of each partition, as given, and its index."""
        self._rows = self._rows or self._load(range(self.n))
        return self._map(function, self._rows)

    def map(
        self, function: Callable[[Parts, int], Result], plan: SplitPlan
    ) -> list[Result]:
        """Return what a function makes of each partition, split, and its index."""
        self._parts = self._parts or self._split(range(self.n), plan)
        return self._map(function, self._parts)

    def _map(self, function: Callable[[Any, int], Any], given: list[Any]) -> list[Any]:
        submit = self._client.submit
        futures = [submit(function, one, i, pure=False) for i, one in enumerate(given)]
        results: list[Any] = self._client.gather(futures)
        return results

    @contextmanager
    def held(
        self, plan: SplitPlan, engines: EnginePlan, beside_mb: float = 0.0
    ) -> Iterator[DaskHolders]:
        """Yield what holds the partitions, as they are computed with."""

        def make(indices: Sequence[int]) -> list[Any]:
            # The first time the parts are there. Later they have been let go of, and
            # dask knows how to make them again; unless their source went with a
            # worker, and then we do.
            known, self._parts, self._rows = self._parts, [], []
            parts = [known[i] for i in indices] if known else self._split(indices, plan)
            return [
                self._client.submit(engines.hold, some, i, pure=False)
                for i, some in zip(indices, parts, strict=True)
            ]

        yield DaskHolders(self._client, make, self.n)

    def _split(self, indices: Sequence[int], plan: SplitPlan) -> list[Any]:
        """Return futures of partitions, checked and split."""
        known, self._rows = self._rows, []
        rows = [known[i] for i in indices] if known else self._load(indices)
        return [
            self._client.submit(split_rows, one, i, plan, pure=False)
            for i, one in zip(indices, rows, strict=True)
        ]

    def _load(self, indices: Sequence[int]) -> list[Any]:
        """Return futures of partitions as they were given."""
        client = self._client
        if hasattr(self._sources[0], "__dask_graph__"):
            delayed: list[Any] = client.compute([self._sources[i] for i in indices])
            return delayed
        workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
        futures = []
        for i in indices:
            source, near = self._sources[i], {}
            if workers:
                # Neighbours on the same worker: it hands on fewer sums.
                worker = workers[i * len(workers) // self.n]
                near = {"workers": [worker], "allow_other_workers": True}
            if _holds_data(source):
                source = client.scatter(source, hash=False, workers=near.get("workers"))
            futures.append(client.submit(_call, source, pure=False, **near))
        return futures


def _holds_data(loader: Any) -> bool:
    """Whether what loads a partition has the rows in itself."""
    values = getattr(loader, "__dict__", {}).values()
    return any(hasattr(value, "nbytes") or sp.issparse(value) for value in values)


def _call(loader: Callable[[], Any]) -> Any:
    return loader()
