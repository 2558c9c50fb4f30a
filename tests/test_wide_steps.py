"""Steps in one compiled call are those of the plain loop."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from clml._adam import Adam
from clml._ascent import Climber
from clml._steps import AscentPlan, Moving, PlainSteps
from clml._training_rows import WideRows
from clml.losses import LossSet, RowTargets, get_losses, statistic_weights
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


def moving_of(rows):
    theta = rows.layout.start(np.random.default_rng(1))
    adam = Adam(rows.layout.size, maximize=True)
    return Moving(theta, theta.copy(), adam, np.random.default_rng(2))


@pytest.mark.parametrize("losses", [THREE, ("macro_f1", "coverage"), ("one_error",)])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("surrogate", [False, True])
def test_twin(losses, form, surrogate):
    rows, targets = problem(form, linear_path=surrogate)
    loss_set = LossSet(get_losses(losses), 3)
    batches = np.array_split(np.random.default_rng(3).permutation(40), 3)
    rates = [0.01, 0.009, 0.008]
    totals = loss_set.new_totals(1)
    loss_set.accumulate(totals, rows.logits(moving_of(rows).theta)[None], targets)
    prices = statistic_weights(loss_set, totals, float(targets.weight.sum()))
    quick, slow = moving_of(rows), moving_of(rows)
    found = rows.steps(20, targets, loss_set, PLAN, surrogate)
    found = found.climb(quick, batches, rates, prices)
    plain = PlainSteps(Passes(rows, 20), targets, loss_set, PLAN, surrogate)
    expected = plain.climb(slow, batches, rates, prices)
    # An output at a threshold may be rounded to the other side, but not in these few.
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one.columns, other.columns, rtol=1e-6)
        assert_allclose(one.labels, other.labels, rtol=1e-6)
    for name in ("theta", "average"):
        assert_allclose(getattr(quick, name), getattr(slow, name), atol=2e-5)
    assert quick.adam.n_steps == slow.adam.n_steps == 3
    assert_allclose(quick.adam.first, slow.adam.first, atol=1e-5)
    assert np.abs(quick.theta - quick.average).max() > 1e-3


def test_rows_of_weight_0_are_not_used():
    rows, targets = problem()
    weight = targets.weight.copy()
    weight[25:] = 0
    own = copy.copy(targets)
    object.__setattr__(own, "weight", weight)
    loss_set = LossSet(get_losses(THREE), 3)
    begin = Climber.start(rows.layout, np.random.SeedSequence(0))
    one = begin.climbed(rows, own, loss_set, PLAN, 0)
    spoilt = rows.X.copy()
    spoilt[25:] = np.nan
    other = begin.climbed(WideRows(spoilt, rows.layout), own, loss_set, PLAN, 0)
    assert_array_equal(one.theta, other.theta)
    assert one.epoch == 1 and np.isfinite(one.losses).all()
