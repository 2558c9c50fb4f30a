"""Random states."""

import numpy as np
import pytest

from clml.persistence._random import random_state_from, random_state_values


@pytest.mark.parametrize("drawn", [0, 1, 7, 700])
def test_twin_draws_the_same(drawn):
    random = np.random.RandomState(3)
    random.normal(size=drawn)  # odd numbers leave one in store
    twin = random_state_from(random_state_values(random))
    np.testing.assert_array_equal(twin.normal(size=9), random.normal(size=9))
    np.testing.assert_array_equal(twin.randint(99, size=9), random.randint(99, size=9))


def test_saving_draws_nothing():
    random, other = (np.random.RandomState(3) for _ in range(2))
    random_state_values(random)
    assert random.randint(10**9) == other.randint(10**9)


def test_other_generators_are_refused():
    with pytest.raises(TypeError, match=r"RandomState on MT19937 .* got one on PCG64"):
        random_state_values(np.random.RandomState(np.random.PCG64(0)))


@pytest.mark.parametrize(
    "change",
    [
        {"key": None},
        {"key": np.zeros(3, np.uint32)},
        {"key": np.zeros(624)},
        {"pos": -1},
        {"pos": 625},
        {"pos": 10**30},
        {"pos": True},
        {"has_gauss": 2},
        {"has_gauss": None},
        {"gauss": "0"},
        {"more": 1},
    ],
    ids=str,
)
def test_bad_states(change):
    values = {**random_state_values(np.random.RandomState(0)), **change}
    with pytest.raises(ValueError, match="the state of a RandomState"):
        random_state_from(values)
