"""Where searches start, and which of the weights they move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..losses import LossSet, RowTargets, get_losses
from ..network import Layout
from .ascent import AscentState, after_epoch
from .candidates import side_by_side
from .steps import AscentPlan
from .training_rows import NetworkRows


@dataclass(frozen=True, eq=False)
class LastLayer:
    """Completes output layers to whole networks.

    Attributes
    ----------
    before : float32 array
        The weights that stay, all but those of the output layer.
    """

    before: NDArray[np.float32]

    def __call__(self, last: Any) -> Any:
        """Return networks (p, n) with the output layers (p, ...), where these are."""
        return side_by_side(self.before, last)


def n_before_last(layout: Layout) -> int:
    """Return the number of weights before the output layer."""
    rows, columns = layout.shapes[-1]
    return layout.size - rows * columns


def pretrained(
    rows: NetworkRows,
    targets: RowTargets,
    plan: AscentPlan,
    seed: np.random.SeedSequence,
) -> NDArray[np.float32]:
    """Return a network that was trained on cross-entropy for the plan's epochs."""
    # The losses of a run may be such that nothing can be said of single outputs.
    loss_set = LossSet(get_losses(("binary_cross_entropy",)), rows.layout.n_labels)
    climber = AscentState.start(rows.layout, seed)
    for _ in range(plan.surrogate_epochs):
        (climber,) = after_epoch([climber], rows, [targets], loss_set, plan, 0)
    return climber.average
