"""Honest losses of maps: each row is judged by maps that were learnt without it.

A map that was learnt, or chosen among others, on some rows looks better on these than
it is. Here the rows are dealt into folds, what is learnt from all of them is learnt
again without each fold, and that judges the fold. What comes out is the loss of a way
of learning, not of one set of numbers, on rows that are new to it.

It may be off for two reasons. The rows that judge are some of many: what that does is
told by leaving out one group of them after another [1]_. And what was learnt from all
rows is not what was learnt without a fold: how much that matters is told by the losses
of both on the same rows.

References
----------
.. [1] B. Efron, C. Stein, "The jackknife estimate of variance", The Annals of
   Statistics 9(3), 1981.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from .._support.threads import shared
from .._training.archive import contributions_and_ends
from ..losses import LossSet, Statistics
from .score_engine import ScoreEngine

#: Learns maps (m, size) from the rows of an engine; the same m for any rows.
Learn = Callable[[ScoreEngine], NDArray[np.float64]]

# Groups that are left out one at a time; fewer for losses that see all rows at once.
_GROUPS, _GROUPS_OF_MATRICES = 40, 10


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """Maps that were learnt from all rows, and what to expect of them on new ones.

    Attributes
    ----------
    maps : float64 array (m, size)
    losses : float64 array (m, o)
    standard_error : float64 array (m, o)
    difference_error : float64 array (m, o)
        The standard error of the difference from the first map.
    rules : tuple of str or None
        The row rule of each map; () if none has one.
    """

    maps: NDArray[np.float64]
    losses: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    difference_error: NDArray[np.float64]
    rules: tuple[str | None, ...] = ()

    @classmethod
    def apparent(
        cls,
        maps: NDArray[np.float64],
        engine: ScoreEngine,
        rules: tuple[str | None, ...] = (),
    ) -> CrossFitted:
        """Return maps with their losses on the rows at hand, errors unknown."""
        losses = engine.losses(maps, rules)
        unknown = np.full(losses.shape, np.nan)
        return cls(maps, losses, unknown, unknown, rules)

    def front(self, most: int, *, keep_first: bool) -> tuple[CrossFitted, int | None]:
        """Return the maps that no other dominates, in the order of their first loss.

        Those whose losses are undefined are left out.

        Parameters
        ----------
        most : int
            How many at most, more than there are losses: the best of each loss stay,
            then those that contribute most to the Lebesgue measure of all.
        keep_first : bool
            Whether the first stays even if others dominate it.

        Returns
        -------
        CrossFitted
        int or None
            Where the first is now.
        """
        losses = self.losses
        no_worse = (losses[:, None] <= losses).all(axis=2)  # [j, i]: j than i
        better = (losses[:, None] < losses).any(axis=2)
        earlier = np.arange(len(losses))[:, None] < np.arange(len(losses))
        dominated = np.asarray((no_worse & (better | earlier)).any(axis=0))
        if keep_first:
            dominated[0] = False
        undefined = np.asarray(np.isnan(losses).any(axis=1))
        if undefined.all():
            undefined[0] = False  # there has to be one
        kept = np.flatnonzero(~(dominated | undefined))
        if len(kept) > most:
            # What has to stay comes before the best geometric mean, which is worth as
            # much to an archive but need not stay here.
            stays = np.zeros(len(kept), dtype=bool)
            stays[losses[kept].argmin(axis=0)] = True
            if keep_first:
                stays[kept == 0] = True
            worth = contributions_and_ends(losses[kept])
            kept = kept[np.lexsort((-worth, ~stays))[:most]]
        kept = kept[np.lexsort(losses[kept].T[::-1])]
        found = CrossFitted(
            self.maps[kept],
            self.losses[kept],
            self.standard_error[kept],
            self.difference_error[kept],
            tuple(self.rules[i] for i in kept) if self.rules else (),
        )
        first = np.flatnonzero(kept == 0)
        return found, int(first[0]) if len(first) else None


def cross_fitted(
    engine: ScoreEngine,
    learn: Learn,
    seed: int,
    n_folds: int = 5,
    executor: Executor | None = None,
    judge: ScoreEngine | None = None,
    rules: Sequence[str | None] = (),
) -> CrossFitted:
    """Learn maps from all rows, and judge them on rows that they were learnt without.

    Parameters
    ----------
    engine : ScoreEngine
        Whose candidates are maps.
    learn : callable
        What learns maps from an engine. It is called from several threads.
    seed : int
        Of the folds.
    n_folds : int, default=5
    executor : concurrent.futures.Executor, default=None
        Threads; the result is the same without.
    judge : ScoreEngine, default=None
        Other scores of the same rows, by which maps are judged; None for those that
        they are learnt from.
    rules : sequence of str or None, default=()
        The row rule of each map, the same for any rows; () if none has one.

    Examples
    --------
    A label that is noise: the best of many thresholds is right by chance.

    >>> import numpy as np
    >>> from clml._maps.cross_fitted import cross_fitted
    >>> from clml._maps.score_engine import ScoreEngine
    >>> from clml._maps.score_map import MapSpace
    >>> from clml.losses import RowTargets
    >>> generator = np.random.default_rng(0)
    >>> targets = RowTargets.from_indicator(generator.random((100, 1)) < 0.5)
    >>> space = MapSpace("bias", 1, scale=np.ones(1), offset=np.zeros(1))
    >>> scores = generator.normal(size=(100, 1, 1))
    >>> engine = ScoreEngine(space, scores, targets, ("hamming",))
    >>> def best(engine):
    ...     maps = space.maps(np.linspace(-2, 2, 101)[:, None])
    ...     return maps[[engine.losses(maps)[:, 0].argmin()]]
    >>> apparent = engine.losses(best(engine))[0, 0]
    >>> found = cross_fitted(engine, best, seed=0)
    >>> bool(apparent < 0.46), bool(abs(found.losses[0, 0] - 0.5) < 0.06)
    (True, True)
    """
    alone, rules = engine.helped_by(None), tuple(rules)
    n = engine.n_rows
    if n < 2:
        return CrossFitted.apparent(learn(alone), engine, rules)
    # Not stratified: a fold that has each label as often as the other rows would
    # confirm whatever chance made of these.
    order = np.random.default_rng(seed).permutation(n)
    held_out = [np.sort(part) for part in np.array_split(order, min(n_folds, n))]
    engines = [alone, *(alone.take(np.setdiff1d(order, part)) for part in held_out)]
    maps, *of_folds = shared(executor, learn, engines)
    judged = _judged_matrices if engine.loss_set.matrix_losses else _judged_sums
    # Groups of a fold are judged by its maps: a group is part of one fold.
    jury = (judge or engine).helped_by(None)
    losses, without = judged(jury, of_folds, held_out, rules)
    all_maps = np.concatenate([maps, *of_folds])
    on_all = alone.losses(all_maps, rules * (1 + len(of_folds)))
    on_all = on_all.reshape(-1, *losses.shape)
    return CrossFitted(
        maps,
        losses,
        _error(without, on_all, _widened(len(on_all) - 1)),
        _error(without - without[:, :1], on_all - on_all[:, :1]),
        rules,
    )


def _groups(
    held_out: list[NDArray[np.intp]], most: int
) -> list[tuple[int, NDArray[np.intp]]]:
    """Return groups of rows, each with the number of its fold."""
    each = max(1, most // len(held_out))
    return [
        (fold, group)
        for fold, rows in enumerate(held_out)
        for group in np.array_split(rows, min(each, len(rows)))
    ]


def _judged_sums(
    engine: ScoreEngine,
    maps: list[NDArray[np.float64]],
    held_out: list[NDArray[np.intp]],
    rules: tuple[str | None, ...],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return losses (m, o), and (groups, m, o) without each group, from sums."""
    found = [
        engine.take(rows).evaluate(maps[fold], rules)
        for fold, rows in _groups(held_out, _GROUPS)
    ]
    weights = np.array([one.weight for one in found])
    sums = {name: np.stack([one.sums[name] for one in found]) for name in found[0].sums}
    loss_set = engine.loss_set

    def close(weight: float, parts: dict[str, NDArray[np.float64]]) -> NDArray:
        return loss_set.close(Statistics(weight, parts))

    totals = {name: values.sum(axis=0) for name, values in sums.items()}
    weight = weights.sum()
    without = [
        close(weight - own, {name: totals[name] - sums[name][g] for name in sums})
        for g, own in enumerate(weights)
    ]
    return close(weight, totals), np.stack(without)


def _judged_matrices(
    engine: ScoreEngine,
    maps: list[NDArray[np.float64]],
    held_out: list[NDArray[np.intp]],
    rules: tuple[str | None, ...],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the same for losses that need the scores of all rows at once."""
    targets = engine.targets
    loss_set: LossSet = engine.loss_set
    parts = [engine.take(rows) for rows in held_out]
    rests = [
        np.setdiff1d(np.arange(engine.n_rows), group)
        for _, group in _groups(held_out, _GROUPS_OF_MATRICES)
    ]
    losses, without = [], []
    # One map after another: the scores of all of them may not fit into memory.
    for number in range(len(maps[0])):
        scores = np.empty((1, engine.n_rows, targets.n_labels))
        rule = rules[number] if rules else None
        for own, rows, part in zip(maps, held_out, parts, strict=True):
            scores[:, rows] = part.ruled_by(rule).scores(own[[number]])
        losses.append(loss_set.evaluate(scores, targets)[0])
        without.append(
            [
                loss_set.evaluate(scores[:, rest], targets.take(rest))[0]
                for rest in rests
            ]
        )
    return np.stack(losses), np.stack(without, axis=1)


def _error(
    without: NDArray[np.float64], relearnt: NDArray[np.float64], widened: float = 1.0
) -> NDArray[np.float64]:
    """Return standard errors (m, o).

    Parameters
    ----------
    without : float64 array (groups, m, o)
        Losses without the rows of one group each.
    relearnt : float64 array (1 + folds, m, o)
        On the same rows, losses of what was learnt from all of them, then without the
        rows of one fold each.
    widened : float, default=1.0
        What the error of the latter is multiplied by.
    """
    with np.errstate(invalid="ignore"):  # losses that are undefined
        of_rows = _jackknife(without - without.mean(axis=0))
        return np.hypot(of_rows, widened * _jackknife(relearnt[1:] - relearnt[0]))


def _widened(n: int) -> float:
    """Return what makes two standard errors of n numbers cover as much as of many."""
    return float(stdtrit(n - 1, ndtr(2.0)) / 2) if n > 1 else 1.0


def _jackknife(changes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return standard errors from what leaving out one part of n each changes."""
    n = len(changes)
    return np.asarray(np.sqrt((n - 1) / n * np.square(changes).sum(axis=0)))
