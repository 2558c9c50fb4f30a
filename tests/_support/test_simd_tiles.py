"""Exponentials of a kernel; tiles of sums are tested with ``_rowwise``."""

import numpy as np
import pytest

from clml._support.compiled import compiled
from clml._support.simd import address
from clml._support.simd_tiles import NUMBERS, to_exponentials


@compiled
def exponentials(values, factor, shift, offsets, numbers):
    n = values.size // numbers
    to_exponentials(address(values, 0), n, factor, shift, address(offsets, 0))


@pytest.mark.parametrize("factor", [1.0, -0.5])
def test_equals_the_exponentials_of_numpy(factor):
    generator = np.random.default_rng(0)
    values = generator.normal(scale=20, size=4096)
    offsets = generator.normal(scale=20, size=4096)
    expected = np.exp(np.clip(factor * values + 3.0 + offsets, -700, 0))
    exponentials(values, factor, 3.0, offsets, NUMBERS[8])
    np.testing.assert_allclose(values, expected, rtol=1e-13)


def test_ends():
    values = np.array([0.0, -1e300, 1e300, -700.0, -800.0, -1e-300, 5.0, -1.0])
    exponentials(values, 1.0, 0.0, np.zeros(8), NUMBERS[8])
    least = np.exp(-700.0)
    np.testing.assert_allclose(
        values, [1, least, 1, least, least, 1, 1, np.exp(-1)], rtol=1e-13
    )
