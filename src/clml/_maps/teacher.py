"""What a fitted model tells networks that learn from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from .._training.run_checkpoint import Clock
from ..losses import RowTargets
from .label_calibration import fit_label_calibration

#: How much of a target is the teacher's probability; the rest is the label. A teacher
#: says of a row what others lead to, and with more of it a row's own labels are lost
#: (docs/learning.md).
TEACHERS_SHARE = 0.2


# Messages and logs show objects by their repr, and must not show rows.
@dataclass(frozen=True, eq=False, repr=False)
class Teacher:
    """What is to be learnt of n rows, and how long that may take.

    Attributes
    ----------
    soft : float32 array (n, K)
        Shares of labels, in [0, 1].
    clock : Clock
        That of the fit that the teacher comes out of.
    """

    soft: NDArray[np.float32]
    clock: Clock


def soft_targets(
    logits: NDArray[np.float64], targets: RowTargets, share: float = TEACHERS_SHARE
) -> NDArray[np.float32]:
    """Return labels mixed with what a teacher thinks of their probabilities.

    Parameters
    ----------
    logits : float64 array (n, K)
        Of rows that the teacher was not fitted on. They are mapped to where losses of
        decisions are small, and become those of probabilities again.
    targets : RowTargets
    share : float
        The teacher's, from 0 to 1.

    Returns
    -------
    float32 array (n, K)

    Examples
    --------
    A teacher who is right two times out of three:

    >>> import numpy as np
    >>> from clml._maps.teacher import soft_targets
    >>> from clml.losses import RowTargets
    >>> targets = RowTargets.from_indicator([[1], [1], [0], [0], [0], [1]])
    >>> logits = np.array([[1.0], [1.0], [1.0], [-1.0], [-1.0], [-1.0]])
    >>> soft_targets(logits, targets, share=0.3).ravel().round(2)
    array([0.9, 0.9, 0.2, 0.1, 0.1, 0.8], dtype=float32)
    """
    found = fit_label_calibration(logits, targets)
    p = expit(found.gain * logits + found.bias)
    return np.ascontiguousarray(share * p + (1 - share) * targets.dense, np.float32)
