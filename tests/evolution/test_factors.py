import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clml.evolution._factors import FactoredCovariance


def draw(covariance, generator, size):
    normal = generator.standard_normal((size, covariance.n))
    return covariance.sample(normal, generator)


def grow(n, n_updates, seed=0, decay=0.97, weight=0.05):
    """Apply random updates to the factored matrix and to a dense twin."""
    generator = np.random.default_rng(seed)
    factored, dense = FactoredCovariance.identity(n), np.eye(n)
    for _ in range(n_updates):
        path = generator.standard_normal(n)
        factored = factored.updated(decay, weight, path)
        dense = decay * dense + weight * np.outer(path, path)
    return factored, dense


def test_by_hand():
    covariance = FactoredCovariance.identity(2)
    covariance = covariance.updated(0.5, 0.25, np.array([2.0, 0.0]))
    covariance = covariance.updated(0.5, 1.0, np.array([1.0, 1.0]))
    # 0.25·I + 0.125·(2, 0)(2, 0)ᵀ + (1, 1)(1, 1)ᵀ
    np.testing.assert_allclose(covariance.dense(), [[1.75, 1.0], [1.0, 1.25]])
    np.testing.assert_allclose(covariance.matvec(np.array([1.0, -1.0])), [0.75, -0.25])


# 128 rows make a block, and a fold happens at 2n or at 64.
@given(st.integers(1, 90), st.integers(0, 300), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_equals_the_dense_matrix(n, n_updates, seed):
    factored, dense = grow(n, n_updates, seed)
    scale = np.abs(dense).max()
    np.testing.assert_allclose(factored.dense(), dense, rtol=0, atol=1e-11 * scale)
    vector = np.random.default_rng(seed).standard_normal(n)
    np.testing.assert_allclose(
        factored.matvec(vector), dense @ vector, rtol=0, atol=1e-11 * scale * n
    )
    assert factored.n_factors < max(2 * n, 64)


def test_folds_keep_the_matrix_when_the_identity_vanishes():
    factored, dense = grow(4, 20_000, decay=0.9, weight=0.1)
    assert factored.scale < 1e-300
    np.testing.assert_allclose(factored.dense(), dense, rtol=1e-9)
    assert np.isfinite(draw(factored, np.random.default_rng(0), 50)).all()


@pytest.mark.parametrize(("n", "n_updates"), [(3, 10), (5, 70), (70, 135)])
def test_sample_moments(n, n_updates):
    factored, dense = grow(n, n_updates)
    size = 100_000
    samples = draw(factored, np.random.default_rng(1), size)
    variances = np.diag(dense)
    errors = np.abs(samples.mean(axis=0)) / np.sqrt(variances / size)
    assert errors.max() < 5
    # Standard error of a sample covariance of normal variables.
    standard_error = np.sqrt((np.outer(variances, variances) + dense**2) / size)
    errors = np.abs(samples.T @ samples / size - dense) / standard_error
    assert errors.max() < 5


@pytest.mark.parametrize("n_updates", [0, 1, 127, 128, 129, 300])
def test_dict_round_trip(n_updates):
    factored, _ = grow(200, n_updates)
    copy = FactoredCovariance.from_dict(factored.to_dict(), 200)
    assert np.array_equal(copy.dense(), factored.dense())
    # Both may grow without disturbing each other.
    ones, twos = np.ones(200), np.full(200, 2.0)
    first, second = factored.updated(1.0, 1.0, ones), copy.updated(1.0, 1.0, twos)
    difference = second.dense() - first.dense()
    np.testing.assert_allclose(difference, np.full((200, 200), 3.0), rtol=1e-9)


def test_a_dict_keeps_its_values_and_is_read_only():
    factored, _ = grow(100, 10)
    state = factored.to_dict()
    before = state["paths"]["0"].copy()
    for _ in range(300):
        factored = factored.updated(0.9, 0.1, np.ones(100))
    assert np.array_equal(state["paths"]["0"], before)
    with pytest.raises(ValueError, match="read-only"):
        state["paths"]["0"][0] = 0


def test_appending_copies_no_path():
    factored, _ = grow(100, 130)
    grown = factored.updated(0.9, 0.1, np.ones(100))
    for old, new in zip(factored.blocks, grown.blocks, strict=True):
        assert old is new


@pytest.mark.parametrize("n_updates", [1, 127, 128, 129, 198])
def test_gram_matrix_is_kept(n_updates):
    factored, _ = grow(200, n_updates)
    paths = np.concatenate([rows for rows, _ in factored.rows()])
    size = factored.n_factors
    np.testing.assert_allclose(
        factored.gram[:size, :size], paths @ paths.T, rtol=1e-12, atol=1e-12
    )
    copy = FactoredCovariance.from_dict(factored.to_dict(), 200)
    assert np.array_equal(copy.gram[:size, :size], factored.gram[:size, :size])


@pytest.mark.parametrize(("n", "n_updates"), [(64, 3), (100, 100), (100, 300)])
def test_no_gram_matrix_where_it_does_not_pay(n, n_updates):
    # Small matrices, and as many paths as coordinates: the whole matrix is smaller.
    factored, _ = grow(n, n_updates)
    assert factored.gram is None
    assert "gram" not in factored.to_dict()
