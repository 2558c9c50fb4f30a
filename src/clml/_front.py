"""What training found, and choosing from it afterwards."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RULES = ("knee", "geometric_mean")


@dataclass(frozen=True, eq=False)
class ParetoFront:
    """Candidates of a run of which none is better than another in every loss.

    Attributes
    ----------
    losses : float64 array (m, o)
        Loss vectors on the validation rows (on the training rows where a run had no
        validation rows). No two are equal, none dominates another. See the notes for
        how far off they are.
    loss_names : tuple of str
    theta : float32 array (m, n)
        The weights of each member.
    temperature : float64 array (m,)
        What the logits of each member are divided by to make probabilities; ones if
        not given.

    Notes
    -----
    The rows that ``losses`` are taken on have chosen the members, so that the best of
    them is partly the luckiest. On labels that are noise, 1 − LRAP of the member that
    ``select("lrap")`` takes was stated as 0.34 with 60 rows, 0.35 with 100 and 0.38
    with 300, and was 0.41 on fresh rows; with the paper's settings, whose validation
    rows are a fifth, it was stated as 0.21, 0.27 and 0.35, and 1 − micro-F1 of 0.68 as
    0.44 with 60 rows (means of five seeds, ``benchmarks/front_optimism.py``). Compare
    members by these losses; what to expect of one is its loss on rows that had no part
    in the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from clml import ParetoFront
    >>> front = ParetoFront(
    ...     losses=np.array([[0.1, 0.9], [0.2, 0.3], [0.8, 0.25]]),
    ...     loss_names=("hamming", "lrap"),
    ...     theta=np.zeros((3, 5), dtype=np.float32),
    ... )
    >>> front.select("hamming"), front.select("knee"), front.select("lrap")
    (0, 1, 2)
    >>> front.select(weights={"hamming": 10, "lrap": 1})
    0
    """

    losses: NDArray[np.float64]
    loss_names: tuple[str, ...]
    theta: NDArray[np.float32]
    temperature: NDArray[np.float64] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.temperature is None:
            object.__setattr__(self, "temperature", np.ones(len(self.losses)))
        shapes = (self.losses.shape, self.theta.shape[:1], self.temperature.shape)
        m = len(self.losses)
        if shapes != ((m, len(self.loss_names)), (m,), (m,)) or m == 0:
            raise ValueError(
                "A front needs losses (m, o), o loss_names, theta (m, n) and "
                f"temperature (m,) with m at least 1, got shapes {shapes} and "
                f"{len(self.loss_names)} names."
            )

    def __len__(self) -> int:
        return len(self.losses)

    def __repr__(self) -> str:
        return f"ParetoFront({len(self)} members, losses={self.loss_names})"

    def select(
        self,
        which: str | int | None = None,
        *,
        weights: Mapping[str, float] | None = None,
    ) -> int:
        """Return the index of the member that a rule prefers.

        Parameters
        ----------
        which : str or int, default=None
            The name of a loss: the member with the smallest value of it. "knee": the
            member nearest to the best value of every loss at once, losses scaled to
            [0, 1] over the front. "geometric_mean": the smallest product of the
            losses. An integer: that member.
        weights : mapping of str to float, default=None
            Instead of ``which``: the smallest weighted sum of the named losses.

        Returns
        -------
        int
            Ties go to the smaller geometric mean, then to the smaller index.
        """
        if (which is None) == (weights is None):
            raise ValueError(
                "select needs either a rule or weights, "
                f"got which={which!r} and weights={weights!r}."
            )
        if weights is not None:
            return self._smallest(self.losses @ self._weight_vector(weights))
        if isinstance(which, (int, np.integer)) and not isinstance(which, bool):
            return self._check_index(int(which))
        if which == "knee":
            return self._smallest(_distance_to_ideal(self.losses))
        if which == "geometric_mean":
            return self._smallest(_log_geometric_mean(self.losses))
        return self._smallest(self.losses[:, self._loss_index(which)])

    def _smallest(self, values: NDArray[np.float64]) -> int:
        return int(np.lexsort((_log_geometric_mean(self.losses), values))[0])

    def _check_index(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise ValueError(f"The front has {len(self)} members, got index {index}.")
        return index % len(self)

    def _loss_index(self, name: object) -> int:
        if name in self.loss_names:
            return self.loss_names.index(name)
        known = [*self.loss_names, *RULES]
        near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.4)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"select takes the name of an optimised loss or a rule, one of {known}, "
            f"or the index of a member, got {name!r}.{hint}"
        )

    def _weight_vector(self, weights: Mapping[str, float]) -> NDArray[np.float64]:
        if not isinstance(weights, Mapping):
            raise TypeError(
                "weights must map loss names to numbers, such as "
                f"{{{self.loss_names[0]!r}: 1.0}}, got {weights!r}."
            )
        vector = np.zeros(len(self.loss_names))
        for name, weight in weights.items():
            vector[self._loss_index(name)] = weight
        if not np.isfinite(vector).all() or (vector < 0).any() or not vector.any():
            raise ValueError(
                "weights must be finite, not negative and not all zero, "
                f"got {dict(weights)}."
            )
        return vector


def _log_geometric_mean(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    # A loss of 0 is best of all; below 0, where no loss should be, there is no mean.
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(losses).mean(axis=1)


def _distance_to_ideal(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = losses.min(axis=0), losses.max(axis=0)
    scaled = (losses - low) / np.where(high > low, high - low, 1.0)
    return np.sqrt((scaled**2).sum(axis=1))
