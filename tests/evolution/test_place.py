"""Strategies whose populations live on a device; here PyTorch's CPU will do."""

import pickle
import sys

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


def elsewhere(state):
    """Return a state as a machine with many GPUs would have left it."""
    return {**state, "generator": {**state["generator"], "device": "cuda:99"}}


@pytest.mark.parametrize("strategy_class", STRATEGIES)
def test_a_run_is_read_where_its_device_is_not(strategy_class):
    """All but going on, which says what is missing and changes nothing."""
    here = run(start(strategy_class), 5)
    strategy = strategy_from_state(elsewhere(here.state()))
    assert np.array_equal(strategy.mean, here.mean)
    assert strategy.epoch == 5
    for _ in range(2):
        with pytest.raises(ValueError, match=r"device='cuda:99' was asked for"):
            strategy.ask()
    twin = pickle.loads(pickle.dumps(strategy))
    assert np.array_equal(twin.mean, here.mean)
    # Back where the device is, it is the run itself.
    state = twin.state()
    state["generator"]["device"] = DEVICE
    assert torch.equal(strategy_from_state(state).ask(), here.ask())


@pytest.mark.parametrize("strategy_class", STRATEGIES)
def test_a_run_is_read_without_pytorch(strategy_class, monkeypatch):
    here = run(start(strategy_class), 5)
    content = pickle.dumps(here)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torch", None)
        strategy = pickle.loads(content)
        assert np.array_equal(strategy.mean, here.mean)
        with pytest.raises(ImportError, match="needs PyTorch"):
            strategy.ask()
        content = pickle.dumps(strategy)
    assert torch.equal(pickle.loads(content).ask(), here.ask())


@pytest.mark.parametrize("name", ["abacus", "cuda:", "cuda:x", "cuda:-1", "", "CPU"])
def test_names_that_no_device_has(name):
    with pytest.raises(ValueError, match="device must be"):
        SeparableCMA(np.ones(3), 0.3, device=name)
