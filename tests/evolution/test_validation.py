"""Bad arguments and bad orders, for every strategy."""

import numpy as np
import pytest

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mean": []}, r"non-empty vector.*\(0,\)"),
        ({"mean": 1.0}, r"non-empty vector.*\(\)"),
        ({"mean": [[1.0, 2.0]]}, r"non-empty vector.*\(1, 2\)"),
        ({"mean": [0.0, NAN]}, "Got nan at index 1"),
        ({"mean": [INF, 0.0]}, "Got inf at index 0"),
        ({"mean": ["a", "b"]}, "vector of numbers"),
        ({"sigma": 0}, "Got 0"),
        ({"sigma": -1.0}, "Got -1.0"),
        ({"sigma": NAN}, "Got nan"),
        ({"sigma": INF}, "Got inf"),
        ({"sigma": "1"}, "Got '1'"),
        ({"sigma": None}, "Got None"),
        ({"population_size": 1}, "at least 2. Got 1"),
        ({"population_size": 0}, "at least 2. Got 0"),
        ({"population_size": 5.0}, "Got 5.0"),
        ({"seed": -3}, "Got -3"),
        ({"seed": "abc"}, "Got 'abc'"),
    ],
    ids=repr,
)
def test_refuses_arguments(strategy_class, arguments, message):
    with pytest.raises(ValueError, match=message):
        strategy_class(**{"mean": [0.0, 0.0], "sigma": 1.0, **arguments})


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0, 1, 2], r"indices 0 to 3 once.*shape \(3,\)"),
        ([0, 1, 2, 3, 0], r"shape \(5,\)"),
        ([[0, 1, 2, 3]], r"shape \(1, 4\)"),
        (2, r"shape \(\)"),
        ([0, 1, 2, 2], "index 2 2 times"),
        ([0, 0, 0, 0], "index 0 4 times"),
        ([0, 1, 2, 4], "index 4"),
        ([0, 1, 2, -1], "index -1"),
        ([0.0, 1.0, 2.0, 3.0], "type float64"),
        ([True, False, True, False], "type bool"),
        (["0", "1", "2", "3"], "type <U1"),
        (np.array([0, 1, 2, 2**63], dtype=np.uint64), "index 9223372036854775808"),
    ],
    ids=repr,
)
def test_refuses_orders(strategy_class, order, message):
    strategy = strategy_class([0.0, 1.0], 1.0, population_size=4, seed=0)
    before = strategy.ask()
    with pytest.raises(ValueError, match=message):
        strategy.tell(order)
    assert strategy.epoch == 0
    assert np.array_equal(strategy.ask(), before)


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.intp])
def test_accepts_any_integers(strategy_class, dtype):
    strategy = strategy_class([0.0, 1.0], 1.0, population_size=4, seed=0)
    strategy.ask()
    strategy.tell(np.array([3, 1, 2, 0], dtype=dtype))
    assert strategy.epoch == 1


def test_tell_needs_ask(strategy_class):
    strategy = strategy_class([0.0, 1.0], 1.0, population_size=4, seed=0)
    with pytest.raises(RuntimeError, match=r"call ask\(\) first"):
        strategy.tell([0, 1, 2, 3])
