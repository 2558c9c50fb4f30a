"""The scores of a step's rows with their labels: what sums and gradients look at."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from .._support.torch import import_torch
from ..losses.cells import LARGEST
from ._member_rows import LabelBatch

if TYPE_CHECKING:
    from torch import Tensor

# What one pair of a relevant label with another takes while it is looked at.
_BYTES_A_PAIR = 32


class StepRows:
    """Scores of several members on rows of their own.

    Parameters
    ----------
    scores : float32 tensor (members, rows, K)
    labels : LabelBatch
    memory : float
        Bytes that pairs of labels may take.

    Attributes
    ----------
    given : float32 tensor
        The scores as they were given.
    scores : float32 tensor
        Finite ones; rows with NaN are 0.
    used : bool tensor (members, rows)
        Rows of positive weight.
    undefined : bool tensor (members, rows)
        Rows that had NaN.
    blocks : list of slices
        Parts of the rows of which all pairs of labels fit the memory.
    """

    def __init__(self, scores: Tensor, labels: LabelBatch, memory: float):
        largest = float(LARGEST)
        self.given, self.labels = scores, labels
        self.undefined = scores.isnan().any(dim=2)
        finite = scores.masked_fill(self.undefined[..., None], 0.0)
        self.scores = finite.clamp_(-largest, largest)
        self.used = labels.weight > 0
        n_members, n_rows, self.n_labels = scores.shape
        pairs = n_members * labels.relevant.shape[2] * self.n_labels
        step = max(1, int(memory // (_BYTES_A_PAIR * pairs)))
        self.blocks = [slice(a, a + step) for a in range(0, n_rows, step)]
        self._distances: Tensor | None = None

    @cached_property
    def truth(self) -> Tensor:
        """The relevant labels as float32."""
        return self.labels.truth.float()

    @cached_property
    def others(self) -> Tensor:
        """The other labels as float32."""
        return 1 - self.truth

    @cached_property
    def n_relevant(self) -> Tensor:
        """Relevant labels of each row as float64."""
        return self.labels.n_relevant.double()

    @cached_property
    def n_other(self) -> Tensor:
        """Other labels of each row as float64."""
        return self.n_labels - self.n_relevant

    @cached_property
    def ranked(self) -> Tensor:
        """Rows that have both."""
        return (self.n_relevant > 0) & (self.n_other > 0)

    @cached_property
    def falling_order(self) -> Tensor:
        """Labels by falling score, irrelevant ones first if tied."""
        by_truth = self.labels.truth.byte().sort(dim=-1, stable=True).indices
        scores = self.scores.gather(-1, by_truth)
        falling = scores.sort(dim=-1, descending=True, stable=True).indices
        return by_truth.gather(-1, falling)

    def distances(self, rows: slice) -> Tensor:
        """Return how far labels are above relevant ones, (members, rows, R, K)."""
        if self._distances is not None:
            return self._distances
        scores = self.scores[:, rows]
        own = scores.gather(2, self.labels.relevant[:, rows])
        found = scores[:, :, None] - own[..., None]
        if len(self.blocks) == 1:
            self._distances = found
        return found

    def placed(self, of_relevant: Tensor, rows: slice) -> Tensor:
        """Bring what relevant labels have, (members, rows, R), to their places."""
        torch = import_torch()
        padded = torch.nn.functional.pad(of_relevant, (0, 1))
        return padded.gather(2, self.labels.place[:, rows])
