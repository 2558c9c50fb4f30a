from dataclasses import replace

import numpy as np
import pytest

from clml.evolution import _inverse_sqrt
from clml.evolution._factors import FactoredCovariance
from clml.evolution._inverse_sqrt import (
    _by_factorisation,
    _by_gram_matrix,
    _by_lanczos,
    _by_lanczos_on_paths,
    _error_bound,
    inverse_sqrt_product,
)


def draw(covariance, generator, size):
    normal = generator.standard_normal((size, covariance.n))
    return covariance.sample(normal, generator)


def make(n, n_factors, scale, spread, seed=0):
    """A matrix scale·(I + factors of sizes from 1 to spread), and v ~ N(0, C)."""
    generator = np.random.default_rng(seed)
    paths = generator.standard_normal((n_factors, n)) / np.sqrt(n)
    weights = scale * np.geomspace(1, spread, n_factors)
    covariance = FactoredCovariance.from_dict(
        {
            "scale": scale,
            "weights": weights,
            "paths": {
                str(i): paths[128 * i : 128 * (i + 1)]
                for i in range(-(-n_factors // 128))
            },
        },
        n,
    )
    return covariance, draw(covariance, generator, 4).mean(axis=0)


def with_gram(covariance):
    """The same matrix with the products of its paths, as updates would keep them."""
    paths = np.concatenate([rows for rows, _ in covariance.rows()])
    return replace(covariance, gram=paths @ paths.T)


def dense_twin(covariance, vector):
    """The slow twin: the eigendecomposition of the dense matrix."""
    eigenvalues, vectors = np.linalg.eigh(covariance.dense())
    return vectors @ ((vectors.T @ vector) / np.sqrt(eigenvalues))


def relative_error(value, reference):
    return np.linalg.norm(value - reference) / np.linalg.norm(reference)


def lanczos(covariance, vector, **keywords):
    return _by_lanczos(covariance.matvec, vector, covariance.scale, **keywords)


def test_by_hand():
    # C = I + 3·e₁e₁ᵀ has the inverse square root diag(1/2, 1).
    covariance = FactoredCovariance.identity(2).updated(1.0, 3.0, np.array([1.0, 0.0]))
    vector, expected = np.array([2.0, 5.0]), [1.0, 5.0]
    for method in (inverse_sqrt_product, _by_factorisation, _by_gram_matrix, lanczos):
        np.testing.assert_allclose(method(covariance, vector), expected)


@pytest.mark.parametrize(
    ("n", "n_factors", "scale", "spread"),
    [
        (80, 10, 1.0, 10.0),
        (200, 100, 0.7, 30.0),
        (1000, 300, 1.0, 10.0),
        (150, 40, 1e-12, 1e3),
        (90, 89, 1e3, 1e2),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_all_agree(n, n_factors, scale, spread, seed):
    covariance, vector = make(n, n_factors, scale, spread, seed)
    expected = dense_twin(covariance, vector)
    for method in (inverse_sqrt_product, _by_factorisation, _by_gram_matrix, lanczos):
        assert relative_error(method(covariance, vector), expected) < 1e-9


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scale", [1.0, 1e-8, 1e-30])
def test_condition_number_1e8(scale, seed):
    # The dense twin itself is only good to condition number times machine precision
    # here, so the factorisation, which does not square it, is the reference.
    covariance, vector = make(120, 10, scale, 1e8, seed)
    expected = _by_factorisation(covariance, vector)
    assert relative_error(dense_twin(covariance, vector), expected) < 1e-7
    for method in (inverse_sqrt_product, _by_gram_matrix, lanczos):
        assert relative_error(method(covariance, vector), expected) < 1e-9


@pytest.mark.parametrize("scale", [0.0, 5e-324, 1e-300, 1e-20])
@pytest.mark.parametrize("n", [6, 64, 65, 100])
def test_vanishing_identity(n, scale):
    covariance, _ = make(n, 2 * n - 1, 1.0, 1e3)
    covariance = replace(covariance, scale=scale, gram=None)
    vector = draw(covariance, np.random.default_rng(0), 4).mean(axis=0)
    product = inverse_sqrt_product(covariance, vector)
    assert relative_error(product, dense_twin(covariance, vector)) < 1e-9


def test_singular_matrix_gives_a_finite_product():
    covariance = FactoredCovariance(0.0, np.ones(1), (np.ones((128, 3)),), 3)
    assert np.isfinite(inverse_sqrt_product(covariance, np.ones(3))).all()


@pytest.mark.parametrize(
    ("n_factors", "fallback"),
    [(150, "_by_gram_matrix"), (250, "_by_factorisation")],
)
def test_falls_back_when_lanczos_does_not_converge(monkeypatch, n_factors, fallback):
    covariance, vector = make(200, n_factors, 1.0, 1e5)
    assert lanczos(covariance, vector) is None
    expected = dense_twin(covariance, vector)
    assert relative_error(inverse_sqrt_product(covariance, vector), expected) < 1e-9
    monkeypatch.setattr(_inverse_sqrt, fallback, lambda covariance, vector: "called")
    assert inverse_sqrt_product(covariance, vector) == "called"


def test_lanczos_gives_up_on_rounding():
    # Five almost equal eigenvalues of 1e8: the remainder after six steps is rounding
    # against them, but not against the smallest eigenvalue.
    covariance, vector = make(200, 5, 1.0, 1.0)
    covariance = FactoredCovariance(1.0, np.full(5, 1e8), covariance.blocks, 200)
    vector = draw(covariance, np.random.default_rng(0), 4).mean(axis=0)
    expected = _by_factorisation(covariance, vector)
    assert relative_error(inverse_sqrt_product(covariance, vector), expected) < 1e-9


def test_lanczos_corner_cases():
    identity = FactoredCovariance.identity(100)
    vector = np.arange(100.0)
    np.testing.assert_allclose(lanczos(identity, vector), vector, rtol=1e-14)
    np.testing.assert_array_equal(lanczos(identity, np.zeros(100)), np.zeros(100))
    assert _by_lanczos(lambda x: -x, vector, 1.0) is None  # not positive definite


def test_no_factors_is_a_multiple_of_the_identity():
    covariance = FactoredCovariance(4.0, np.empty(0), (), 3)
    np.testing.assert_array_equal(
        inverse_sqrt_product(covariance, np.array([2.0, 4.0, 6.0])), [1.0, 2.0, 3.0]
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_error_bound_is_a_bound(seed):
    covariance, vector = make(100, 60, 1.0, 100.0, seed)
    vector /= np.linalg.norm(vector)
    expected = _by_factorisation(covariance, vector)
    for steps in range(1, 40):
        # The same recursion, plainly, with a dense basis.
        basis = [vector]
        for _ in range(steps):
            image = covariance.matvec(basis[-1])
            for _ in range(2):
                image = image - sum((q @ image) * q for q in basis)
            residual = np.linalg.norm(image)
            basis.append(image / residual)
        Q = np.array(basis[:-1])
        T = Q @ covariance.dense() @ Q.T
        ritz, vectors = np.linalg.eigh(T)
        approximation = (vectors @ (vectors[0] / np.sqrt(ritz))) @ Q
        error = np.linalg.norm(approximation - expected)
        bound = _error_bound(ritz, vectors, residual, covariance.scale)
        assert error <= bound * (1 + 1e-6) + 1e-13


@pytest.mark.parametrize(
    ("n", "n_factors", "scale", "spread"),
    [
        (80, 1, 1.0, 10.0),
        (80, 10, 1.0, 10.0),
        (200, 100, 0.7, 30.0),
        (1000, 300, 1.0, 10.0),
        (150, 40, 1e-12, 1e3),
        (90, 89, 1e3, 1e2),
        (120, 10, 1.0, 1e8),
        (2000, 500, 1.0, 1e-6),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_lanczos_on_paths(monkeypatch, n, n_factors, scale, spread, seed):
    covariance, vector = make(n, n_factors, scale, spread, seed)
    covariance = with_gram(covariance)
    expected = _by_factorisation(covariance, vector)
    product = _by_lanczos_on_paths(covariance, vector)
    assert relative_error(product, expected) < 1e-9
    np.testing.assert_array_equal(inverse_sqrt_product(covariance, vector), product)


def test_lanczos_on_paths_reads_the_paths_twice(monkeypatch):
    covariance, vector = make(500, 100, 1.0, 10.0)
    passes = []
    rows = FactoredCovariance.rows
    monkeypatch.setattr(
        FactoredCovariance, "rows", lambda self: passes.append(None) or rows(self)
    )
    covariance = with_gram(covariance)
    passes.clear()
    assert _by_lanczos_on_paths(covariance, vector) is not None
    assert len(passes) == 2


def test_falls_back_when_lanczos_on_paths_does_not_converge(monkeypatch):
    covariance, vector = make(200, 150, 1.0, 1e5)
    covariance = with_gram(covariance)
    assert _by_lanczos_on_paths(covariance, vector) is None
    expected = dense_twin(covariance, vector)
    assert relative_error(inverse_sqrt_product(covariance, vector), expected) < 1e-9


def test_lanczos_on_paths_of_a_vector_that_meets_no_path():
    paths = np.zeros((1, 100))
    paths[0, 0] = 3.0
    covariance = FactoredCovariance(
        4.0, np.ones(1), (paths,), 100, gram=np.array([[9.0]])
    )
    vector = np.arange(100.0)  # its first entry is 0
    np.testing.assert_allclose(_by_lanczos_on_paths(covariance, vector), vector / 2)
