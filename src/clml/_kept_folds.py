"""Scores of folds that a checkpoint keeps: learners are what a fit waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._keeper import Keeper
from ._out_of_fold import Fold, FoldScores
from ._run_state import damaged, read_floats


class KeptFolds:
    """The scores of folds so far, of all learners.

    Parameters
    ----------
    keeper : Keeper
    n_labels : int
    """

    def __init__(self, keeper: Keeper, n_labels: int):
        self._keeper, self._n_labels = keeper, n_labels
        found = keeper.saved.get("folds", {})
        with keeper.reading():
            if not isinstance(found, Mapping):
                raise damaged("the scores of folds are none")
        self._scores: dict[str, Any] = dict(found)
        self._is_new = False
        keeper.settle(folds=self._scores)

    def of_learner(self, number: int, folds: Sequence[Fold]) -> FoldScores:
        """Return the scores of one learner, known and yet to be told."""
        known = {}
        for i, (_, test) in enumerate(folds):
            name = f"{number}/{i}"
            if name in self._scores:
                shape = (len(test), self._n_labels)
                with self._keeper.reading():
                    known[i] = read_floats(self._scores, name, shape)
                    if not np.isfinite(known[i]).all():
                        raise damaged("the scores of a fold are not finite")

        def tell(fold: int, scores: NDArray[np.float64]) -> None:
            self._scores[f"{number}/{fold}"] = scores
            self._is_new = True
            self._keeper.offer()

        return FoldScores(known, tell)

    def write(self) -> None:
        """Write them, if any are new: the next state may be long in coming."""
        if self._is_new:
            self._keeper.offer(now=True)
