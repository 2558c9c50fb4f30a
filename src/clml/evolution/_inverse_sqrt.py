"""C^(-1/2)·v for a factored covariance matrix, without forming C."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._factors import DENSE_ORDER, FactoredCovariance

__all__ = ["inverse_sqrt_product"]

_TOLERANCE = 1e-10
_MAX_STEPS = 100
# A remainder this small against the image is rounding and leads no further. It may
# still matter against the smallest eigenvalue, which the error bound decides.
_BREAKDOWN = 1e-14


def inverse_sqrt_product(
    covariance: FactoredCovariance,
    vector: NDArray[np.float64],
    products: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return C^(-1/2)·vector, to a relative error of about 1e-10.

    Parameters
    ----------
    covariance : FactoredCovariance
        The matrix C, of order n.
    vector : ndarray of shape (n,)
        What to multiply.
    products : ndarray of shape (n_factors,), default=None
        ``covariance.project(vector)``, where it is known already.

    Returns
    -------
    ndarray of shape (n,)
        The product with the symmetric inverse square root.
    """
    if covariance.n_factors == 0:
        return vector / math.sqrt(covariance.scale)
    if covariance.n <= DENSE_ORDER:
        return _by_factorisation(covariance, vector)
    if covariance.gram is not None:
        product = _by_lanczos_on_paths(covariance, vector, products)
        return _by_gram_matrix(covariance, vector) if product is None else product
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
    get = covariance.place.get
    blocks = [(get(paths), where) for paths, where in covariance.rows()]
    for paths, where in blocks:
        for other, elsewhere in blocks:
            gram[where, elsewhere] = paths @ other.T
    gram *= np.outer(roots, roots)
    eigenvalues, vectors = np.linalg.eigh(gram)
    projected = vectors.T @ (roots * covariance.project(vector))
    coefficients = vectors @ (_bracket(eigenvalues, scale) * projected)
    return vector / math.sqrt(scale) + covariance.combine(roots * coefficients)


def _bracket(eigenvalues: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Return ((a+Λ)^(-1/2) − a^(-1/2))/Λ with the difference multiplied out.

    Λ cancels, and nothing is lost where it is tiny; rounding may have left an
    eigenvalue of 0 slightly negative.
    """
    shifted = np.sqrt(scale + np.maximum(eigenvalues, 0.0))
    return -1 / (math.sqrt(scale) * shifted * (math.sqrt(scale) + shifted))


def _by_lanczos_on_paths(
    covariance: FactoredCovariance,
    vector: NDArray[np.float64],
    projected: NDArray[np.float64] | None = None,
) -> NDArray[np.float64] | None:
    """Do the same with a Krylov space of S = V·Vᵀ; None if that does not converge.

    S has the order of the number of paths and its entries are known, so the paths
    themselves are read twice only, whatever the number of steps.

    The error: the bracket is −1/π times the integral of (S + a + t)^(-1)/((a + t)·√t)
    over t > 0, and Vᵀ·(S + a + t)^(-1) has norm at most 1/(2·√(a + t)) ≤ 1/(2·√a). As
    in `_error_bound` the integral of the norms is then the bracket of T itself.
    """
    gram = covariance.gram
    assert gram is not None
    size, scale, roots = (
        covariance.n_factors,
        covariance.scale,
        np.sqrt(covariance.weights),
    )
    products = gram[:size, :size]
    if projected is None:
        projected = covariance.project(vector)
    start = roots * projected
    length = float(np.linalg.norm(start))
    largest = float(covariance.weights @ np.diagonal(products))  # of S: its trace
    least_norm = float(np.linalg.norm(vector)) / math.sqrt(scale + largest)

    def is_accurate(space: _Krylov, coefficients: NDArray[np.float64]) -> bool:
        weight = abs(float(coefficients[-1]))
        error = length * space.residual * weight / (2 * math.sqrt(scale))
        return error <= _TOLERANCE * least_norm

    def bracket(ritz: NDArray[np.float64]) -> NDArray[np.float64]:
        return _bracket(ritz, scale)

    coefficients = _krylov_product(
        lambda x: roots * (products @ (roots * x)), start, bracket, is_accurate
    )
    if coefficients is None:
        return None
    return vector / math.sqrt(scale) + covariance.combine(roots * coefficients)


def _by_lanczos(
    matvec: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    vector: NDArray[np.float64],
    smallest: float,
    tolerance: float = _TOLERANCE,
    max_steps: int = _MAX_STEPS,
) -> NDArray[np.float64] | None:
    """Project C on a Krylov space of `vector`; None if that does not converge.

    `smallest` is a lower bound of the eigenvalues of C.
    """

    def is_accurate(space: _Krylov, coefficients: NDArray[np.float64]) -> bool:
        error = _error_bound(space.ritz, space.vectors, space.residual, smallest)
        return error <= tolerance * float(np.linalg.norm(coefficients))

    def inverse_root(ritz: NDArray[np.float64]) -> NDArray[np.float64] | None:
        return None if ritz[0] <= 0 else 1 / np.sqrt(ritz)

    return _krylov_product(matvec, vector, inverse_root, is_accurate, max_steps)


@dataclass(frozen=True)
class _Krylov:
    """A matrix seen in a Krylov space: T = QᵀMQ = vectors·diag(ritz)·vectorsᵀ."""

    ritz: NDArray[np.float64]
    vectors: NDArray[np.float64]
    residual: float  # what leaves the space, in the last direction

    @property
    def first_row(self) -> NDArray[np.float64]:
        return self.vectors[0]


def _krylov_product(
    matvec: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    vector: NDArray[np.float64],
    function: Callable[[NDArray[np.float64]], NDArray[np.float64] | None],
    is_accurate: Callable[[_Krylov, NDArray[np.float64]], bool],
    max_steps: int = _MAX_STEPS,
) -> NDArray[np.float64] | None:
    """Return f(M)·vector for a symmetric M; None if that does not converge.

    With an orthonormal basis Q of the Krylov space and T = QᵀMQ tridiagonal, f(M)·v is
    about |v|·Q·f(T)·e₁.
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
        # The small eigenproblem would dominate if solved at each of many steps; one is
        # never enough.
        if complete or broken_down or 0 < k < 8 or k % 4 == 3:
            space = _Krylov(
                *_eigh_tridiagonal(diagonal[: k + 1], off_diagonal[:k]),
                float(off_diagonal[k]),
            )
            values = function(space.ritz)
            if values is None:
                return None
            coefficients = space.vectors @ (values * space.first_row)
            if complete or is_accurate(space, coefficients):
                return length * (coefficients @ known)
        if broken_down:
            return None
        if k + 1 < steps:
            basis[k + 1] = image / off_diagonal[k]
    return None


def _eigh_tridiagonal(
    diagonal: NDArray[np.float64], off_diagonal: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return eigenvalues and eigenvectors; the dense routine has the least overhead."""
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off_diagonal, -1))
    return values, vectors


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
