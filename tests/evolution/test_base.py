"""What every strategy promises."""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clml.evolution
from clml.evolution import (
    FullCMA,
    RankOneCMA,
    SeparableCMA,
    Strategy,
    rank_by_fitness,
    strategy_from_state,
)

PACKAGE = str(Path(clml.evolution.__file__).parent)


def same_states(first, second):
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(
            same_states(first[key], second[key]) for key in first
        )
    return np.array_equal(first, second)


def test_is_a_strategy(strategy_class):
    strategy = strategy_class(np.arange(5.0), 0.3, seed=0)
    assert isinstance(strategy, Strategy)
    assert strategy.n_parameters == 5
    assert strategy.population_size == 8
    assert strategy.epoch == 0
    assert strategy.sigma == pytest.approx(0.3)
    np.testing.assert_array_equal(strategy.mean, np.arange(5.0))


@pytest.mark.parametrize("population_size", [2, 3, 7, 40])
def test_ask_returns_one_array(strategy_class, population_size):
    strategy = strategy_class(np.zeros(6), 1.0, population_size, seed=0)
    X = strategy.ask()
    assert X.shape == (population_size, 6)
    assert X.dtype == np.float64
    assert X.flags.writeable
    assert len(np.unique(X)) == X.size


@pytest.mark.parametrize("strategy_class", [FullCMA, RankOneCMA, SeparableCMA])
def test_drawing_ahead_changes_no_number(strategy_class):
    plain, ahead = (strategy_class(np.ones(6), 1.0, seed=0) for _ in range(2))
    with ThreadPoolExecutor(1) as helpers:
        ahead.draw_ahead(helpers)  # nothing is pending yet
        for _ in range(4):
            expected, found = plain.ask(), ahead.ask()
            assert np.array_equal(found, expected)
            ahead.draw_ahead(helpers)
            assert np.array_equal(ahead.ask(), expected)
            assert same_states(ahead.state(), plain.state())
            order = rank_by_fitness(np.sum(expected**2, axis=1))
            plain.tell(order)
            ahead.tell(order)
            assert same_states(ahead.state(), plain.state())


@pytest.mark.parametrize("strategy_class", [FullCMA, RankOneCMA, SeparableCMA])
def test_what_was_drawn_ahead_is_not_copied(strategy_class):
    strategy = strategy_class(np.ones(6), 1.0, seed=0)
    order = rank_by_fitness(np.sum(strategy.ask() ** 2, axis=1))
    with ThreadPoolExecutor(1) as helpers:
        strategy.draw_ahead(helpers)
    strategy.tell(order)
    other = copy.deepcopy(pickle.loads(pickle.dumps(strategy)))
    assert np.array_equal(other.ask(), strategy.ask())


def test_asking_again_returns_the_same(strategy_class, run_epochs):
    strategy = strategy_class(np.ones(6), 1.0, seed=0)
    run_epochs(strategy, 3)
    first = strategy.ask()
    kept = first.copy()
    first[:] = 0  # the caller's array is the caller's
    assert np.array_equal(strategy.ask(), kept)


def test_the_mean_moves_towards_the_best(strategy_class):
    strategy = strategy_class(np.zeros(3), 1.0, population_size=2, seed=0)
    X = strategy.ask()
    strategy.tell([1, 0])
    assert strategy.epoch == 1
    # With a population of two there is one parent.
    np.testing.assert_allclose(strategy.mean, X[1], rtol=1e-12)


def test_arguments_and_results_are_not_shared(strategy_class):
    start = np.ones(4)
    strategy = strategy_class(start, 1.0, seed=0)
    start[:] = 7
    strategy.mean[:] = 7
    np.testing.assert_array_equal(strategy.mean, np.ones(4))
    order = np.arange(strategy.population_size)
    order.flags.writeable = False
    strategy.ask()
    strategy.tell(order)


def test_same_seed_same_run(strategy_class, run_epochs):
    runs = [
        run_epochs(strategy_class(np.ones(5), 1.0, seed=seed), 10)
        for seed in (4, np.random.SeedSequence(4), np.int64(4), 5)
    ]
    assert np.array_equal(runs[0], runs[1])
    assert np.array_equal(runs[0], runs[2])
    assert not np.array_equal(runs[0], runs[3])


def test_no_seed_is_a_fresh_seed(strategy_class):
    first, second = (strategy_class(np.ones(5), 1.0).ask() for _ in range(2))
    assert not np.array_equal(first, second)


def test_leaves_the_global_generator_alone(strategy_class, run_epochs):
    before = np.random.get_state()  # noqa: NPY002
    run_epochs(strategy_class(np.ones(5), 1.0), 5)
    after = np.random.get_state()  # noqa: NPY002
    assert before[2:] == after[2:]
    assert np.array_equal(before[1], after[1])


# 64 factors is the first fold of RankOneCMA at this size.
@pytest.mark.parametrize("epochs_before", [0, 1, 7, 63, 64, 65, 150])
@pytest.mark.parametrize("asked", [False, True], ids=["after tell", "after ask"])
def test_resumed_equals_uninterrupted(
    strategy_class, run_epochs, through_files, epochs_before, asked
):
    strategy = strategy_class(np.ones(6), 1.0, seed=1)
    run_epochs(strategy, epochs_before)
    if asked:
        strategy.ask()
    state = strategy.state()
    stored = through_files(state)
    expected = run_epochs(strategy, 70)
    # Also the live dict: going on must not have changed it.
    for saved in (stored, state):
        for restore in (strategy_class.from_state, strategy_from_state):
            resumed = restore(saved)
            assert type(resumed) is strategy_class
            assert resumed.epoch == epochs_before
            assert np.array_equal(run_epochs(resumed, 70), expected)
            assert resumed.sigma == strategy.sigma
            assert np.array_equal(resumed.mean, strategy.mean)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=4))
@settings(max_examples=10, deadline=None)
def test_any_chain_of_restarts_changes_nothing(pieces):
    for strategy_class in (RankOneCMA, SeparableCMA, FullCMA):
        whole = strategy_class(np.ones(4), 1.0, seed=2)
        parts = strategy_class(np.ones(4), 1.0, seed=2)
        for n_epochs in pieces:
            for strategy in (whole, parts):
                for _ in range(n_epochs):
                    fitness = np.abs(strategy.ask()).sum(axis=1)
                    strategy.tell(rank_by_fitness(fitness))
            parts = strategy_class.from_state(parts.state())
        assert same_states(whole.state(), parts.state())


def test_state_is_plain(strategy_class, run_epochs):
    strategy = strategy_class(np.ones(3), 1.0, seed=0)
    run_epochs(strategy, 3)

    def check(value):
        if isinstance(value, dict):
            assert all(isinstance(key, str) for key in value)
            for item in value.values():
                check(item)
        elif isinstance(value, np.ndarray):
            assert value.dtype in (np.float64, np.int64)
        else:
            assert type(value) in (int, float, str)

    check(strategy.state())


def through_pickle(strategy):
    return pickle.loads(pickle.dumps(strategy))


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, through_pickle])
def test_copies_go_their_own_way(strategy_class, run_epochs, how):
    strategy = strategy_class(np.ones(4), 1.0, seed=0)
    run_epochs(strategy, 5)
    twin = how(strategy)
    strategy.ask()
    strategy.tell(np.arange(strategy.population_size))
    expected = run_epochs(twin, 4)
    fresh = strategy_class(np.ones(4), 1.0, seed=0)
    run_epochs(fresh, 5)
    assert np.array_equal(run_epochs(fresh, 4), expected)


class _Interrupter:
    """Raise KeyboardInterrupt at the n-th line that runs inside the package."""

    def __init__(self, line: int) -> None:
        self.lines_left = line

    def __call__(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            self.lines_left -= 1
            if self.lines_left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


@pytest.mark.parametrize("epochs_before", [2, 63], ids=["early", "at a fold"])
def test_interrupted_at_any_line(strategy_class, run_epochs, epochs_before):
    strategy = strategy_class(np.ones(3), 1.0, seed=0)
    run_epochs(strategy, epochs_before)
    state = strategy.state()
    order = np.arange(strategy.population_size)
    expected = [strategy.ask()]
    strategy.tell(order)
    expected.append(strategy.ask())

    n_lines, finished = 0, False
    previous = sys.gettrace()
    while not finished:
        strategy = strategy_class.from_state(state)
        _ = strategy.mean  # CMAPackage replays here, not while being traced
        sys.settrace(_Interrupter(n_lines))
        try:
            strategy.ask()
            strategy.tell(order)
            finished = True
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(previous)
        done = strategy.epoch - epochs_before
        assert done in (0, 1)
        assert np.array_equal(strategy.ask(), expected[done])
        if not done:
            strategy.tell(order)
        assert np.array_equal(strategy.ask(), expected[1])
        n_lines += 1
    assert n_lines > 20


@pytest.mark.parametrize("strategy_class", [FullCMA, RankOneCMA, SeparableCMA])
@pytest.mark.parametrize("n", [1, 2, 70])
def test_stays_finite_for_ever(strategy_class, n):
    # Long after convergence, and with an order that says nothing.
    generator = np.random.default_rng(0)
    strategy = strategy_class(np.full(n, 1e3), 1.0, population_size=6, seed=0)
    for epoch in range(1500):
        X = strategy.ask()
        random = generator.permutation(6)
        strategy.tell(random if epoch % 500 > 400 else rank_by_fitness((X**2).sum(1)))
    assert np.isfinite(strategy.mean).all()
    assert 0 < strategy.sigma < np.inf
    strategy_class.from_state(strategy.state())


@pytest.mark.parametrize("strategy_class", [FullCMA, RankOneCMA, SeparableCMA])
def test_step_size_stays_in_range(strategy_class):
    # Always preferring one direction makes the step size grow without limit.
    strategy = strategy_class(np.zeros(2), 1e149, seed=0)
    for _ in range(100):
        strategy.tell(rank_by_fitness(strategy.ask()[:, 0]))
    assert np.isfinite(strategy.ask()).all()
