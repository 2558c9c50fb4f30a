"""Kernels at the edges of their tables; the encodings' tests hold the rest."""

import numpy as np

from clml.encoding import Code, FittedEncoding


def one_column(code, knots=(), levels=None, shift=0.0, scale=1.0, limit=3.0):
    knots = np.array(knots, dtype=np.float64)
    return FittedEncoding(
        centred=True,
        limit=limit,
        code=np.array([code], dtype=np.uint8),
        missing=np.array([False]),
        shift=np.array([shift]),
        scale=np.array([scale]),
        offsets=np.array([0, knots.size]),
        knots=knots,
        levels=np.zeros(knots.size) if levels is None else np.array(levels, float),
        neutral=np.zeros(1),
    )


def test_levels_are_those_of_numpys_interp():
    knots, levels = [-3.0, 0.0, 0.5, 10.0], [-2.0, -1.0, 0.0, 4.0]
    x = np.linspace(-5, 12, 500)
    found = one_column(Code.LEVELS, knots, levels).apply(x[:, None]).ravel()
    np.testing.assert_allclose(found, np.interp(x, knots, levels), rtol=1e-6, atol=1e-6)
    at_knots = one_column(Code.LEVELS, knots, levels).apply(np.array(knots)[:, None])
    np.testing.assert_array_equal(at_knots.ravel(), levels)


def test_ramps_are_clipped_lines():
    knots = np.array([-3.0, 0.0, 0.5, 10.0])
    x = np.linspace(-5, 12, 500)[:, None]
    wanted = np.clip((x - knots[:-1]) / np.diff(knots), 0, 1)
    found = one_column(Code.RAMPS, knots).apply(x)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_ranges_that_overflow():
    top = np.finfo(np.float64).max
    ends = [-top, top]
    x = np.array([[-top], [0.0], [top]])
    np.testing.assert_array_equal(
        one_column(Code.RAMPS, ends).apply(x).ravel(), [0, 0.5, 1]
    )
    np.testing.assert_array_equal(
        one_column(Code.LEVELS, ends, [-1, 1]).apply(x).ravel(), [-1, 0, 1]
    )
    np.testing.assert_array_equal(
        one_column(Code.STANDARD, shift=-top, scale=top).apply(x).ravel(), [0, 1, 2]
    )


def test_the_smallest_limit():
    found = one_column(Code.CLIPPED, limit=1e-3).apply([[1e300], [-1e300], [0.0]])
    np.testing.assert_allclose(found.ravel(), [1e-3, -1e-3, 0], rtol=1e-6)
