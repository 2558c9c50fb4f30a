"""How a population reaches those who evaluate it: they draw it themselves.

A strategy is a value, its random generator included. Whoever has a copy needs the
order of an epoch's candidates, some hundred bytes, to know the next population, which
may be megabytes. A checksum tells whether the copy drew the same bits; if not, as on
a machine that rounds differently, the population itself is sent.
"""

from __future__ import annotations

import threading
import uuid
import zlib
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._training.search import Search, population_of
from ..engine import single_threaded_blas
from ..engine.letters import Letter, Whole
from ..evolution import CMAPackage, Strategy, strategy_from_state

# Runs that a process follows at a time.
_MOST_RUNS = 4


@dataclass(eq=False)
class _Copy:
    """A copy of a run's strategy, and the population that it asked for last."""

    strategy: Strategy
    expand: Any
    population: NDArray[np.float32]
    checksum: int


async def _forget(run: str) -> None:
    """Let go of the copy of a run that has ended; workers are not waited for."""
    with _lock:
        _copies.pop(run, None)


_copies: OrderedDict[str, _Copy] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True, eq=False)
class _Announced(Letter):
    """The population of an epoch, for those who follow the run.

    Attributes
    ----------
    run : str
    epoch : int
    checksum : int
        Of the population.
    """

    run: str
    epoch: int
    checksum: int

    def open(self) -> NDArray[np.float32] | None:
        """Return the population, or None if it cannot be told here."""
        with _lock, single_threaded_blas():
            copy = self._copy(_copies.pop(self.run, None))
            # One that went astray is not kept: the next letter may set it right.
            if copy is None or copy.checksum != self.checksum:
                return None
            _copies[self.run] = copy
            while len(_copies) > _MOST_RUNS:
                _copies.popitem(last=False)
            return copy.population

    def _copy(self, known: _Copy | None) -> _Copy | None:
        """Return the copy of the strategy in this epoch."""
        raise TypeError(f"{type(self).__name__} must define _copy().")


@dataclass(frozen=True, eq=False)
class OrderLetter(_Announced):
    """The order that the last epoch ended with.

    Attributes
    ----------
    order : bytes
        Of 16 or 32-bit indices, best first.
    wide : bool
        Whether they have 32 bits.
    """

    order: bytes
    wide: bool

    def _copy(self, known: _Copy | None) -> _Copy | None:
        if known is None or known.strategy.epoch not in (self.epoch - 1, self.epoch):
            return None
        if known.strategy.epoch == self.epoch:  # for another of our partitions
            return known
        kind = np.uint32 if self.wide else np.uint16
        known.strategy.tell(np.frombuffer(self.order, dtype=kind).astype(np.int64))
        return _asked(known.strategy, known.expand)


@dataclass(frozen=True, eq=False)
class StateLetter(_Announced):
    """The strategy itself, for those who begin to follow.

    Attributes
    ----------
    state : dict
        That of the strategy before it asked for the population.
    expand : callable
    """

    state: Any
    expand: Any

    def _copy(self, known: _Copy | None) -> _Copy | None:
        if known is not None and known.strategy.epoch == self.epoch:
            return known
        return _asked(strategy_from_state(self.state), self.expand)


def _asked(strategy: Strategy, expand: Any) -> _Copy:
    population = population_of(strategy, expand)
    return _Copy(strategy, expand, population, _checksum(population))


def _checksum(population: NDArray[np.float32]) -> int:
    return zlib.crc32(np.ascontiguousarray(population).data.cast("B"))


class Courier:
    """Writes the letters of a run.

    Parameters
    ----------
    search : Search
        The run. Its strategy draws in the memory of this process.
    """

    def __init__(self, search: Search):
        self._search = search
        self._run = uuid.uuid4().hex
        self._checked: tuple[Any, int] | None = None

    def end(self, client: Any) -> None:
        """Tell workers that the run has ended; those who do not hear it forget, too."""
        with suppress(Exception):
            client.run(_forget, self._run, wait=False, on_error="ignore")

    def letter(self, thetas: Any, follows: bool) -> Letter:
        """Return what tells candidates to somebody.

        Parameters
        ----------
        thetas : array (population, n)
        follows : bool
            Whether he knows the population of the epoch before.
        """
        search = self._search
        strategy = search.strategy
        announced = thetas is search.population and not isinstance(strategy, CMAPackage)
        if not announced:
            return Whole(thetas)
        if self._checked is None or self._checked[0] is not thetas:
            self._checked = (thetas, _checksum(thetas))
        given = (self._run, strategy.epoch, self._checked[1])
        if follows and search.told is not None:
            wide = len(search.told) > 2**16
            order = search.told.astype(np.uint32 if wide else np.uint16)
            return OrderLetter(*given, order.tobytes(), wide)
        return StateLetter(*given, strategy.state(), search.expand)
