"""Ranks of many labels in linear time: those that counting gives."""

import numpy as np
import pytest

from clml._maps.score_engine import ScoreEngine
from clml._maps.score_map import MapSpace
from clml._support.simd import LANES
from clml.engine.blocks import Task
from clml.losses import RowTargets
from clml.losses.lane_kernels import _buckets, _rank_among

N, N_LIMITS = 300, 150


def ranks_among(values):
    """Return what the kernel finds of the first values, and whether it could."""
    ranks = np.full((N_LIMITS + 4, LANES), -1, dtype=np.int32)
    room = _buckets(len(values), values)
    done = _rank_among(values, len(values), values, N_LIMITS, room, ranks)
    return done, ranks[:N_LIMITS]


def counted(values):
    return (values[None] >= values[:N_LIMITS, None]).sum(axis=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["spread", "tied", "empty lanes", "huge", "tiny"])
def test_ranks_are_those_of_counting(kind, dtype):
    values = np.random.default_rng(0).normal(size=(N, LANES))
    if kind == "tied":
        values = np.round(values, 1)
    if kind == "empty lanes":
        values[:, 5:] = 0
    if kind == "huge":
        values *= 1e30
    if kind == "tiny":
        values *= 1e-30
    values = values.astype(dtype)
    done, ranks = ranks_among(values)
    assert done
    np.testing.assert_array_equal(ranks, counted(values))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ((7, 3), np.inf),
        ((0, 0), -np.inf),
        ((slice(2), 5), [1.5e308, -1.5e308]),
        ((9, slice(None)), 1e9),
    ],
)
def test_values_that_buckets_do_not_part_are_left_to_counting(place, value):
    values = np.random.default_rng(0).normal(size=(N, LANES))
    values[place] = value
    assert not ranks_among(values)[0]


@pytest.mark.parametrize("bad", [None, np.nan, np.inf])
@pytest.mark.parametrize("density", [0.5, 0.97, 1.0])
def test_sums_of_many_labels_are_those_of_the_other_kernel(density, bad):
    generator = np.random.default_rng(1)
    Y = (generator.random((6, 400)) < density).astype(int)
    targets = RowTargets.from_indicator(Y)
    scores = generator.normal(size=(6, 1, 400))
    losses = ("hamming", "lrap", "ranking_loss", "coverage", "one_error")
    engine = ScoreEngine(
        MapSpace.fit(scores, targets, "affine"), scores, targets, losses
    )
    weights = generator.normal(size=(11, 1, 400))
    bias = generator.normal(size=(11, 400))
    if bad is not None:
        bias[4, 17] = bad
    task = Task(first=0, last=11, shard=0, start=0, stop=6)
    fast = engine._sum_rows_in_lanes(weights, bias, task)
    plain = engine._sum_rows(weights, bias, task)
    wanted = [0, 1, 2, 3, 7, 8, 9, 10]  # what both are asked for
    np.testing.assert_array_equal(fast.columns[:, wanted], plain.columns[:, wanted])
