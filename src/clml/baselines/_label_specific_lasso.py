"""The problem of LLSF, and the accelerated proximal gradient that solves it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh, solve

Matrix = NDArray[np.float64]


def label_distances(products: Matrix) -> Matrix:
    """Return one minus the cosine of each two labels, (K, K).

    Parameters
    ----------
    products : array (K, K)
        Products of the labels' columns; each label is there in some row.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.baselines._label_specific_lasso import label_distances
    >>> Y = np.array([[1.0, 1], [1, 0], [1, 0], [1, 0]])
    >>> label_distances(Y.T @ Y)
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    length = np.sqrt(np.diag(products))
    distances = 1 - products / np.outer(length, length)
    np.fill_diagonal(distances, 0)
    return np.maximum(distances, 0)


def shrink(W: Matrix, amount: float) -> Matrix:
    """Move every number towards 0 by an amount, at most to 0."""
    return np.sign(W) * np.maximum(np.abs(W) - amount, 0)


@dataclass(frozen=True, eq=False)
class LabelSpecificLasso:
    """½ ‖XW − Y‖² + α/2 tr(R WᵀW) + β ‖W‖₁, from the products of X and Y alone.

    Attributes
    ----------
    gram : array (D, D)
        XᵀX.
    cross : array (D, K)
        XᵀY.
    target : float
        ‖Y‖².
    distances : array (K, K)
        R, symmetric and not negative.
    alpha, beta : float
    """

    gram: Matrix
    cross: Matrix
    target: float
    distances: Matrix
    alpha: float
    beta: float

    def objective(self, W: Matrix) -> float:
        """Return the value at W."""
        smooth = 0.5 * (self.gram @ W + self.alpha * W @ self.distances) - self.cross
        return float(
            np.vdot(W, smooth) + 0.5 * self.target + self.beta * np.abs(W).sum()
        )

    def gradient(self, W: Matrix) -> Matrix:
        """Return the gradient of the first two terms."""
        return self.gram @ W - self.cross + self.alpha * W @ self.distances

    def steepness(self) -> float:
        """Return how much the gradient changes at most as W does: its Lipschitz bound.

        The map from W to GW + αWR has the eigenvalues of G plus α times those of R. The
        largest of R is the largest in absolute value, too, for R is not negative.
        """
        largest = eigvalsh(self.gram, subset_by_index=[len(self.gram) - 1] * 2)[0]
        return float(largest + self.alpha * eigvalsh(self.distances)[-1])

    def ridge(self, gamma: float) -> Matrix:
        """Return what ridge regression with γ finds."""
        return solve(
            self.gram + gamma * np.eye(len(self.gram)), self.cross, assume_a="pos"
        )


def solve_lasso(
    problem: LabelSpecificLasso, W: Matrix, max_iter: int, tol: float
) -> tuple[Matrix, list[float]]:
    """Return where the proximal gradient comes to from W, and all objectives.

    Every step is accelerated (Nesterov), unless that would be uphill: then it begins
    anew from where it is, with a plain step, which never is. It ends when a step gains
    no more than ``tol``, after ``max_iter`` steps, or where the objective is negative:
    R has a negative eigenvalue, so with a large α there may be no least value.
    """
    steepness = problem.steepness()
    objectives = [problem.objective(W)]
    if not steepness > 0:
        return W, objectives

    def step(Z: Matrix) -> tuple[Matrix, float]:
        moved = Z - problem.gradient(Z) / steepness
        found = shrink(moved, problem.beta / steepness)
        return found, problem.objective(found)

    before, t_before, t = W, 1.0, 1.0
    for _ in range(max_iter):
        found, value = step(W + (t_before - 1) / t * (W - before))
        if value > objectives[-1]:
            t = 1.0
            found, value = step(W)
        if value > objectives[-1]:  # by rounding, where nothing is left to gain
            break
        before, W = W, found
        t_before, t = t, (1 + np.sqrt(4 * t * t + 1)) / 2
        objectives.append(value)
        if objectives[-2] - value <= tol or value <= 0:
            break
    return W, objectives
