import json

import numpy as np
import pytest

from clml.evolution.random import (
    generator_from_state,
    generator_state,
    new_generator,
)


def test_continues_bit_for_bit():
    generator = new_generator(3)
    generator.standard_normal(7)
    # An odd number of 32-bit draws leaves half a word behind.
    generator.integers(0, 10, size=3, dtype=np.uint32)
    copy = generator_from_state(json.loads(json.dumps(generator_state(generator))))
    assert np.array_equal(copy.integers(0, 2**31, 5), generator.integers(0, 2**31, 5))
    assert np.array_equal(copy.standard_normal(50), generator.standard_normal(50))


def test_seed_sequence_is_not_consumed():
    seeds = np.random.SeedSequence(5)
    first, second = new_generator(seeds), new_generator(seeds)
    assert first.random() == second.random() == new_generator(5).random()


@pytest.mark.parametrize(
    "seed",
    [-1, 1.5, "1", True, np.random.default_rng(0), [1, 2]],
    ids=lambda seed: type(seed).__name__,
)
def test_refuses_seeds(seed):
    with pytest.raises(ValueError, match="Expected seed to be None"):
        new_generator(seed)


@pytest.mark.parametrize(
    "damage",
    [
        {"bit_generator": "MT19937"},
        {"state": "x"},
        {"state": str(2**200)},
        {"inc": None},
        {"has_uint32": "yes"},
    ],
    ids=repr,
)
def test_refuses_damaged_states(damage):
    with pytest.raises(ValueError, match="random generator is damaged"):
        generator_from_state({**generator_state(new_generator(0)), **damage})


def test_refuses_incomplete_states():
    with pytest.raises(ValueError, match="'inc'"):
        state = generator_state(new_generator(0))
        del state["inc"]
        generator_from_state(state)
