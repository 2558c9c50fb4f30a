import numpy as np
import pytest

from clml.evolution import FullCMA, rank_by_fitness


def test_first_update_by_hand():
    strategy = FullCMA(np.zeros(3), 0.5, population_size=2, seed=0)
    y = strategy.ask()[1] / 0.5
    strategy.tell([1, 0])
    # One parent of weight 1, so mu_eff = 1.
    c_1, c_mu = 2 / (4.3**2 + 1), 2 * 0.25 / (5**2 + 1)
    c_c = (4 + 1 / 3) / (7 + 2 / 3)
    rank_one = c_1 * c_c * (2 - c_c) + c_mu
    expected = (1 - c_1 - c_mu) * np.eye(3) + rank_one * np.outer(y, y)
    np.testing.assert_allclose(strategy.covariance(), expected, rtol=1e-12)


def test_learns_the_inverse_hessian():
    generator = np.random.default_rng(0)
    rotation, _ = np.linalg.qr(generator.standard_normal((5, 5)))
    hessian = rotation @ np.diag([1.0, 10.0, 1e2, 1e3, 1e4]) @ rotation.T
    strategy = FullCMA(np.ones(5), 0.5, seed=1)
    for _ in range(300):
        X = strategy.ask()
        strategy.tell(rank_by_fitness(np.sum(X @ hessian * X, axis=1)))
    root = np.linalg.cholesky(hessian)
    eigenvalues = np.linalg.eigvalsh(root.T @ strategy.covariance() @ root)
    assert eigenvalues[-1] / eigenvalues[0] < 10


def test_samples_and_whitening_belong_to_one_matrix():
    strategy = FullCMA(np.ones(4), 1.0, seed=0)
    scales = 1e3 ** np.linspace(0, 1, 4)
    for _ in range(100):
        strategy.tell(rank_by_fitness(strategy.ask() ** 2 @ scales))
    covariance = strategy._state.covariance
    size = 100_000
    y = FullCMA.from_state(strategy.state() | {"population_size": size}).ask()
    y = (y - strategy.mean) / strategy.sigma
    z = np.array([strategy._whiten(covariance, row)[0] for row in y[:2_000]])
    assert np.abs(z.T @ z / len(z) - np.eye(4)).max() < 5 * np.sqrt(2 / len(z))
    C = (covariance.vectors * covariance.deviations**2) @ covariance.vectors.T
    variances = np.diag(C)
    standard_error = np.sqrt((np.outer(variances, variances) + C**2) / size)
    assert (np.abs(y.T @ y / size - C) / standard_error).max() < 5


def test_decomposes_lazily():
    strategy = FullCMA(np.zeros(60), 1.0, population_size=2, seed=0)
    decomposed = set()
    for _ in range(30):
        strategy.tell(rank_by_fitness(np.sum(strategy.ask() ** 2, axis=1)))
        decomposed.add(strategy._state.covariance.decomposed)
        assert strategy.epoch - strategy._state.covariance.decomposed <= 2
    assert len(decomposed) == 11  # the start, and every third epoch


def test_refuses_large_problems():
    FullCMA(np.zeros(300), 1.0)
    with pytest.raises(ValueError, match=r"Got a mean with 25000.*20\.0 GB.*RankOne"):
        FullCMA(np.zeros(25_000), 1.0)


@pytest.mark.parametrize(
    ("name", "n"),
    [
        ("sphere", 10),
        ("sphere", 40),
        ("ellipsoid", 10),
        ("rosenbrock", 10),
        ("ellipsoid", 20),
    ],
)
def test_as_fast_as_cma(evaluation_ratio, name, n):
    n_seeds = 3 if n != 20 else 1
    assert evaluation_ratio(FullCMA, {"CMA_active": False}, name, n, n_seeds) < 1.5
