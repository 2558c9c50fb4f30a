import numpy as np
import pytest

from clml.evolution import RankOneCMA, strategy_from_state


@pytest.fixture
def state(strategy_class, run_epochs):
    strategy = strategy_class(np.ones(3), 1.0, seed=0)
    run_epochs(strategy, 4)
    return strategy.state()


def test_dispatches_on_the_kind(strategy_class, state):
    assert state["kind"] == strategy_class.kind
    assert type(strategy_from_state(state)) is strategy_class


def test_kinds_are_not_mixed(strategy_class, state):
    other = "full_cma" if state["kind"] != "full_cma" else "rank_one_cma"
    with pytest.raises(ValueError, match="Expected a state of kind"):
        strategy_class.from_state(state | {"kind": other})


@pytest.mark.parametrize("key", ["kind", "version", "population_size", "epoch", "mean"])
def test_every_entry_is_needed(state, key):
    del state[key]
    with pytest.raises(ValueError):
        strategy_from_state(state)


@pytest.mark.parametrize(
    "damage",
    [
        {"kind": "annealing"},
        {"kind": 3},
        {"version": 99},
        {"population_size": 1},
        {"population_size": 6.5},
        {"population_size": "many"},
        {"population_size": 10**12},
        {"population_size": 10**400},
        {"epoch": 10**300},
        {"epoch": -1},
        {"epoch": None},
        {"epoch": float("inf")},
        {"mean": np.zeros((2, 2))},
        {"mean": np.array([0.0, np.nan, 1.0])},
        {"mean": "abc"},
        {"mean": [10**400, 1, 1]},
        {"sigma": 0.0},
        {"sigma": float("nan")},
        {"sigma": [1.0, 2.0]},
        {"generator": {}},
        {"generator": 5},
    ],
    ids=repr,
)
def test_refuses_damaged_states(state, damage):
    with pytest.raises(ValueError):
        strategy_from_state(state | damage)


@pytest.mark.parametrize("state", [None, 5, "state", [], {}], ids=repr)
def test_refuses_what_is_no_state(state):
    with pytest.raises(ValueError, match="state"):
        strategy_from_state(state)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"scale": -1.0}, "scale"),
        ({"scale": np.nan}, "scale"),
        ({"weights": np.ones(3)}, "paths|blocks|shape"),
        ({"weights": -np.ones(4)}, "negative"),
        ({"weights": np.full(4, np.inf)}, "weights"),
        ({"paths": {}}, "expected 1 blocks"),
        ({"paths": {"0": np.ones((4, 2))}}, "shape"),
        ({"paths": {"0": np.ones((4, 3)), "1": np.ones((4, 3))}}, "expected 1 blocks"),
        ({"paths": {"0": np.full((4, 3), np.nan)}}, "finite"),
        ({"paths": np.ones((4, 3))}, "dict"),
    ],
    ids=repr,
)
def test_refuses_damaged_paths(run_epochs, damage, message):
    strategy = RankOneCMA(np.ones(3), 1.0, seed=0)
    run_epochs(strategy, 4)
    state = strategy.state()
    state["covariance"] |= damage
    with pytest.raises(ValueError, match=message):
        strategy_from_state(state)
