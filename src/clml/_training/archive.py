"""The non-dominated candidates of a run, with their weights, as it goes on."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.compiled import compiled
from ..lebesgue import lebesgue_contributions, lebesgue_measure
from .candidates import host_rows


@dataclass(frozen=True, eq=False)
class Archive:
    """The candidates whose loss vectors no other candidate dominates. A value.

    Of equal loss vectors the first is kept. When the archive outgrows twice its
    capacity, the best of each loss, the best geometric mean and then the members with
    the largest contributions stay.

    Attributes
    ----------
    capacity : int
        Members of the finished front, at least one more than there are losses.
    losses : float64 array (m, o)
        The members' loss vectors.
    weights : tuple of float32 arrays (n,)
        Their weights, apart: members come and go every epoch, and a copy of all would
        take longer than much else of it.
    n_parameters : int
    measure : float
        The largest Lebesgue measure, below the unit vector, that the members have had:
        the little that is lost when some are let go does not count.
    """

    capacity: int
    losses: NDArray[np.float64]
    weights: tuple[NDArray[np.float32], ...]
    n_parameters: int
    measure: float = 0.0

    @classmethod
    def empty(cls, n_losses: int, n_parameters: int, capacity: int) -> Archive:
        """Return an archive without members."""
        return cls(capacity, np.empty((0, n_losses)), (), n_parameters)

    @property
    def thetas(self) -> NDArray[np.float32]:
        """The members' weights as one array (m, n)."""
        if not self.weights:
            return np.empty((0, self.n_parameters), dtype=np.float32)
        return np.stack(self.weights)

    def updated(self, losses: NDArray[np.float64], thetas: Any) -> Archive:
        """Return the archive with the candidates that nothing in it dominates."""
        # Most epochs end here: late in a run few candidates are new to the archive.
        new = ~covered(losses, self.losses)
        if not new.any():
            return self
        n_old = len(self.losses)
        all_losses = np.concatenate([self.losses, losses[new]])
        keep = ~covered_by_others(all_losses)
        all_losses = all_losses[keep]
        entering = host_rows(thetas, np.flatnonzero(new)[keep[n_old:]])
        weights = (
            *itertools.compress(self.weights, keep[:n_old]),
            *(theta.copy() for theta in entering),
        )
        measure = max(self.measure, lebesgue_measure(all_losses))
        grown = replace(self, losses=all_losses, weights=weights, measure=measure)
        if len(all_losses) <= 2 * self.capacity:
            return grown
        return grown._of(grown._chosen())

    def judged_anew(self, losses: NDArray[np.float64]) -> Archive:
        """Return an archive of the same candidates with new losses (other rows)."""
        fresh = Archive(self.capacity, losses[:0], (), self.n_parameters)
        return fresh.updated(losses, self.thetas)

    def front(self) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """Return at most ``capacity`` members, in the order of their first loss."""
        front = self._of(self._chosen())
        return front.losses, front.thetas

    def _of(self, chosen: NDArray[np.intp]) -> Archive:
        weights = tuple(self.weights[i] for i in chosen)
        return replace(self, losses=self.losses[chosen], weights=weights)

    def _chosen(self) -> NDArray[np.intp]:
        """Return the members of the front, in the order of their first loss."""
        chosen = np.arange(len(self.losses))
        if len(chosen) > self.capacity:
            chosen = self._most_contributing()
        return chosen[np.lexsort(self.losses[chosen].T[::-1])]

    def _most_contributing(self) -> NDArray[np.intp]:
        worth = contributions_and_ends(self.losses)
        return np.argsort(-worth, kind="stable")[: self.capacity]


def contributions_and_ends(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what each of (m, o) losses contributes to the Lebesgue measure.

    Infinite for what a front always keeps: the best of each loss and their best
    geometric mean.
    """
    contributions = lebesgue_contributions(losses)
    with np.errstate(divide="ignore"):  # a loss of 0 is best of all
        log_mean = np.log(losses).sum(axis=1)
    contributions[log_mean.argmin()] = np.inf
    contributions[losses.argmin(axis=0)] = np.inf
    return contributions


@compiled
def covered(losses, members):  # type: ignore[no-untyped-def]
    """Tell which candidates a member equals or dominates, or which are undefined."""
    covered = np.zeros(len(losses), np.bool_)
    for i in range(len(losses)):
        covered[i] = np.isnan(losses[i]).any()
        for member in members:
            if covered[i]:
                break
            covered[i] = (member <= losses[i]).all()
    return covered


@compiled
def covered_by_others(losses):  # type: ignore[no-untyped-def]
    """Tell which members another one dominates, or an earlier one equals."""
    m, n_losses = losses.shape
    covered = np.zeros(m, np.bool_)
    for i in range(m):
        for j in range(m):
            if j == i or covered[j]:
                continue
            below, equal = True, True
            for k in range(n_losses):
                below &= losses[j, k] <= losses[i, k]
                equal &= losses[j, k] == losses[i, k]
            if below and (not equal or j < i):
                covered[i] = True
                break
    return covered
