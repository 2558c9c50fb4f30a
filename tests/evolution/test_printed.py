import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from clml import CMA, PAPER_SETTINGS, CLMLClassifier
from clml.evolution import PrintedCMA, RankOneCMA, rank_by_fitness


# Above 64 the steps' products are kept; at 2n steps they are folded.
@pytest.mark.parametrize("n", [2, 5, 80])
def test_the_covariance_is_the_printed_recursion(n):
    strategy = PrintedCMA(np.ones(n), sigma=0.5, seed=0)
    size = strategy.population_size
    weights = np.log((size + 1) / 2) - np.log(np.arange(1, size // 2 + 1))
    weights /= weights.sum()
    rate = 2 / ((n + 1.3) ** 2 + 1 / (weights**2).sum())
    C = np.eye(n)
    for _ in range(70):
        X = strategy.ask()
        mean, sigma = strategy.mean, strategy.sigma
        order = rank_by_fitness(X**2 @ 1e3 ** np.linspace(0, 1, n))
        step = weights @ ((X[order[: len(weights)]] - mean) / sigma)
        C = (1 - rate) * C + rate * np.outer(step, step)
        strategy.tell(order)
        assert_allclose(strategy.mean, mean + sigma * step, rtol=1e-12, atol=1e-14)
    assert_allclose(strategy.covariance(), C, rtol=1e-9, atol=1e-12)
    assert not np.allclose(C, np.eye(n), atol=1e-3)


def test_the_covariance_shrinks_where_nothing_is_selected():
    rng = np.random.default_rng(0)
    size = {}
    for kind in (PrintedCMA, RankOneCMA):
        strategy = kind(np.zeros(5), sigma=1.0, seed=0)
        for _ in range(150):
            strategy.ask()
            strategy.tell(rng.permutation(strategy.population_size))
        size[kind] = np.trace(strategy.covariance()) / 5
    assert size[PrintedCMA] < 0.1
    assert size[RankOneCMA] > 0.3


def test_first_populations_are_those_of_the_path():
    # Before the first update there is no covariance to differ in.
    printed, path = (kind(np.ones(4), 0.5, seed=3) for kind in (PrintedCMA, RankOneCMA))
    assert_array_equal(printed.ask(), path.ask())
    for strategy in (printed, path):
        strategy.tell(np.arange(strategy.population_size))
    assert_array_equal(printed.mean, path.mean)
    assert not np.array_equal(printed.ask(), path.ask())


def test_the_classifier_offers_it(small_data):
    settings = PAPER_SETTINGS | {
        "search": CMA(population_size=8, covariance="printed", lebesgue="monte_carlo"),
        "max_epochs": 3,
    }
    clf = CLMLClassifier(**settings, random_state=0).fit(*small_data)
    assert clf.n_epochs_ == 3
