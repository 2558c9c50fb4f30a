"""Slow, obvious twins of the fast code, and guarded calls."""

from collections.abc import Callable
from itertools import pairwise, product
from math import prod

import numpy as np
import pytest


class SlowTwin:
    """The definitions, spelled out one pair and one cell at a time."""

    @staticmethod
    def _no_worse(a, b):
        return all(x <= y for x, y in zip(a, b, strict=True))

    @classmethod
    def dominates(cls, a, b):
        better = any(x < y for x, y in zip(a, b, strict=True))
        return better and cls._no_worse(a, b)

    @classmethod
    def depth(cls, L):
        """Layers peeled one by one; rows without NaN only."""
        depth = np.full(len(L), -1)
        layer = 0
        while (depth < 0).any():
            left = np.flatnonzero(depth < 0)
            peeled = [
                i for i in left if not any(cls.dominates(L[j], L[i]) for j in left)
            ]
            depth[peeled] = layer
            layer += 1
        return depth

    @staticmethod
    def _cells(L, references):
        """Yield lower corner, upper corner and volume of each cell of the grid.

        The grid lines run through every coordinate of every vector, so that a cell
        lies either wholly inside or wholly outside each box.
        """
        finite = [row for row in L if np.isfinite(row).all()]
        columns = zip(*finite, *references, strict=True)
        lines = [sorted(set(column)) for column in columns]
        for cell in product(*(pairwise(column) for column in lines)):
            lower, upper = zip(*cell, strict=True)
            yield lower, upper, prod(b - a for a, b in cell)

    @classmethod
    def _covered(cls, L, references):
        """Yield the volume of each cell and the members that cover it."""
        for lower, upper, volume in cls._cells(L, references):
            if any(cls._no_worse(upper, reference) for reference in references):
                yield volume, [i for i, f in enumerate(L) if cls._no_worse(f, lower)]

    @classmethod
    def measure(cls, L, references):
        return sum(volume for volume, who in cls._covered(L, references) if who)

    @classmethod
    def contributions(cls, L, references):
        contributions = np.zeros(len(L))
        for volume, who in cls._covered(L, references):
            if len(who) == 1:
                contributions[who[0]] += volume
        return contributions


@pytest.fixture(scope="session")
def slow():
    return SlowTwin


@pytest.fixture(scope="session")
def immutable_call() -> Callable:
    """Call a function and check that it left its array arguments alone."""

    def call(function, *args, **kwargs):
        arrays = [a for a in (*args, *kwargs.values()) if isinstance(a, np.ndarray)]
        before = [a.copy() for a in arrays]
        result = function(*args, **kwargs)
        for array, copy in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(array, copy)
        return result

    return call
