"""Members on their way: what one step does, and what an epoch may depend on."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from clml._training.adam import Adam
from clml._training.ascent import AscentState, _blended, after_epoch
from clml._training.steps import AscentPlan
from clml._training.training_rows import NetworkRows, _masks
from clml.losses import (
    LossSet,
    RowTargets,
    Totals,
    get_losses,
    loss_values,
    measure_gradient,
    output_gradient,
)
from clml.network import Layout, Scaling, backward_pass, forward, forward_pass

LAYOUT = Layout(n_features=5, n_labels=3, embedding_dim=4)
PLAN = AscentPlan(learning_rate=0.05, n_epochs=10, batch_size=8, smoothing=0.5)
ONE_BATCH = replace(PLAN, batch_size=100)


@pytest.fixture
def loss_set():
    return LossSet(get_losses(("hamming", "lrap", "micro_f1")), 3)


@pytest.fixture
def data():
    """Rows, their targets: 40 rows whose labels are signs of features."""
    X = np.random.default_rng(0).normal(size=(40, 5))
    rows = NetworkRows.prepared(X, Scaling.identity(5), LAYOUT)
    return rows, RowTargets.from_indicator(X[:, :3] > 0)


def start(seed=0):
    return AscentState.start(LAYOUT, np.random.SeedSequence(seed))


def arrays_of(climber):
    adam = climber.adam
    return climber.theta, climber.average, adam.first, adam.second


def test_rate_falls_along_a_half_cosine():
    assert PLAN.rate(0) == 0.05
    assert PLAN.rate(0.5) == pytest.approx(0.025)
    assert PLAN.rate(1) == PLAN.rate(2.5) == 0


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_logits_are_those_of_the_forward_pass(form):
    X = np.random.default_rng(1).normal(2.0, 3.0, size=(11, 5)) * (np.arange(5) > 1)
    scaling = Scaling.fit(X)
    rows = NetworkRows.prepared(form(X), scaling, LAYOUT)
    theta = start().theta
    expected = forward(theta.astype(np.float64), X, LAYOUT, scaling)
    for block in (4, 11, 4096):
        assert_allclose(rows.logits(theta, block=block), expected, 1e-4, 1e-5)


def test_rows_beyond_float32_are_refused():
    X = np.full((2, 5), 1e40)
    with pytest.raises(ValueError, match=r"stay finite .* float32, got .* 1e\+40"):
        NetworkRows.prepared(X, Scaling.identity(5), LAYOUT)


def test_start_is_uniform_by_the_number_of_inputs():
    layout = Layout(n_features=99, n_labels=30, embedding_dim=50)
    theta = AscentState.start(layout, np.random.SeedSequence(3)).theta
    assert theta.dtype == np.float32
    for matrix in layout.matrices(theta):
        bound = matrix.shape[0] ** -0.5
        assert np.abs(matrix).max() <= bound
        assert matrix.std() == pytest.approx(bound / 3**0.5, rel=0.1)
    assert (start(0).theta != start(1).theta).all()


def one_epoch(climber, rows, targets, loss_set, plan, begun):
    (after,) = after_epoch([climber], rows, [targets], loss_set, plan, begun)
    return after


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_an_epoch_changes_nothing_it_was_given(data, loss_set, dropout):
    climber = one_epoch(start(), *data, loss_set, PLAN, 0)
    before = copy.deepcopy(climber)
    after = one_epoch(climber, *data, loss_set, replace(PLAN, dropout=dropout), 0)
    for name, old, new in zip(
        ("theta", "average", "first", "second"),
        arrays_of(before),
        arrays_of(climber),
        strict=True,
    ):
        assert_array_equal(old, new, err_msg=name)
    assert climber.generator == before.generator != after.generator
    assert climber.adam.n_steps == before.adam.n_steps < after.adam.n_steps
    assert_array_equal(climber.sums.columns, before.sums.columns)
    assert (climber.epoch, after.epoch) == (1, 2)
    assert (after.theta != climber.theta).any()


def test_an_epoch_depends_on_the_generator_it_holds_alone(data, loss_set):
    climber = start()
    one, two = (one_epoch(climber, *data, loss_set, PLAN, 0) for _ in range(2))
    for a, b in zip(arrays_of(one), arrays_of(two), strict=True):
        assert_array_equal(a, b)
    other = replace(climber, generator=start(1).generator)
    assert (one_epoch(other, *data, loss_set, PLAN, 0).theta != one.theta).any()


def first_credit(climber, rows, targets, loss_set, plan):
    """What the first step of one batch of all rows follows, written out."""
    generator = np.random.default_rng()
    generator.bit_generator.state = climber.generator
    batch = generator.permutation(len(targets.dense))
    logits, cache = forward_pass(climber.theta, rows.X[batch], rows.layout)
    draws = np.abs(generator.standard_normal(logits.shape, dtype=np.float32))
    totals = loss_set.new_totals(1)
    loss_set.accumulate(totals, logits[None], targets.take(batch))
    n = float(len(batch))
    shares = Totals(totals.columns / n, totals.labels / n, {})
    credit, _ = output_gradient(
        logits,
        targets,
        batch,
        np.float32(plan.smoothing) * draws,
        (draws / np.float32(2 * plan.smoothing)).astype(np.float32),
        measure_gradient(loss_set, shares, 1.0),
        loss_set,
    )
    return batch, credit, cache


def test_a_step_is_the_credit_through_the_network(data, loss_set):
    rows, targets = data
    climber = start()
    batch, credit, cache = first_credit(climber, rows, targets, loss_set, ONE_BATCH)
    gradient = backward_pass(credit / np.float32(len(batch)), cache)
    # The direction is the derivative of the credited outputs, by differences too.
    theta = climber.theta.astype(np.float64)
    X = rows.X[batch].astype(np.float64)
    for direction in np.random.default_rng(0).normal(size=(5, LAYOUT.size)):
        up, down = (forward(theta + s * direction, X, LAYOUT) for s in (1e-5, -1e-5))
        slope = (credit * (up - down)).sum() / 2e-5 / len(batch)
        assert gradient @ direction == pytest.approx(slope, rel=1e-3, abs=1e-5)
    expected = climber.theta.copy()
    Adam(LAYOUT.size, maximize=True).step(expected, gradient, 0.05)
    after = one_epoch(climber, rows, targets, loss_set, ONE_BATCH, 0)
    assert after.adam.n_steps == 1
    # A tenth of the gradient: the step itself would not show a wrong size.
    assert_allclose(after.adam.first, gradient / 10, rtol=1e-3, atol=1e-7)
    assert_allclose(after.theta, expected, rtol=0, atol=1e-6)
    keep = 1 / 11
    average = keep * climber.theta + (1 - keep) * expected
    assert_allclose(after.average, average, rtol=0, atol=1e-6)
    # Of the rows while they went by: before the one step.
    seen = loss_values(targets.dense, rows.logits(climber.theta))
    assert_allclose(after.losses, seen, atol=1e-6)


def test_a_surrogate_step_descends_the_cross_entropy(data, loss_set):
    rows, targets = data
    targets = replace(targets, weight=np.linspace(1, 2, 40), weighted=True)
    climber = start()
    plan = replace(ONE_BATCH, surrogate_epochs=1)
    logits, cache = forward_pass(climber.theta, rows.X, LAYOUT)
    slope = targets.weight[:, None] * (targets.dense - expit(logits)) / 40
    expected = climber.theta.copy()
    gradient = backward_pass(slope.astype(np.float32), cache)
    Adam(LAYOUT.size, maximize=True).step(expected, gradient, 0.05)
    after = one_epoch(climber, rows, targets, loss_set, plan, 0)
    # The size of a first step is the rate, where the slope is more than rounding.
    clear = np.abs(gradient) > 1e-5
    assert_allclose(after.theta[clear], expected[clear], rtol=0, atol=1e-4)
    assert clear.mean() > 0.9


def test_the_plan_counts_from_where_it_began(data, loss_set):
    climber = replace(start(), epoch=7)
    plan = replace(ONE_BATCH, n_epochs=2)
    later = one_epoch(climber, *data, loss_set, plan, 7)
    first = one_epoch(replace(climber, epoch=0), *data, loss_set, plan, 0)
    assert_array_equal(later.theta, first.theta)
    over = one_epoch(climber, *data, loss_set, plan, 5)
    assert_array_equal(over.theta, climber.theta)  # the rate has fallen to 0


def test_rows_of_weight_zero_are_as_if_absent(data, loss_set):
    rows, targets = data
    weight = np.where(np.arange(40) % 4 == 0, 0.0, 1.0)
    own = replace(targets, weight=weight, weighted=True)
    expected = one_epoch(start(), rows, own, loss_set, PLAN, 0)
    other = rows.X.copy()
    other[weight == 0] = 1e3
    flipped = replace(
        RowTargets.from_indicator(np.where(weight[:, None], targets.dense, 1)),
        weight=weight,
        weighted=True,
    )
    found = one_epoch(start(), replace(rows, X=other), flipped, loss_set, PLAN, 0)
    used = np.flatnonzero(weight)
    alone = one_epoch(
        start(), replace(rows, X=rows.X[used]), targets.take(used), loss_set, PLAN, 0
    )
    for twin in (found, alone):
        assert_array_equal(twin.theta, expected.theta)
        assert_array_equal(twin.losses, expected.losses)


def test_sparse_rows_climb_as_dense_ones(loss_set):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 5)) * (rng.random((30, 5)) < 0.5)
    targets = RowTargets.from_indicator(X[:, :3] > 0)
    scaling = Scaling.fit(X)
    thetas = []
    for form in (np.asarray, sp.csr_array):
        rows = NetworkRows.prepared(form(X), scaling, LAYOUT)
        # Smooth losses: the others jump where rounding decides.
        climber = one_epoch(
            start(), rows, targets, loss_set, replace(PLAN, surrogate_epochs=1), 0
        )
        thetas.append(climber.theta)
    assert_allclose(*thetas, rtol=0, atol=2e-3)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("surrogate_epochs", [0, 5])
def test_it_learns_what_can_be_learnt(data, loss_set, dropout, surrogate_epochs):
    rows, targets = data
    wide = replace(LAYOUT, embedding_dim=16)
    rows = replace(rows, layout=wide)
    plan = AscentPlan(
        learning_rate=0.02,
        n_epochs=60,
        batch_size=8,
        smoothing=0.5,
        dropout=dropout,
        surrogate_epochs=surrogate_epochs,
    )
    climber = AscentState.start(wide, np.random.SeedSequence(0))
    first = loss_values(targets.dense, rows.logits(climber.theta))
    for _ in range(60):
        climber = one_epoch(climber, rows, targets, loss_set, plan, 0)
        assert np.isfinite(climber.theta).all()
    found = loss_values(targets.dense, rows.logits(climber.average))
    assert (first > 0.2).all()
    assert (found < 0.1).all()


def test_running_sums_by_hand():
    batch = Totals(np.array([[4.0, 8.0]]), np.array([[[2.0]]]), {})
    first = _blended(None, batch, np.array([4.0]))
    assert_array_equal(first.columns, [[1.0, 2.0]])
    assert_array_equal(first.labels, [[[0.5]]])
    second = _blended(first, batch, np.array([2.0]))
    assert_allclose(second.columns, [[0.9 * 1 + 0.1 * 2, 0.9 * 2 + 0.1 * 4]])
    assert_allclose(second.labels, [[[0.9 * 0.5 + 0.1 * 1]]])


def test_masks_keep_the_mean():
    layout = Layout(n_features=2, n_labels=2, embedding_dim=50, n_layers=2)
    generator = np.random.default_rng(0)
    assert _masks(0.0, 7, layout, generator) is None
    masks = _masks(0.25, 400, layout, generator)
    assert [mask.shape for mask in masks] == [(400, 50)] * 3
    for mask in masks:
        assert mask.dtype == np.float32
        assert set(np.unique(mask)) == {0, np.float32(1 / 0.75)}
        assert mask.mean() == pytest.approx(1, abs=0.03)
