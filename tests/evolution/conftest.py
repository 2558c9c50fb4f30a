"""The registry of strategies, and what several test files need."""

import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from clml.evolution import (
    CMAPackage,
    FullCMA,
    PrintedCMA,
    RankGradient,
    RankOneCMA,
    SeparableCMA,
    Strategy,
    rank_by_fitness,
)

# Listing a strategy here is what makes it tested.
STRATEGIES = [
    CMAPackage,
    FullCMA,
    PrintedCMA,
    RankGradient,
    RankOneCMA,
    SeparableCMA,
]

# What a strategy does not promise, and why; its own test file has what it does.
EXEMPT = {
    (RankGradient, "test_ask_returns_one_array"): "pairs of float32 candidates",
    (RankGradient, "test_the_mean_moves_towards_the_best"): "the learning rate says",
}


@pytest.fixture(params=STRATEGIES, ids=lambda strategy: strategy.__name__)
def strategy_class(request: pytest.FixtureRequest) -> type:
    reason = EXEMPT.get((request.param, request.function.__name__))
    if reason:
        pytest.skip(f"{request.param.__name__}: {reason}")
    return request.param


def sphere(X: np.ndarray) -> np.ndarray:
    return np.sum(X**2, axis=1)


def ellipsoid(X: np.ndarray) -> np.ndarray:
    n = X.shape[1]
    return X**2 @ 1e6 ** (np.arange(n) / (n - 1))


def rosenbrock(X: np.ndarray) -> np.ndarray:
    valley = 100 * (X[:, 1:] - X[:, :-1] ** 2) ** 2 + (1 - X[:, :-1]) ** 2
    return valley.sum(axis=1)


# function, start of every coordinate, initial step size
FUNCTIONS = {
    "sphere": (sphere, 1.0, 0.5),
    "ellipsoid": (ellipsoid, 1.0, 0.5),
    "rosenbrock": (rosenbrock, 0.0, 0.3),
}


@pytest.fixture
def run_epochs() -> Callable[[Strategy, int], list[np.ndarray]]:
    """Minimise the ellipsoid for some epochs; return the populations."""

    def run(strategy: Strategy, n_epochs: int) -> list[np.ndarray]:
        populations = []
        for _ in range(n_epochs):
            populations.append(strategy.ask())
            strategy.tell(rank_by_fitness(ellipsoid(populations[-1])))
        return populations

    return run


def _count_evaluations(strategy: Strategy, function: Callable, limit: int) -> float:
    for evaluations in range(0, limit, strategy.population_size):
        fitness = function(strategy.ask())
        if fitness.min() <= 1e-8:
            return evaluations + strategy.population_size
        strategy.tell(rank_by_fitness(fitness))
    return np.inf


@pytest.fixture
def evaluation_ratio() -> Callable[..., float]:
    """Evaluations to reach 1e-8, median over seeds, against those of cma."""

    def ratio(
        strategy_class: type, options: dict, name: str, n: int, n_seeds: int = 3
    ) -> float:
        function, start, sigma = FUNCTIONS[name]
        mean = np.full(n, start)
        ours, theirs = [], []
        for seed in range(n_seeds):
            strategy = strategy_class(mean, sigma, seed=seed)
            oracle = CMAPackage(mean, sigma, seed=100 + seed, options=options)
            ours.append(_count_evaluations(strategy, function, 200_000))
            theirs.append(_count_evaluations(oracle, function, 200_000))
        return float(np.median(ours) / np.median(theirs))

    return ratio


def _split(value: Any, arrays: dict[str, np.ndarray], name: str) -> Any:
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    if isinstance(value, dict):
        return {
            key: _split(item, arrays, f"{name}.{key}") for key, item in value.items()
        }
    return value


def _join(value: Any, arrays: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if set(value) == {"array"}:
        return arrays[value["array"]]
    return {key: _join(item, arrays) for key, item in value.items()}


@pytest.fixture
def through_files() -> Callable[[dict], dict]:
    """Write a state as JSON text and an npz archive, and read it again."""

    def round_trip(state: dict) -> dict:
        arrays: dict[str, np.ndarray] = {}
        text = json.dumps(_split(state, arrays, "state"))
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **arrays)
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:
            return _join(json.loads(text), archive)

    return round_trip
