"""Contributions estimated from random points, as in the paper."""

from functools import cached_property

import numpy as np

from .._support.compiled import compiled
from ._inputs import (
    FloatArray,
    IntArray,
    RandomSource,
    as_generator,
    box_volume,
)
from ._measure import covering_rows


@compiled
def _count_alone(
    samples: FloatArray, losses: FloatArray, references: FloatArray
) -> IntArray:
    """Count for each member (m, o) the samples (g, o) that it alone dominates.

    Only samples that weakly dominate some reference (r, o) count.
    """
    n_columns = samples.shape[1]
    alone = np.zeros(len(losses), dtype=np.int64)
    for s in range(len(samples)):
        owner = -1
        for i in range(len(losses)):
            covered = True
            for c in range(n_columns):
                if not losses[i, c] <= samples[s, c]:
                    covered = False
                    break
            if covered:
                if owner >= 0:
                    owner = -1
                    break
                owner = i
        if owner < 0:
            continue
        for k in range(len(references)):
            counts = True
            for c in range(n_columns):
                if samples[s, c] > references[k, c]:
                    counts = False
                    break
            if counts:
                alone[owner] += 1
                break
    return alone


class SampledBox:
    """Random points in the box that holds everything a population can cover.

    The same points, drawn when first needed, serve the whole population and any
    part of it.

    Parameters
    ----------
    losses : ndarray of shape (m, o)
        The population. The box starts at 0 or, where that is smaller, at the
        smallest loss of the members that cover anything.
    references : ndarray of shape (r, o)
        The box ends at their largest components.
    n_samples : int
        Number of points.
    random_state : int, Generator, RandomState or None
        Seed or source of the points.
    """

    def __init__(
        self,
        losses: FloatArray,
        references: FloatArray,
        n_samples: int,
        random_state: int | RandomSource | None,
    ) -> None:
        points = losses[covering_rows(losses, references)]
        self.references = references
        self.n_samples = n_samples
        self.random_state = random_state
        self.upper = references.max(axis=0)
        # Where nothing is covered the reference may lie below 0: an empty box.
        self.lower = np.minimum(points.min(axis=0, initial=0.0), self.upper)
        self.volume = box_volume(self.lower, self.upper)

    @cached_property
    def samples(self) -> FloatArray:
        """The points, of shape (n_samples, o)."""
        generator = as_generator(self.random_state)
        unit = generator.random((self.n_samples, len(self.upper)))
        return self.lower + unit * (self.upper - self.lower)

    def contributions(self, losses: FloatArray) -> FloatArray:
        """Estimate the contribution of each member of `losses` (m, o)."""
        estimate = np.zeros(len(losses))
        rows = covering_rows(losses, self.references)
        alone = _count_alone(self.samples, losses[rows], self.references)
        estimate[rows] = self.volume * (alone / self.n_samples)
        return estimate
