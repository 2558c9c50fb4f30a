"""What each of several learners adds to their combination, for all labels alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from ..losses import RowTargets

# What the plain average counts for, in the unit of decisions' information: a learner
# leaves its equal share when some hundred uncertain decisions say so.
_BELIEF = 100.0
# So few numbers learn nothing more from further rows.
_MOST_ROWS = 20_000


def fit_shares(
    logits: NDArray[np.floating], targets: RowTargets
) -> NDArray[np.float64]:
    """Return one weight a learner, (M,), none negative.

    They maximise the likelihood of all labels of all rows together, with a bias, and
    are held towards 1/M, the plain average.

    Parameters
    ----------
    logits : float array (n, M, K)
        Finite, of one unit.
    targets : RowTargets
        Rows of weight 0 count as absent; the unit of the weights does not matter.

    Examples
    --------
    One learner that knows, one that guesses:

    >>> import numpy as np
    >>> from clml._maps.shares import fit_shares
    >>> from clml.losses import RowTargets
    >>> generator = np.random.default_rng(0)
    >>> logits = generator.normal(size=(4_000, 2, 1))
    >>> truth = logits[:, 0] + generator.logistic(size=(4_000, 1)) > 0
    >>> fit_shares(logits, RowTargets.from_indicator(truth.astype(int))).round(1)
    array([1., 0.])
    """
    n_learners = logits.shape[1]
    equal = np.full(n_learners, 1.0 / n_learners)
    used = np.flatnonzero(targets.weight > 0)
    if n_learners == 1 or not len(used):
        return equal
    used = used[:: -(-len(used) // _MOST_ROWS)]
    columns = np.moveaxis(np.asarray(logits, dtype=np.float64)[used], 1, 2)
    columns = columns.reshape(-1, n_learners)
    truth = targets.dense[used].ravel().astype(np.float64)
    weight = np.repeat(targets.weight[used], targets.n_labels)
    weight = weight / weight.mean()

    def cost(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        z = columns @ point[:-1] + point[-1]
        away = point[:-1] - equal
        error = weight * (expit(z) - truth)
        value = weight @ (np.logaddexp(0.0, z) - truth * z)
        gradient = np.append(error @ columns + _BELIEF * away, error.sum())
        return value + 0.5 * _BELIEF * away @ away, gradient

    found = minimize(
        cost,
        np.append(equal, 0.0),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * n_learners + [(None, None)],
    )
    return found.x[:-1]
