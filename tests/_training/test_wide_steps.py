"""Steps in one compiled call are those of the plain loop."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from clml._training.ascent import AscentState, after_epoch
from clml._training.steps import AscentPlan, PlainSteps
from clml._training.training_rows import WideRows
from clml.losses import LossSet, RowTargets, get_losses
from clml.network import WideNetwork, WidePass

PLAN = AscentPlan(
    0.01, 10, 16, 0.5, weight_decay=0.1, closed_form=True, surrogate_epochs=1
)
THREE = ("hamming", "lrap", "micro_f1")


class Passes:
    """A wide network for the plain loop, a call for each half of a step."""

    def __init__(self, rows, most_rows):
        self._passes = WidePass(rows.layout, rows.X, most_rows)

    def forward(self, theta, batch, generator):
        key = int(generator.integers(2**63, dtype=np.uint64))
        return self._passes.forward(theta, batch, key)

    def backward(self, slope):
        return self._passes.backward(slope)


def problem(form=np.asarray, **settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6)).astype(np.float32)
    X[rng.random(X.shape) < 0.3] = 0
    targets = RowTargets.from_indicator(X[:, :3] > 0.2, rng.random(40))
    layout = WideNetwork(hidden=(12, 8), **settings).build(6, 3)
    return WideRows(form(X), layout), targets


def members(rows, targets, n):
    """Some members, each without other rows and with an own number of batches."""
    seeds = np.random.SeedSequence(1).spawn(n)
    climbers = [AscentState.start(rows.layout, seed) for seed in seeds]
    weight = np.array([np.roll(np.arange(40) >= 9 * m, m) for m in range(n)])
    own = [replace(targets, weight=targets.weight * w, weighted=True) for w in weight]
    return climbers, own


class SlowRows(WideRows):
    def steps(self, most_rows, *given):
        return PlainSteps(Passes(self, most_rows), *given)


@pytest.mark.parametrize("losses", [THREE, ("macro_f1", "coverage"), ("one_error",)])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("surrogate", [False, True])
def test_twin(losses, form, surrogate):
    rows, targets = problem(form, linear_path=surrogate)
    loss_set = LossSet(get_losses(losses), 3)
    plan = replace(PLAN, surrogate_epochs=int(surrogate), batch_size=6)
    climbers, own = members(rows, targets, 3)
    assert len({round(np.count_nonzero(one.weight) / 6) for one in own}) > 1
    # An output at a threshold may be rounded to the other side, but not in these few.
    quick = after_epoch(climbers, rows, own, loss_set, plan, 0)
    slow = after_epoch(climbers, SlowRows(rows.X, rows.layout), own, loss_set, plan, 0)
    for one, other, before in zip(quick, slow, climbers, strict=True):
        assert_allclose(one.sums.columns, other.sums.columns, rtol=1e-6)
        assert_allclose(one.sums.labels, other.sums.labels, rtol=1e-6)
        assert_allclose(one.losses, other.losses, rtol=1e-6)
        for name in ("theta", "average"):
            found, expected = getattr(one, name), getattr(other, name)
            assert_allclose(found, expected, atol=5e-5)
        assert one.adam.n_steps == other.adam.n_steps >= 2
        assert_allclose(one.adam.first, other.adam.first, atol=1e-5)
        assert one.generator == other.generator != before.generator
        assert np.abs(one.theta - before.theta).max() > 1e-3


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("losses", [THREE, ("macro_f1", "lrap")])
def test_members_are_the_same_together_and_alone(form, losses):
    rows, targets = problem(form)
    loss_set = LossSet(get_losses(losses), 3)
    climbers, own = members(rows, targets, 4)
    together = alone = climbers
    for _ in range(2):
        together = after_epoch(together, rows, own, loss_set, PLAN, 0)
        alone = [
            after_epoch([one], rows, [its], loss_set, PLAN, 0)[0]
            for one, its in zip(alone, own, strict=True)
        ]
    for one, other in zip(together, alone, strict=True):
        for name in ("theta", "average", "losses"):
            assert_array_equal(getattr(one, name), getattr(other, name))
        assert_array_equal(one.sums.columns, other.sums.columns)
        assert_array_equal(one.adam.second, other.adam.second)
        assert (one.generator, one.epoch) == (other.generator, 2)


def test_members_that_are_given_stay_as_they_are():
    rows, targets = problem()
    climbers, own = members(rows, targets, 2)
    before = copy.deepcopy(climbers)
    after_epoch(climbers, rows, own, LossSet(get_losses(THREE), 3), PLAN, 0)
    for one, other in zip(climbers, before, strict=True):
        assert_array_equal(one.theta, other.theta)
        assert_array_equal(one.adam.first, other.adam.first)
        assert one.adam.n_steps == 0
        assert one.generator == other.generator


def test_rows_of_weight_0_are_not_used():
    rows, targets = problem()
    weight = targets.weight.copy()
    weight[25:] = 0
    own = copy.copy(targets)
    object.__setattr__(own, "weight", weight)
    loss_set = LossSet(get_losses(THREE), 3)
    begin = AscentState.start(rows.layout, np.random.SeedSequence(0))
    (one,) = after_epoch([begin], rows, [own], loss_set, PLAN, 0)
    spoilt = WideRows(rows.X.copy(), rows.layout)
    spoilt.X[25:] = np.nan
    (other,) = after_epoch([begin], spoilt, [own], loss_set, PLAN, 0)
    assert_array_equal(one.theta, other.theta)
    assert one.epoch == 1 and np.isfinite(one.losses).all()
