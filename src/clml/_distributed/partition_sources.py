"""Where partitions come from and are worked on: in this process, or on a cluster."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeVar

import scipy.sparse as sp

from .._support.cluster import told_if_closed
from .._support.pickling import refuse_unpicklable
from ..engine.dask import ATTEMPTS, DaskHolders, fresh_keys, gathered, place_of
from ..engine.local import LocalHolders
from ..engine.partitioned import Held
from .partition_rows import EnginePlan, Parts, SplitPlan, split_rows

Result = TypeVar("Result")
# What is sent with each task alone if it is smaller.
_MANY_BYTES = 100_000


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

        with LocalHolders(
            load, self.n, self._memory_mb, self._executor, beside_mb
        ) as holders:
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
        with told_if_closed(self._client):
            self._rows = self._rows or self._load(range(self.n))
            return self._map(function, self._rows, self._load)

    def map(
        self, function: Callable[[Parts, int], Result], plan: SplitPlan
    ) -> list[Result]:
        """Return what a function makes of each partition, split, and its index."""
        with told_if_closed(self._client):
            self._parts = self._parts or self._split(range(self.n), plan)
            return self._map(function, self._parts, partial(self._split, plan=plan))

    def _map(
        self,
        function: Callable[[Any, int], Any],
        given: list[Any],
        make: Callable[[Sequence[int]], list[Any]],
    ) -> list[Any]:
        """Call a function on workers; what is lost with one is made again, in place."""
        found: dict[int, Any] = {}
        for _ in range(ATTEMPTS):
            missing = [i for i in range(self.n) if i not in found]
            futures = [
                self._client.submit(function, given[i], i, key=key)
                for i, key in zip(missing, fresh_keys("map"), strict=False)
            ]
            results = gathered(self._client, futures)
            found |= {missing[place]: result for place, result in results.items()}
            lost = [i for i in missing if i not in found]
            if not lost:
                return [found[i] for i in range(self.n)]
            if given is not self._rows:
                self._rows = []
            for i, again in zip(lost, make(lost), strict=True):
                given[i] = again
        raise RuntimeError(
            f"The cluster lost workers {ATTEMPTS} times while {len(lost)} of {self.n} "
            "partitions were read. They may have too little memory."
        )

    @contextmanager
    def held(
        self, plan: SplitPlan, engines: EnginePlan, beside_mb: float = 0.0
    ) -> Iterator[DaskHolders]:
        """Yield what holds the partitions, as they are computed with."""
        packed = _packed(engines)

        def make(indices: Sequence[int]) -> list[Any]:
            # The first time the parts are there. Later they have been let go of, and
            # dask knows how to make them again; unless their source went with a
            # worker, and then we do.
            known, self._parts, self._rows = self._parts, [], []
            parts = [known[i] for i in indices] if known else self._split(indices, plan)
            # Of many features it is large, and goes there once.
            there = packed
            if len(packed) > _MANY_BYTES:
                there = self._scattered(packed, None)
            return [
                self._client.submit(_hold, there, some, i, key=key)
                for i, some, key in zip(
                    indices, parts, fresh_keys("hold"), strict=False
                )
            ]

        may_move = not hasattr(self._sources[0], "__dask_graph__")
        holders = DaskHolders(self._client, make, self.n, may_move=may_move)
        try:
            yield holders
        finally:
            holders.let_go()

    def let_go(self) -> None:
        """Let go of what is on the cluster.

        A client remembers errors of tasks, an error the calls that it came through,
        and these would keep the rows for as long as the client lives.
        """
        self._rows.clear()
        self._parts.clear()

    def _split(self, indices: Sequence[int], plan: SplitPlan) -> list[Any]:
        """Return futures of partitions, checked and split."""
        known, self._rows = self._rows, []
        rows = [known[i] for i in indices] if known else self._load(indices)
        return [
            self._client.submit(split_rows, one, i, plan, key=key)
            for i, one, key in zip(indices, rows, fresh_keys("split"), strict=False)
        ]

    def _load(self, indices: Sequence[int]) -> list[Any]:
        """Return futures of partitions as they were given."""
        client = self._client
        if hasattr(self._sources[0], "__dask_graph__"):
            delayed: list[Any] = client.compute([self._sources[i] for i in indices])
            return delayed
        workers = sorted(client.nthreads())
        futures = []
        for i, key in zip(indices, fresh_keys("rows"), strict=False):
            # Neighbours on the same worker, which hands on fewer sums: tasks go where
            # what they work on is. Restricted to a worker they would wait for one that
            # has died, if no other was there at that moment.
            near = [place_of(i, self.n, workers)] if workers else None
            source = self._sources[i]
            refuse_unpicklable(source, f"The loader of partition {i}")
            there = source if _holds_data(source) else _packed(source)
            futures.append(client.submit(_call, self._scattered(there, near), key=key))
        return futures

    def _scattered(self, source: Any, workers: list[str] | None) -> Any:
        """Return a future of something large, on one of the workers if it lives."""
        for _ in range(ATTEMPTS):
            try:
                return self._client.scatter(source, hash=False, workers=workers)
            except (OSError, KeyError) as error:  # it died meanwhile, or before
                workers, lost = None, error
        raise lost


def _holds_data(loader: Any) -> bool:
    """Whether what loads a partition has the rows in itself."""
    values = getattr(loader, "__dict__", {}).values()
    return any(hasattr(value, "nbytes") or sp.issparse(value) for value in values)


# What users have written is packed by us: a worker that lacks their module then raises
# an error in the task, which is told. In a message of dask's own it ends the worker.


def _packed(value: Any) -> bytes:
    from distributed.protocol.pickle import dumps  # as dask packs functions

    packed: bytes = dumps(value)
    return packed


def _call(loader: Any) -> Any:
    return (pickle.loads(loader) if isinstance(loader, bytes) else loader)()


def _hold(engines: bytes, parts: Parts, index: int) -> Held:
    plan: EnginePlan = pickle.loads(engines)
    return plan.hold(parts, index)
