"""The engine of rows in partitions: statistics are added up, rows stay where they are.

A loss is a closing formula of sums over rows. Whoever holds a partition answers with
its sums, a few numbers a candidate; nothing that grows with the rows is gathered.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ..losses import LossSet, Statistics, get_losses
from .base import RowEngine
from .tree_sum import Node, add_along_tree


@dataclass(frozen=True)
class Request:
    """Which rows of each partition candidates are to be evaluated on.

    Attributes
    ----------
    part : str
        Such as "train".
    share : float
        Of these rows, drawn at random.
    seed : tuple of int
        Of the draw; the partition's index is added to it.
    """

    part: str
    share: float = 1.0
    seed: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Held:
    """The rows of a partition, where they are computed on.

    Attributes
    ----------
    index : int
        Which partition it is.
    engines : dict of str to RowEngine
        Of each part that the partition has rows of.
    """

    index: int
    engines: Mapping[str, RowEngine]

    def evaluate(
        self, thetas: Any, request: Request, helpers: Executor | None = None
    ) -> Statistics | None:
        """Return the statistics of candidates (population, n); None of no rows."""
        engine = self.engines.get(request.part)
        if engine is None:
            return None
        engine = engine.helped_by(helpers)
        if request.share < 1:
            engine = engine.drawn(request.share, (*request.seed, self.index))
        return engine.evaluate(thetas)

    @property
    def nbytes(self) -> int:
        """Bytes that the rows take."""
        return sum(engine.nbytes for engine in self.engines.values())

    def __sizeof__(self) -> int:
        # What the memory management of a worker goes by.
        return self.nbytes + 1000


def statistics_of(
    held: Iterable[Held],
    thetas: Any,
    requests: tuple[Request, ...],
    n_partitions: int,
    helpers: Executor | None = None,
) -> list[list[Node]]:
    """Return, for each request, the sums of some partitions as nodes of the tree.

    Parameters
    ----------
    held : iterable of Held
        In the order of their indices; each is let go of before the next one comes.
    thetas : array (population, n)
    requests : tuple of Request
    n_partitions : int
        Of all.
    helpers : Executor, default=None
    """
    found: list[list[Node]] = [[] for _ in requests]
    for one in held:
        for nodes, request in zip(found, requests, strict=True):
            value = one.evaluate(thetas, request, helpers)
            nodes.append(Node(one.index, one.index + 1, value))
            nodes[:] = add_along_tree(nodes, n_partitions)
    return found


class Holders(Protocol):
    """Those who hold partitions."""

    def evaluate(
        self, thetas: Any, requests: tuple[Request, ...]
    ) -> list[Statistics | None]:
        """Return the sums over all partitions for each request, in one pass."""


@dataclass(eq=False)
class _Round:
    """Requests for the same candidates, answered together."""

    thetas: Any
    requests: list[Request]
    answers: list[Statistics | None] | None = None


class _Desk:
    """Collects requests until one of them is waited for."""

    def __init__(self, holders: Holders):
        self._holders = holders
        self._open: _Round | None = None

    def ask(self, thetas: Any, request: Request) -> Callable[[], Statistics | None]:
        """Ask for statistics; what is returned waits for them."""
        now = self._open
        if now is None or now.thetas is not thetas:
            self._open = now = _Round(thetas, [])
        now.requests.append(request)
        place = len(now.requests) - 1

        def wait() -> Statistics | None:
            if self._open is now:
                self._open = None  # whoever asks from now on is of the next pass
            if now.answers is None:
                now.answers = self._holders.evaluate(thetas, tuple(now.requests))
            return now.answers[place]

        return wait


class PartitionedEngine:
    """Evaluates populations on the rows of partitions, wherever these are.

    Engines on other parts of the same partitions share a pass over them: what was
    begun on each is answered when the first of them is waited for.

    Parameters
    ----------
    holders : Holders
    part : str
        Which of the partitions' rows.
    losses : sequence of losses
        Of additive statistics.
    n_labels : int
    sample : RowEngine
        An engine on some of the rows, for what needs the scores of single rows.
    """

    def __init__(
        self,
        holders: Holders,
        part: str,
        losses: Any,
        n_labels: int,
        sample: RowEngine,
    ):
        self.loss_set = LossSet(get_losses(losses), n_labels)
        refuse_matrix_losses(self.loss_set.losses)
        self.sample = sample
        self._request = Request(part)
        self._desk = _Desk(holders)

    def of_part(self, part: str, sample: RowEngine) -> Self:
        """Return an engine on another part of the same partitions."""
        other = copy.copy(self)
        other._request, other.sample = Request(part), sample
        return other

    def drawn(self, share: float, seed: tuple[int, ...]) -> Self:
        """Return an engine on a random share of each partition's rows."""
        other = copy.copy(self)
        other._request = replace(self._request, share=share, seed=seed)
        return other

    def evaluate(self, thetas: Any) -> Statistics:
        """Return the statistics of candidates (population, n)."""
        return self._sums(self._desk.ask(thetas, self._request))

    def losses(self, thetas: Any) -> NDArray[np.float64]:
        """Return the losses (population, o) of candidates (population, n)."""
        return self.begin(thetas)()

    def begin(self, thetas: Any) -> Callable[[], NDArray[np.float64]]:
        """Note that candidates are to be evaluated; what is returned does it."""
        wait = self._desk.ask(thetas, self._request)
        return lambda: self.loss_set.close(self._sums(wait))

    def _sums(self, wait: Callable[[], Statistics | None]) -> Statistics:
        statistics = wait()
        if statistics is None:
            raise ValueError(f"No partition has rows of the part {self._request.part}.")
        return statistics


def total(nodes: Iterable[Node], n_partitions: int) -> Statistics | None:
    """Return the sum of all partitions from the nodes of those who hold them."""
    in_order = sorted(nodes, key=lambda node: node.first)
    (whole,) = add_along_tree(in_order, n_partitions)
    value: Statistics | None = whole.value
    return value


def refuse_matrix_losses(losses: Iterable[Any]) -> None:
    """Refuse losses that no sum over rows gives, before anything is computed."""
    refused = [loss.name for loss in losses if not loss.additive]
    if refused:
        raise ValueError(
            "Rows in partitions need losses that are sums of row statistics, which "
            f"travel instead of the rows; got {refused}. Functions are for rows in "
            "memory; write one as a clml.losses.Loss with its statistics."
        )
