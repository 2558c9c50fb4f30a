"""Rows in partitions: the statistics of all, in one pass, whoever holds them."""

import numpy as np
import pytest
from held_partitions import LOSSES, cut, engine_of, make_rows, population

from clml.engine.local import LocalHolders
from clml.engine.partitioned import Held, PartitionedEngine, Request
from clml.losses import Loss, Statistic, get_losses


class Counting(LocalHolders):
    """Counts passes."""

    n_passes = 0

    def evaluate(self, thetas, requests):
        self.n_passes += 1
        self.requests = requests
        return super().evaluate(thetas, requests)


def partitioned(held, memory_mb=100, losses=LOSSES):
    holders = Counting(lambda i: held[i], len(held), memory_mb)
    sample = next(iter(h.engines["train"] for h in held if h.engines))
    return PartitionedEngine(holders, "train", losses, 4, sample), holders


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sizes", [[300], [100, 200], [1, 0, 298, 1], [64] * 4 + [44]])
def test_the_losses_are_those_of_all_rows(sparse, weighted, sizes):
    rows = make_rows(300, sparse=sparse, weighted=weighted)
    engine, _ = partitioned(cut(rows, sizes))
    thetas = population(20)
    np.testing.assert_allclose(
        engine.losses(thetas), engine_of(*rows).losses(thetas), rtol=1e-12
    )


def test_one_partition_has_the_bits_of_rows_in_memory():
    rows = make_rows(300)
    engine, _ = partitioned(cut(rows, [300]))
    thetas = population(20)
    np.testing.assert_array_equal(
        engine.losses(thetas), engine_of(*rows).losses(thetas)
    )


def test_what_is_begun_together_takes_one_pass():
    held = cut(make_rows(300), [100, 100, 100])
    train, holders = partitioned(held)
    validation = train.of_part("train", train.sample)
    thetas = population(3)
    first, second = train.begin(thetas), validation.begin(thetas)
    np.testing.assert_array_equal(first(), second())
    assert holders.n_passes == 1
    # What is begun after somebody has waited is of another pass, as are others.
    third, fourth = train.begin(thetas), validation.begin(population(2))
    third(), fourth()
    assert holders.n_passes == 3


def test_a_share_of_the_rows_is_drawn_in_each_partition():
    rows = make_rows(300)
    held = cut(rows, [100, 200])
    engine, holders = partitioned(held)
    thetas = population(3)
    found = engine.drawn(0.1, (7, 5)).evaluate(thetas)
    assert holders.requests == (Request("train", 0.1, (7, 5)),)
    assert found.weight == 30
    again = engine.drawn(0.1, (7, 5)).evaluate(thetas)
    other = engine.drawn(0.1, (7, 6)).evaluate(thetas)
    np.testing.assert_array_equal(found.sums["lrap"], again.sums["lrap"])
    assert (found.sums["lrap"] != other.sums["lrap"]).any()
    # The two partitions draw others.
    np.testing.assert_array_equal(
        found.sums["lrap"],
        sum(
            h.engines["train"].drawn(0.1, (7, 5, h.index)).evaluate(thetas).sums["lrap"]
            for h in held
        ),
    )


class Own(Loss):
    name = "own"
    statistics = (Statistic("own_sum", lambda Y, s, t: np.tanh(s).sum(axis=-1) / 8),)

    def close(self, sums, weight, n_labels):
        return 0.5 + sums["own_sum"] / weight


def test_a_loss_of_ones_own_travels_by_its_statistics():
    X, Y, _ = make_rows(300)
    held = [
        Held(i, {"train": engine_of(X[a:b], Y[a:b], None, (Own,))})
        for i, (a, b) in enumerate([(0, 120), (120, 300)])
    ]
    engine, _ = partitioned(held, losses=(Own,))
    thetas = population(3)
    np.testing.assert_allclose(
        engine.losses(thetas), engine_of(X, Y, None, (Own,)).losses(thetas), rtol=1e-12
    )


@pytest.mark.parametrize(
    "loss", [lambda Y, S: 0.5, "macro_auc"], ids=["function", "auc"]
)
def test_losses_that_are_no_sums_are_refused(loss):
    assert not get_losses(("hamming", loss))[1].additive
    held = cut(make_rows(30), [30])
    with pytest.raises(ValueError, match="sums of row statistics"):
        partitioned(held, losses=("hamming", loss))


def test_a_part_that_nobody_has():
    engine, _ = partitioned(cut(make_rows(30), [30]))
    with pytest.raises(ValueError, match="part validation"):
        engine.of_part("validation", engine.sample).losses(population(2))
