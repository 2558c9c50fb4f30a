"""Strategies whose populations live on a device; here PyTorch's CPU will do."""

import numpy as np
import pytest
import torch

from clml.evolution import (
    FullCMA,
    RankGradient,
    RankOneCMA,
    SeparableCMA,
    rank_by_fitness,
    strategy_from_state,
)

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STRATEGIES = [RankOneCMA, SeparableCMA, RankGradient]


def run(strategy, n_epochs):
    for _ in range(n_epochs):
        population = strategy.ask()
        assert isinstance(population, torch.Tensor)
        values = np.sum(population.double().cpu().numpy() ** 2, axis=1)
        strategy.tell(rank_by_fitness(values))
    return strategy


def start(strategy_class, n=100, sigma=0.3, population_size=20, seed=0):
    return strategy_class(np.ones(n), sigma, population_size, seed=seed, device=DEVICE)


@pytest.mark.parametrize("strategy_class", STRATEGIES)
def test_goes_downhill(strategy_class):
    strategy = run(start(strategy_class), 60)
    assert np.sum(strategy.mean**2) < 70
    assert isinstance(strategy.mean, np.ndarray)


@pytest.mark.parametrize("strategy_class", STRATEGIES)
def test_a_run_continued_from_its_state_is_the_run_itself(strategy_class):
    strategy = run(start(strategy_class), 5)
    twin = strategy_from_state(strategy.state())
    assert type(twin) is strategy_class
    assert torch.equal(strategy.ask(), twin.ask())
    run(strategy, 7), run(twin, 7)
    assert np.array_equal(strategy.mean, twin.mean)
    assert torch.equal(strategy.ask(), twin.ask())


@pytest.mark.parametrize("strategy_class", STRATEGIES)
def test_seeds_and_asking_again(strategy_class):
    strategy = start(strategy_class)
    population = strategy.ask().clone()
    assert torch.equal(strategy.ask(), population)
    assert torch.equal(start(strategy_class).ask(), population)
    assert not torch.equal(start(strategy_class, seed=1).ask(), population)
    run(strategy, 1)
    assert not torch.equal(strategy.ask(), population)


def test_small_problems_fold_their_paths():
    strategy = run(start(RankOneCMA, n=4, population_size=8), 150)
    assert np.abs(strategy.mean).max() < 1e-3


def test_samples_have_the_covariance():
    strategy = run(start(RankOneCMA, n=70, population_size=400), 6)
    expected = strategy.sigma**2 * strategy.covariance()
    centred = np.concatenate(
        [
            strategy_from_state({**strategy.state(), "generator": generator})
            .ask()
            .cpu()
            .numpy()
            - strategy.mean
            for generator in (
                {**strategy.state()["generator"], "n_draws": n} for n in range(50)
            )
        ]
    )
    found = centred.T @ centred / len(centred)
    np.testing.assert_allclose(found, expected, atol=6 * expected.max() / 20_000**0.5)


def test_a_damaged_state_is_refused():
    state = start(RankOneCMA).state()
    state["generator"] = {"bit_generator": "torch", "device": DEVICE, "seed": "x"}
    with pytest.raises(ValueError, match="random generator is damaged"):
        strategy_from_state(state)
    state["generator"] = {**state["generator"], "device": "abacus"}
    with pytest.raises(ValueError, match="device must be"):
        strategy_from_state(state)


def test_a_full_matrix_stays_on_the_host():
    with pytest.raises(ValueError, match="keeps its matrices on the host"):
        FullCMA(np.ones(3), 1.0, device=DEVICE)
