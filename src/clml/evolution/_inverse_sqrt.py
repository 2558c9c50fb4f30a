"""C^(-1/2)·v for a factored covariance matrix, without forming C."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

from ._factors import FactoredCovariance

__all__ = ["inverse_sqrt_product"]

# Up to here one small factorisation is cheaper than a Krylov space.
_DENSE_ORDER = 64
_TOLERANCE = 1e-10
_MAX_STEPS = 100
# A remainder this small against the image is rounding and leads no further. It may
# still matter against the smallest eigenvalue, which the error bound decides.
_BREAKDOWN = 1e-14


def inverse_sqrt_product(
    covariance: FactoredCovariance, vector: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return C^(-1/2)·vector, to a relative error of about 1e-10.

    Parameters
    ----------
    covariance : FactoredCovariance
        The matrix C, of order n.
    vector : ndarray of shape (n,)
        What to multiply.

    Returns
    -------
    ndarray of shape (n,)
        The product with the symmetric inverse square root.
    """
    if covariance.n_factors == 0:
        return vector / math.sqrt(covariance.scale)
    if covariance.n <= _DENSE_ORDER:
        return _by_factorisation(covariance, vector)
    product = _by_lanczos(covariance.matvec, vector, covariance.scale)
    if product is not None:
        return product
    # The identity's share may only vanish after a fold, when there are at least n
    # factors; with fewer it is large enough to divide by.
    if covariance.n_factors < covariance.n:
        return _by_gram_matrix(covariance, vector)
    return _by_factorisation(covariance, vector)


def _by_factorisation(
    covariance: FactoredCovariance, vector: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Work with the right singular vectors of A, C = AᵀA; O(n²·(n + n_factors)).

    Small eigenvalues of C keep twice the digits that an eigendecomposition of C
    would leave them, and none comes out negative.
    """
    n = covariance.n
    root = np.vstack([math.sqrt(covariance.scale) * np.eye(n), covariance.stacked()])
    _, singular, right = np.linalg.svd(np.linalg.qr(root, mode="r"))
    # Keeps the result finite where C is singular to machine precision.
    singular = np.maximum(singular, np.finfo(float).eps * singular[0])
    return right.T @ ((right @ vector) / singular)


def _by_gram_matrix(
    covariance: FactoredCovariance, vector: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Work with the Gram matrix V·Vᵀ = QΛQᵀ, exact; O(n·n_factors²), n_factors < n.

    C^(-1/2)v = v/√a + Vᵀ·Q·diag[((a+Λ)^(-1/2) − a^(-1/2))/Λ]·Qᵀ·V·v.
    """
    scale, roots = covariance.scale, np.sqrt(covariance.weights)
    gram = np.empty((covariance.n_factors, covariance.n_factors))
    projected = np.empty(covariance.n_factors)
    blocks = list(covariance.rows())
    for paths, where in blocks:
        projected[where] = paths @ vector
        for other, elsewhere in blocks:
            gram[where, elsewhere] = paths @ other.T
    gram *= np.outer(roots, roots)
    eigenvalues, vectors = np.linalg.eigh(gram)
    # Rounding may leave an eigenvalue of 0 slightly negative.
    shifted = np.sqrt(scale + np.maximum(eigenvalues, 0.0))
    # The bracket with the difference multiplied out: Λ cancels, and nothing is lost
    # where Λ is tiny.
    bracket = -1 / (math.sqrt(scale) * shifted * (math.sqrt(scale) + shifted))
    coefficients = vectors @ (bracket * (vectors.T @ (roots * projected))) * roots
    product = vector / math.sqrt(scale)
    for paths, where in blocks:
        product += coefficients[where] @ paths
    return product


def _by_lanczos(
    matvec: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    vector: NDArray[np.float64],
    smallest: float,
    tolerance: float = _TOLERANCE,
    max_steps: int = _MAX_STEPS,
) -> NDArray[np.float64] | None:
    """Project C on a Krylov space of `vector`; None if that does not converge.

    With an orthonormal basis Q of the space and T = QᵀCQ tridiagonal, C^(-1/2)v is
    about |v|·Q·T^(-1/2)·e₁. `smallest` is a lower bound of the eigenvalues of C.
    """
    length = float(np.linalg.norm(vector))
    if length == 0:
        return np.zeros_like(vector)
    steps = min(max_steps, vector.size)
    basis = np.empty((steps, vector.size))
    basis[0] = vector / length
    diagonal, off_diagonal = np.zeros(steps), np.zeros(steps)
    for k in range(steps):
        known = basis[: k + 1]
        image = matvec(basis[k])
        size = np.linalg.norm(image)
        diagonal[k] = basis[k] @ image
        # Twice is enough: full reorthogonalisation keeps the basis orthonormal to
        # machine precision, so no eigenvalue appears a second time.
        image -= (known @ image) @ known
        image -= (known @ image) @ known
        off_diagonal[k] = np.linalg.norm(image)
        complete = k + 1 == vector.size
        broken_down = off_diagonal[k] <= _BREAKDOWN * size
        # The small eigenproblem would dominate if solved at each of many steps.
        if complete or broken_down or k < 8 or k % 4 == 3:
            ritz, vectors = eigh_tridiagonal(diagonal[: k + 1], off_diagonal[:k])
            if ritz[0] <= 0:
                return None
            coefficients = vectors @ (vectors[0] / np.sqrt(ritz))
            error = _error_bound(ritz, vectors, off_diagonal[k], smallest)
            if complete or error <= tolerance * np.linalg.norm(coefficients):
                return length * (coefficients @ known)
        if broken_down:
            return None
        if k + 1 < steps:
            basis[k + 1] = image / off_diagonal[k]
    return None


def _error_bound(
    ritz: NDArray[np.float64],
    vectors: NDArray[np.float64],
    residual: float,
    smallest: float,
) -> float:
    """Bound the error of the projection, for a vector of length 1.

    C^(-1/2) is the integral of (C + t)^(-1)/(π·√t) over t > 0, and the error of the
    projected resolvent is residual·(C + t)^(-1)·q·[e_kᵀ·(T + t)^(-1)·e₁]. The bracket
    has one sign for all t, and |(C + t)^(-1)| ≤ 1/(λ + t) for every λ up to the
    smallest eigenvalue of C. So the integral of the norms is residual·|e_kᵀ·g(T)·e₁|
    with g(θ) = 1/(√λ·√θ·(√λ + √θ)).
    """
    if smallest <= 0:
        return math.inf
    low, roots = math.sqrt(smallest), np.sqrt(ritz)
    g = 1 / (low * roots * (low + roots))
    return residual * abs(float(vectors[-1] @ (g * vectors[0])))
