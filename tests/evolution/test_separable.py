import numpy as np
import pytest

from clml.evolution import SeparableCMA, rank_by_fitness


def test_first_update_by_hand():
    strategy = SeparableCMA(np.zeros(3), 0.5, population_size=2, seed=0)
    y = strategy.ask() / 0.5
    strategy.tell([1, 0])
    # One parent of weight 1; rates of the full matrix, at mu_eff = 1, times 5/3.
    c_1 = 2 / (4.3**2 + 1) * 5 / 3
    c_mu = 2 * 0.25 / (5**2 + 1) * 5 / 3
    c_c = (4 + 1 / 3) / (7 + 2 / 3)
    expected = 1 - c_1 - c_mu + (c_1 * c_c * (2 - c_c) + c_mu) * y[1] ** 2
    np.testing.assert_allclose(np.diag(strategy.covariance()), expected)


@pytest.mark.parametrize("n", [1, 2, 10, 1_000])
@pytest.mark.parametrize("population_size", [2, 10, 2_000])
def test_rates_do_not_exceed_one(n, population_size):
    constants = SeparableCMA(np.zeros(n), 1.0, population_size)._constants
    assert constants.c_1 > 0
    assert constants.c_1 + constants.c_mu <= 1


def test_learns_the_scale_of_each_coordinate():
    scales = np.array([1.0, 1e2, 1e4])
    strategy = SeparableCMA(np.ones(3), 0.5, seed=1)
    for _ in range(200):
        strategy.tell(rank_by_fitness(strategy.ask() ** 2 @ scales))
    C = strategy.covariance()
    assert np.count_nonzero(C - np.diag(np.diag(C))) == 0
    product = np.diag(C) * scales  # constant once learnt
    assert product.max() / product.min() < 10


@pytest.mark.parametrize("name", ["sphere", "ellipsoid"])
@pytest.mark.parametrize("n", [10, 20, 40])
def test_as_fast_as_cma(evaluation_ratio, name, n):
    options = {"CMA_diagonal": True, "CMA_active": False}
    assert evaluation_ratio(SeparableCMA, options, name, n) < 1.5
