"""Partitions on the workers of a dask cluster.

Each worker is one task an epoch: it evaluates the partitions that lie there, with all
of its threads, and answers with their sums. Everything that can be lost with a worker
is made again by dask, from what it was made of, or by us, from its source.
"""

from __future__ import annotations

import itertools
import os
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np

from .._support.cluster import told_if_closed
from ..losses import Statistics
from .letters import Letter, Whole
from .partitioned import Held, Request, statistics_of, total
from .tree_sum import Node

# Seconds between two looks for workers that have come.
_LOOK_SECONDS = 5.0
# Seconds without an answer after which it is asked whether there are workers at all.
_PATIENCE = 10.0
#: Times in a row that something is begun anew because workers died.
ATTEMPTS = 20


@dataclass(frozen=True, eq=False)
class Answer:
    """What a worker says about its partitions.

    Attributes
    ----------
    worker : str
        Its address.
    sums : list of lists of Node, or None
        One list a request; None if the letter could not be read there.
    seconds : float
        That it took.
    """

    worker: str
    sums: list[list[Node]] | None
    seconds: float

    @property
    def nbytes(self) -> int:
        """Bytes of the sums."""
        return sum(
            array.nbytes
            for nodes in self.sums or ()
            for node in nodes
            if node.value is not None
            for array in node.value.sums.values()
        )


@dataclass(frozen=True)
class Pass:
    """What a pass over all partitions took.

    Attributes
    ----------
    seconds : float
        From the first task sent to the last answer.
    compute_seconds : float
        Of the worker that took longest.
    sent, received : int
        Largest letter, and largest answer of a worker, in bytes of their arrays.
    n_tasks : int
    n_repeated : int
        Tasks that were sent again.
    """

    seconds: float
    compute_seconds: float
    sent: int
    received: int
    n_tasks: int
    n_repeated: int


class Writer(Protocol):
    """What writes letters to workers."""

    def letter(self, thetas: Any, follows: bool) -> Letter:
        """Return the letter that tells candidates to somebody who follows, or not."""

    def end(self, client: Any) -> None:
        """Tell workers that there will be no more letters."""


class _PlainWriter:
    def letter(self, thetas: Any, follows: bool) -> Letter:
        return Whole(thetas)

    def end(self, client: Any) -> None:
        pass


@cache
def _helpers(n_threads: int, pid: int) -> Executor | None:
    """Return threads that help a worker's own, the same ones for the whole run."""
    if n_threads < 2:
        return None
    return ThreadPoolExecutor(n_threads - 1, thread_name_prefix="clml")


def answer(
    letter: Letter, held: list[Held], requests: tuple[Request, ...], n_partitions: int
) -> Answer:
    """Evaluate candidates on some partitions: what a worker does."""
    from distributed import get_worker

    began = time.perf_counter()
    worker = get_worker()
    thetas = letter.open()
    sums = None
    if thetas is not None:
        helpers = _helpers(worker.state.nthreads, os.getpid())
        sums = statistics_of(held, thetas, requests, n_partitions, helpers)
    return Answer(worker.address, sums, time.perf_counter() - began)


class DaskHolders:
    """Holds partitions on the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
    make : callable
        Takes indices of partitions; returns as many futures of ``Held``.
    n_partitions : int
    writer : Writer, default=None
        Of letters; candidates are sent as they are by default.
    may_move : bool, default=False
        Whether workers that come late get some of the partitions, made again.

    Attributes
    ----------
    passes : list of Pass
    """

    def __init__(
        self,
        client: Any,
        make: Callable[[Sequence[int]], list[Any]],
        n_partitions: int,
        writer: Writer | None = None,
        may_move: bool = False,
    ):
        self._client, self._make, self._n = client, make, n_partitions
        self.writer: Writer = writer or _PlainWriter()
        self._held: dict[int, Any] = {}
        # Workers that follow the run, and those that have to be told everything.
        self._followers: set[str] = set()
        self._stubborn: set[str] = set()
        self._may_move = may_move
        self._known: set[str] = set()
        self._looked = -_LOOK_SECONDS
        self._homes: dict[int, str] = {}
        # The partitions of each worker, until one of them dies.
        self._places: dict[str, list[int]] = {}
        self.passes: list[Pass] = []

    def evaluate(
        self, thetas: Any, requests: tuple[Request, ...]
    ) -> list[Statistics | None]:
        """Return the sums over all partitions for each request, in one pass."""
        with told_if_closed(self._client):
            return self._evaluate(thetas, requests)

    def _evaluate(
        self, thetas: Any, requests: tuple[Request, ...]
    ) -> list[Statistics | None]:
        began = time.perf_counter()
        self._welcome_workers()
        todo = set(range(self._n))
        answers: list[Answer] = []
        sent: list[int] = []
        for attempt in range(ATTEMPTS):
            followers = set(self._followers)
            tasks = self._send(todo, thetas, requests, sent)
            for worker, indices, reply in self._replies(tasks):
                if reply.sums is None:
                    self._misunderstood(reply.worker, worker in followers)
                    continue
                answers.append(reply)
                self._followers.add(reply.worker)
                todo -= set(indices)
                if reply.worker != worker:  # dask had a reason
                    self._places = {}
            # After a second attempt the places are those of what it was about.
            if todo or attempt:
                self._places = {}
            if not todo:
                break
        else:
            raise RuntimeError(
                f"The cluster lost workers {ATTEMPTS} times before {len(todo)} of "
                f"{self._n} partitions were evaluated once."
            )
        self.passes.append(
            Pass(
                seconds=time.perf_counter() - began,
                compute_seconds=max(reply.seconds for reply in answers),
                sent=max(sent),
                received=max(reply.nbytes for reply in answers),
                n_tasks=len(sent),
                n_repeated=len(sent) - len(answers),
            )
        )
        return [
            total([node for r in answers for node in r.sums[i]], self._n)  # type: ignore[index]
            for i in range(len(requests))
        ]

    def _welcome_workers(self) -> None:
        """Let go of what workers that came late are to have: it is made there again."""
        now = time.monotonic()
        if not self._may_move or now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        workers = sorted(self._client.nthreads())
        new = set(workers) - self._known
        self._known |= new
        if new and self._held:
            for i in range(self._n):
                if place_of(i, self._n, workers) in new:
                    self._held.pop(i, None)
            self._places = {}

    def let_go(self) -> None:
        """Let go of the partitions, whoever remembers this object."""
        self._held.clear()
        self.writer.end(self._client)

    def _misunderstood(self, worker: str, was_brief: bool) -> None:
        """Write to a worker in more words: the strategy first, then candidates.

        A letter to a follower may have been read by another, after his death.
        """
        self._followers.discard(worker)
        if not was_brief:
            self._stubborn.add(worker)

    def _send(
        self,
        todo: set[int],
        thetas: Any,
        requests: tuple[Request, ...],
        sent: list[int],
    ) -> list[tuple[str, list[int], Any]]:
        """Send one task a worker; return both, and its partitions."""
        if not self._places:
            self._make_missing(todo)
            self._places = self._find_places(todo)
        tasks = []
        keys = fresh_keys("answer")
        for worker, indices in self._places.items():
            letter: Letter = Whole(thetas)
            if worker not in self._stubborn:
                letter = self.writer.letter(thetas, worker in self._followers)
            sent.append(_letter_bytes(letter))
            task = self._client.submit(
                answer,
                letter,
                [self._held[i] for i in indices],
                requests,
                self._n,
                # It goes where its partitions are. Restricted to a worker it would wait
                # for one that has died, if no other was there at that moment.
                key=next(keys),
            )
            tasks.append((worker, indices, task))
        return tasks

    def _make_missing(self, todo: set[int]) -> None:
        """Make what is not there, and wait until it is."""
        wanted = sorted(todo)
        for _ in range(ATTEMPTS):
            lost = [i for i in wanted if i not in self._held or is_lost(self._held[i])]
            if lost:
                self._held |= dict(zip(lost, self._make(lost), strict=True))
            if settled(self._client, [self._held[i] for i in wanted]):
                return
        raise RuntimeError(
            f"The cluster lost partitions {ATTEMPTS} times while they were made. "
            "Their source may be gone, or workers have too little memory."
        )

    def _find_places(self, todo: set[int]) -> dict[str, list[int]]:
        """Return the partitions of each worker; "" has those that were just lost."""
        futures = {i: self._held[i] for i in sorted(todo)}
        where = self._client.who_has(list(futures.values()))
        groups: dict[str, list[int]] = {}
        for i, future in futures.items():
            # There may be copies: it stays where it was, or goes where fewest are.
            owners = sorted(
                where.get(future.key, ()), key=lambda w: (len(groups.get(w, ())), w)
            )
            if self._homes.get(i) not in owners:
                self._homes[i] = owners[0] if owners else ""
            groups.setdefault(self._homes[i], []).append(i)
        return groups

    def _replies(
        self, tasks: list[tuple[str, list[int], Any]]
    ) -> Iterator[tuple[str, list[int], Answer]]:
        """Yield the worker, the partitions and the answer of each task that has one."""
        found = gathered(self._client, [future for *_, future in tasks])
        for place, reply in found.items():
            worker, indices, _ = tasks[place]
            yield worker, indices, reply


def fresh_keys(name: str) -> Iterator[tuple[str, int]]:
    """Yield keys of tasks that are a group of their own to the scheduler.

    It takes few inputs of a group that grows for data that are cheap to send, and
    spreads the tasks over all workers, rows or no rows.
    """
    group = f"{name}-{uuid.uuid4().hex}"
    yield from ((group, number) for number in itertools.count())


def place_of(index: int, n_partitions: int, workers: Sequence[str]) -> str:
    """Return the worker that is to have a partition: neighbours have the same."""
    return workers[index * len(workers) // n_partitions]


def gathered(client: Any, futures: list[Any]) -> dict[int, Any]:
    """Wait for tasks; return the results of those that workers did not take along.

    Parameters
    ----------
    client : distributed.Client
    futures : list of Future

    Returns
    -------
    dict of int to object
        The results, by their places in the list. What went wrong otherwise is raised.
    """
    from distributed import CancelledError

    settled(client, futures)
    ended = [i for i, future in enumerate(futures) if not is_lost(future)]
    try:
        return dict(zip(ended, client.gather([futures[i] for i in ended]), strict=True))
    except (CancelledError, OSError):  # a worker died with its result
        return {}


def settled(client: Any, futures: list[Any]) -> bool:
    """Wait for tasks; tell whether all of them have ended well."""
    from distributed import CancelledError, wait

    try:
        with client.as_current():  # which need not be the one made last
            while True:
                try:
                    wait(futures, timeout=_PATIENCE)
                    break
                except TimeoutError:
                    if not client.nthreads():
                        warnings.warn(
                            "The cluster has no workers. The fit waits for some.",
                            stacklevel=2,
                        )
    except CancelledError:  # some are lost; the others are looked at
        pass
    except BaseException:
        with suppress(Exception):  # of a client that is closed: there are none left
            client.cancel(futures)
        raise
    return all(future.status == "finished" for future in futures)


def is_lost(future: Any) -> bool:
    """Whether workers that died took a task with them; raises what else went wrong."""
    from distributed import KilledWorker

    if future.status == "error":
        error = future.exception()
        if not isinstance(error, KilledWorker):
            raise error
    return future.status not in ("finished", "pending")


def _letter_bytes(letter: Letter) -> int:
    """Return the bytes of a letter's arrays."""
    return sum(_bytes_of(value) for value in vars(letter).values())


def _bytes_of(value: Any) -> int:
    if isinstance(value, np.ndarray | bytes):
        return len(value) if isinstance(value, bytes) else value.nbytes
    if isinstance(value, dict):
        return sum(_bytes_of(v) for v in value.values())
    return 8
