"""Scores of folds that a checkpoint keeps: learners are what a fit waits for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._training.run_checkpoint import Clock, RunCheckpoint
from .._training.run_state import damaged, read_float, read_floats
from .out_of_fold import Fold, FoldScores


class KeptFolds:
    """The folds of a fit, and the scores of learners so far.

    Parameters
    ----------
    keeper : RunCheckpoint
    n_labels : int
    folds : sequence of (train, test)
        Those of a fresh start. A run that goes on has the folds that it began with:
        a splitter may draw others every time.
    clock : Clock
        Of the fit. It is told of the seconds up to the last fold that was kept.

    Attributes
    ----------
    folds : list of (train, test)
    learners : list of int or None
        Which learners the rest of a fit goes on with, by their numbers. None before
        that was settled.
    """

    def __init__(
        self, keeper: RunCheckpoint, n_labels: int, folds: Sequence[Fold], clock: Clock
    ):
        self._keeper, self._n_labels, self._clock = keeper, n_labels, clock
        self.folds = list(folds)
        with keeper.reading():
            if "folds" in keeper.saved:
                n_rows = sum(len(test) for _, test in folds)
                self.folds = _read_folds(keeper.saved["folds"], n_rows, len(folds))
            found = keeper.saved.get("scores", {})
            took = keeper.saved.get("fold_seconds", {})
            if not isinstance(found, Mapping) or not isinstance(took, Mapping):
                raise damaged("scores and fold_seconds must be mappings")
            if "seconds" in keeper.saved:
                clock.before = max(0.0, read_float(keeper.saved, "seconds"))
            self.learners = _read_learners(keeper.saved.get("learners"))
        self._scores: dict[str, Any] = dict(found)
        self._seconds: dict[str, Any] = dict(took)
        self._is_new = False
        keeper.settle(
            folds=[list(fold) for fold in self.folds],
            scores=self._scores,
            fold_seconds=self._seconds,
        )

    def of_learner(self, number: int) -> FoldScores:
        """Return the scores of one learner, known and yet to be told."""
        known, took = {}, {}
        for i, (_, test) in enumerate(self.folds):
            name = f"{number}/{i}"
            if name in self._scores:
                shape = (len(test), self._n_labels)
                with self._keeper.reading():
                    known[i] = read_floats(self._scores, name, shape)
                    if not np.isfinite(known[i]).all():
                        raise damaged("the scores of a fold are not finite")
                    took[i] = max(0.0, read_float(self._seconds, name))

        def tell(fold: int, scores: NDArray[np.float64], seconds: float) -> None:
            name = f"{number}/{fold}"
            self._scores[name], self._seconds[name] = scores, seconds
            self._is_new = True
            self._keeper.settle(seconds=self._clock.seconds)
            self._keeper.offer()

        return FoldScores(known, tell, took)

    def settle(self, learners: list[int]) -> None:
        """Settle which learners the rest of the fit goes on with."""
        self.learners = learners
        self._keeper.settle(learners=learners)

    @contextmanager
    def written(self) -> Iterator[None]:
        """Write what is new at the end, however that comes: it took its time."""
        try:
            yield
        finally:
            if self._is_new:
                self._keeper.offer(now=True)


def _read_learners(state: Any) -> list[int] | None:
    """Return numbers of learners, in their order, or None for None."""
    if state is None:
        return None
    good = isinstance(state, list) and all(type(i) is int and i >= 0 for i in state)
    if not good or not state or sorted(set(state)) != state:
        raise damaged("learners must be numbers of learners")
    return list(state)


def _read_folds(state: Any, n_rows: int, n_folds: int) -> list[Fold]:
    """Return folds of so many rows; every row is in one test part."""
    good = isinstance(state, list) and len(state) == n_folds
    if not good or not all(
        isinstance(fold, list)
        and len(fold) == 2
        and all(
            isinstance(rows, np.ndarray)
            and rows.dtype == np.int64
            and rows.ndim == 1
            and rows.min(initial=0) >= 0
            and rows.max(initial=0) < n_rows
            for rows in fold
        )
        for fold in state
    ):
        raise damaged("folds must be pairs of row numbers")
    if any(len(np.intersect1d(train, test)) for train, test in state):
        raise damaged("its folds train on what they test")
    tests = np.concatenate([np.empty(0, np.int64), *(test for _, test in state)])
    if not np.array_equal(np.sort(tests), np.arange(n_rows)):
        raise damaged("its folds do not hold every row once")
    return [(train, test) for train, test in state]
