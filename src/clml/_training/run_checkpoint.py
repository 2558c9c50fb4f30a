"""What a fit keeps of itself while it runs, and when it has run long enough."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from .run_state import damaged, entry, read_float


class States(Protocol):
    """Where states are kept: :class:`clml.persistence.checkpoint.Checkpoint`."""

    @property
    def folder(self) -> Path:
        """Where it is."""

    def newest(self) -> Any:
        """Return the newest state, None if there is none."""

    def offer(self, state: Callable[[], Any], now: bool = False) -> None:
        """Write a state if it is time to, or now."""


class Clock:
    """Counts the seconds of a fit, those of the run that it goes on from too.

    Parameters
    ----------
    max_seconds : float or None
        That it may take.

    Attributes
    ----------
    before : float
        Seconds of the run that it goes on from.

    Examples
    --------
    >>> from clml._training.run_checkpoint import Clock
    >>> clock = Clock(10)
    >>> clock.before = 20.0
    >>> clock.left() < 0
    True
    """

    def __init__(self, max_seconds: float | None):
        self._max_seconds = max_seconds
        self._began = time.perf_counter()
        self.before = 0.0

    @property
    def seconds_here(self) -> float:
        """Seconds of this run."""
        return time.perf_counter() - self._began

    @property
    def seconds(self) -> float:
        """Seconds of the fit."""
        return self.before + self.seconds_here

    def left(self) -> float:
        """Return the seconds that it may still take."""
        return (
            math.inf if self._max_seconds is None else self._max_seconds - self.seconds
        )


class RunCheckpoint:
    """Keeps the parts of a fit's state in a checkpoint, if there is one.

    Parameters
    ----------
    checkpoint : States or None

    Attributes
    ----------
    saved : dict
        The parts of the state that was found; empty at a fresh start.
    clock : Clock or None
        That of a fit whose time is counted before its first epoch, too.
    """

    def __init__(self, checkpoint: States | None = None):
        self._checkpoint = checkpoint
        self._folder = None if checkpoint is None else checkpoint.folder
        self.saved: dict[str, Any] = {}
        self.clock: Clock | None = None
        found = None if checkpoint is None else checkpoint.newest()
        if found is not None:
            self.saved = {"state": found}
            with self.reading():
                if not isinstance(found, Mapping):
                    raise damaged("it has no parts")
            self.saved = dict(found)
        # Until something newer is there: no state may know less than the one before.
        self._settled = dict(self.saved)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Name the checkpoint in the error of a state that no run has written."""
        try:
            yield
        except ValueError as error:
            if not self.saved:
                raise
            raise ValueError(
                f"Cannot resume from checkpoint={str(self._folder)!r}. Delete "
                f"it to start over, or use another folder. {error}"
            ) from error

    def settle(self, **parts: Any) -> None:
        """Add parts that will not change, to be written with the next state."""
        self._settled |= parts

    def offer(
        self,
        parts: Callable[[], Mapping[str, Any]] = dict,
        now: bool = False,
    ) -> None:
        """Write the state if it is time to, or now.

        Parameters
        ----------
        parts : callable, default=dict
            Returns the parts that change.
        now : bool, default=False
        """
        if self._checkpoint is not None:
            self._checkpoint.offer(lambda: {**self._settled, **parts()}, now)


class Stopping:
    """Tells when a run has waited or lasted too long.

    Parameters
    ----------
    patience : int or None
        Epochs without a larger measure.
    max_seconds : float or None
    saved : dict, default=None
        What ``state`` returned, of a run that goes on.
    clock : Clock, default=None
        Of what was done before: it counts.

    Attributes
    ----------
    finished : bool
        Whether the last epoch was to be the last one.
    """

    def __init__(
        self,
        patience: int | None,
        max_seconds: float | None,
        saved: Any = None,
        clock: Clock | None = None,
    ):
        self._patience, self._max_seconds = patience, max_seconds
        self._began = time.perf_counter()
        self._waited = 0
        self._best = -1.0
        self.finished = False
        if clock is not None:
            # What was saved counts the time before that run's first epoch already.
            self._began -= clock.seconds if saved is None else clock.seconds_here
        if saved is not None:
            self._began -= max(0.0, read_float(saved, "seconds"))
            self.finished = entry(saved, "finished") is True

    @property
    def done(self) -> bool:
        """Whether a run that goes on has nothing more to do."""
        return self.finished or self._impatient

    @property
    def _impatient(self) -> bool:
        return self._patience is not None and self._waited >= self._patience

    def state(self) -> dict[str, Any]:
        """Return what a run that goes on must know."""
        seconds = time.perf_counter() - self._began
        return {"seconds": seconds, "finished": self.finished}

    def begin(self, measure: float, earlier: Iterable[float] = ()) -> None:
        """Begin with the largest measure so far, then that after each earlier epoch."""
        self._best, self._waited = measure, 0
        for value in earlier:
            self._count(value)

    def after(self, measure: float) -> bool:
        """Tell whether the epoch that reached a measure is to be the last one."""
        self._count(measure)
        late = self._max_seconds is not None and (
            time.perf_counter() - self._began >= self._max_seconds
        )
        return self._impatient or late

    def _count(self, measure: float) -> None:
        self._waited += 1
        if measure > self._best:
            self._best, self._waited = measure, 0
