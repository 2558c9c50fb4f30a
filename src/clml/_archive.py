"""The non-dominated candidates of a run, with their weights, as it goes on."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .lebesgue import lebesgue_contributions, lebesgue_measure, nondominated


class Archive:
    """Keeps the candidates whose loss vectors no other candidate dominates.

    Of equal loss vectors the first is kept. When it outgrows twice its capacity the
    members with the largest contributions stay; the best of each loss always do.

    Parameters
    ----------
    n_losses : int
    n_parameters : int
    capacity : int
        Members of the finished front.
    """

    def __init__(self, n_losses: int, n_parameters: int, capacity: int):
        self.capacity = capacity
        self._members = (
            np.empty((0, n_losses)),
            np.empty((0, n_parameters), dtype=np.float32),
        )
        self._measure = 0.0

    @property
    def losses(self) -> NDArray[np.float64]:
        """Loss vectors (m, o) of the members."""
        return self._members[0]

    @property
    def thetas(self) -> NDArray[np.float32]:
        """Weights (m, n) of the members."""
        return self._members[1]

    @property
    def measure(self) -> float:
        """Lebesgue measure of the members below the unit vector."""
        return self._measure

    def update(self, losses: NDArray[np.float64], thetas: NDArray[np.float32]) -> None:
        """Let candidates in that no member and no other candidate dominates."""
        # Most epochs end here: late in a run few candidates are new to the archive.
        new = ~_covered(losses, self.losses)
        if not new.any():
            return
        n_old = len(self.losses)
        all_losses = np.concatenate([self.losses, losses[new]])
        keep = _first_of_equals(all_losses) & nondominated(all_losses)
        old, added = self.thetas[keep[:n_old]], thetas[new][keep[n_old:]]
        self._commit(all_losses[keep], np.concatenate([old, added]))
        if len(self.losses) > 2 * self.capacity:
            self._commit(*self.front())

    def front(self) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """Return at most ``capacity`` members, in the order of their first loss."""
        losses, thetas = self._members
        chosen = np.arange(len(losses))
        if len(losses) > self.capacity:
            chosen = self._most_contributing(losses)
        chosen = chosen[np.lexsort(losses[chosen].T[::-1])]
        return losses[chosen], thetas[chosen]

    def replace_losses(self, losses: NDArray[np.float64]) -> None:
        """Give the members new losses (other rows) and drop what is now dominated."""
        thetas = self.thetas
        self._members = (losses[:0], thetas[:0])
        self.update(losses, thetas)

    def _most_contributing(self, losses: NDArray[np.float64]) -> NDArray[np.intp]:
        contributions = lebesgue_contributions(losses)
        with np.errstate(divide="ignore"):
            log_mean = np.log(losses).sum(axis=1)
        champions = [*losses.argmin(axis=0), int(log_mean.argmin())]
        contributions[champions] = np.inf
        return np.argsort(-contributions, kind="stable")[: self.capacity]

    def _commit(self, losses: NDArray[np.float64], thetas: NDArray[np.float32]) -> None:
        # One assignment: an interrupt finds the old members or the new ones.
        self._members = (losses, thetas)
        self._measure = lebesgue_measure(losses)


@njit(nogil=True, cache=True)
def _covered(losses, members):  # type: ignore[no-untyped-def]
    """Tell which candidates a member equals or dominates, or which are undefined."""
    covered = np.zeros(len(losses), np.bool_)
    for i in range(len(losses)):
        covered[i] = np.isnan(losses[i]).any()
        for member in members:
            if covered[i]:
                break
            covered[i] = (member <= losses[i]).all()
    return covered


def _first_of_equals(losses: NDArray[np.float64]) -> NDArray[np.bool_]:
    mask = np.zeros(len(losses), dtype=bool)
    mask[np.unique(losses, axis=0, return_index=True)[1]] = True
    return mask
