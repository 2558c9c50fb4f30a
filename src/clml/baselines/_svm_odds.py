"""A linear support vector machine whose margins become log-odds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.svm import SVC

_N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class SVMOdds:
    """Margins ``x · coef + intercept``; log-odds ``slope · margin + offset``."""

    coef: NDArray[np.float64]
    intercept: float
    slope: float
    offset: float


def fit_svm_odds(
    rows: NDArray[np.float64],
    y: NDArray[np.uint8],
    C: float,
    random: np.random.RandomState,
) -> SVMOdds:
    """Fit the machine to all rows, the log-odds to margins of five folds (Platt).

    Parameters
    ----------
    rows : array (n, D)
    y : array (n,)
        0 or 1, both of them.
    C : float
    random : RandomState
        Draws the folds.
    """
    fold = _draw_folds(y, random)
    margins = np.empty(len(rows))
    for k in range(fold.max() + 1):
        out = fold == k
        margins[out] = _margins(rows[~out], y[~out], rows[out], C)
    machine = _fit_machine(rows, y, C)
    return SVMOdds(
        machine.coef_[0], float(machine.intercept_[0]), *fit_sigmoid(margins, y)
    )


def _draw_folds(
    y: NDArray[np.uint8], random: np.random.RandomState
) -> NDArray[np.int64]:
    """Return the fold of each row: as many of either class in one as in another."""
    order = random.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    fold = np.empty(len(y), np.int64)
    fold[order] = np.arange(len(y)) % min(_N_FOLDS, len(y))
    return fold


def _fit_machine(rows: NDArray[np.float64], y: NDArray[np.uint8], C: float) -> SVC:
    return SVC(C=C, kernel="linear").fit(rows, y)


def _margins(
    rows: NDArray[np.float64],
    y: NDArray[np.uint8],
    new: NDArray[np.float64],
    C: float,
) -> NDArray[np.float64]:
    """Return margins of new rows; where there is one class alone, that for certain."""
    if (y == y[0]).all():
        return np.full(len(new), 1.0 if y[0] else -1.0)
    return _fit_machine(rows, y, C).decision_function(new)


def fit_sigmoid(
    scores: NDArray[np.float64], y: NDArray[np.uint8]
) -> tuple[float, float]:
    """Return the slope and offset of log-odds by Platt's rule.

    Cross-entropy is smallest, with targets that are a row of each class away from 0
    and 1, so that it has a minimum wherever classes are apart. The slope is negative
    where scores of folds rank a label worse than chance.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.baselines._svm_odds import fit_sigmoid
    >>> slope, offset = fit_sigmoid(np.array([-1.0, -1, 1, 1]), np.array([0, 0, 1, 1]))
    >>> round(float(np.exp(slope)), 6), abs(round(offset, 6))  # 3/4 and 1/4
    (3.0, 0.0)
    """
    n_present = int(y.sum())
    n_absent = len(y) - n_present
    target = np.where(y, (n_present + 1) / (n_present + 2), 1 / (n_absent + 2))
    share = float(logit(target.mean()))
    centre, spread = scores.mean(), scores.std()
    # The mean of equal numbers may round away from them.
    if not spread > 1e-12 * np.abs(scores).max():
        return 0.0, share
    x = (scores - centre) / spread

    def value(point: NDArray) -> float:
        z = point[0] * x + point[1]
        return float((np.logaddexp(0.0, z) - target * z).sum())

    def gradient(point: NDArray) -> NDArray:
        error = expit(point[0] * x + point[1]) - target
        return np.array([error @ x, error.sum()])

    def hessian(point: NDArray) -> NDArray:
        p = expit(point[0] * x + point[1])
        w = p * (1 - p)
        return np.array([[w @ (x * x), w @ x], [w @ x, w.sum()]])

    found = minimize(
        value,
        np.array([0.0, share]),
        jac=gradient,
        hess=hessian,
        method="trust-exact",
        options={"gtol": 1e-9 * len(y)},
    ).x
    slope = found[0] / spread
    return float(slope), float(found[1] - slope * centre)
