"""Sums of statistics and smoothed gradients of members equal the compiled ones."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from clml.engine._batch_sums import batch_sums
from clml.engine._member_rows import MemberLabels
from clml.engine._smooth_rows import Prices, smoothed_gradient
from clml.engine._step_rows import StepRows
from clml.losses import (
    LossSet,
    RowTargets,
    StatisticWeights,
    Totals,
    get_loss,
    get_losses,
    list_losses,
)
from clml.losses import smoothed_gradient as compiled_gradient

ADDITIVE = [name for name in list_losses() if get_loss(name).additive]
ALL = [name for name in ADDITIVE if not name.startswith("precision_at_")]
MEMORY = 2**29


def losses_of(n_labels):
    return [*ALL, *(f"precision_at_{k}" for k in range(1, min(n_labels, 3) + 1))]


def problem(n_labels, seed=0, n=40):
    """Rows of all kinds: without labels, with all, tied, of weight 0, infinite."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, n_labels)) < 0.4).astype(int)
    Y[0], Y[1] = 0, 1
    weight = rng.random(n)
    weight[2] = 0
    targets = RowTargets.from_indicator(Y, weight)
    rows = np.stack([rng.permutation(n)[:25] for _ in range(3)])
    rows[:, :6] = np.arange(6)
    scores = rng.normal(size=(3, 25, n_labels)).astype(np.float32)
    scores[:, 10:15] = scores[:, 10:15].round()  # ties, also with the threshold
    scores[0, 3, 0], scores[1, 4, -1] = np.inf, -np.inf
    scores[:, 5] *= 100
    return targets, rows, scores


def labels_of(targets, rows):
    labels = MemberLabels.put(targets, torch.device("cpu"))
    return labels.batch(torch.as_tensor(rows), torch.as_tensor(targets.weight[rows]))


def random_prices(loss_set, rng, n_members=3):
    """Statistics that no loss needs have none."""
    empty = loss_set.new_totals(n_members)
    counted = loss_set.statistics(empty, 1.0).sums
    empty.columns[:] = rng.normal(size=empty.columns.shape)
    columns = np.zeros_like(empty.columns)
    for name, column in counted.items():
        if column.ndim == 1:
            at = np.flatnonzero((empty.columns == column[:, None]).all(axis=0))
            columns[:, at] = empty.columns[:, at]
            assert len(at) == 1, name
    labels = rng.normal(size=(n_members, 3, loss_set.n_labels))
    return columns, labels if empty.labels.size else np.zeros_like(labels)


def both(names, n_labels, sigma=0.5, seed=0, memory=MEMORY, threshold=0.0, scores=None):
    """Return gradients and sums, of the device and of the compiled kernels."""
    targets, rows, drawn = problem(n_labels, seed)
    scores = drawn if scores is None else scores(drawn)
    loss_set = LossSet(get_losses(names), n_labels, threshold)
    columns, labels = random_prices(loss_set, np.random.default_rng(seed + 1))
    prices = Prices(torch.as_tensor(columns), torch.as_tensor(labels))
    step = StepRows(torch.as_tensor(scores), labels_of(targets, rows), memory)
    sums = [part.numpy() for part in batch_sums(step, loss_set)]
    sums = [
        loss_set.statistics(Totals(*(part[m : m + 1] for part in sums), {}), 1.0).sums
        for m in range(len(rows))
    ]
    gradient = smoothed_gradient(step, sigma, prices, loss_set).numpy()
    known = [
        compiled_gradient(
            scores[m],
            targets,
            rows[m],
            sigma,
            StatisticWeights(columns[m], labels[m]),
            loss_set,
        )
        for m in range(len(rows))
    ]
    known = [(g, loss_set.statistics(t, 1.0).sums) for g, t in known]
    return (gradient, sums), known


def assert_equal_sums(sums, known):
    for found, (_, expected) in zip(sums, known, strict=True):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert_allclose(found[name], value, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("n_labels", [1, 2, 5, 19])
@pytest.mark.parametrize("name", ALL)
def test_each_loss(name, n_labels):
    (gradient, sums), known = both((name,), n_labels)
    assert_equal_sums(sums, known)
    for m, (expected, _) in enumerate(known):
        assert_allclose(gradient[m], expected, rtol=1e-4, atol=3e-6)
    # Of the rank of a single label there is none.
    assert gradient.any() or n_labels == 1


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_hits_among_the_highest(k):
    (gradient, sums), known = both((f"precision_at_{k}",), 5)
    assert_equal_sums(sums, known)
    for m, (expected, _) in enumerate(known):
        assert_allclose(gradient[m], expected, rtol=1e-4, atol=3e-6)


@pytest.mark.parametrize("sigma", [0.05, 0.5, 3.0])
@pytest.mark.parametrize("threshold", [0.0, 0.3])
def test_all_losses_together(sigma, threshold):
    (gradient, sums), known = both(losses_of(6), 6, sigma, threshold=threshold)
    assert_equal_sums(sums, known)
    for m, (expected, _) in enumerate(known):
        # Float32 sums of many terms, of which the largest are as large as 1 / σ.
        assert_allclose(gradient[m], expected, rtol=1e-3, atol=1e-5 / min(sigma, 1))


@pytest.mark.parametrize("memory", [1, 4_000, 40_000])
def test_blocks_change_nothing(memory):
    names = losses_of(7)
    (gradient, sums), _ = both(names, 7)
    (other, other_sums), _ = both(names, 7, memory=memory)
    assert_array_equal(gradient, other)
    for one, two in zip(sums, other_sums, strict=True):
        for name, value in one.items():
            assert_array_equal(value, two[name])


def test_rows_with_nan():
    def spoilt(scores):
        scores[0, 2, 1] = np.nan  # of weight 0
        scores[1, 7, 0] = np.nan
        return scores

    (gradient, sums), known = both(losses_of(4), 4, scores=spoilt)
    assert np.isfinite(gradient).all()
    assert not gradient[1, 7].any()
    assert_equal_sums(sums, known)
    for m, found in enumerate(sums):
        assert all(np.isnan(value).all() == (m == 1) for value in found.values())
    for m, (expected, _) in enumerate(known):
        assert_allclose(gradient[m], expected, rtol=1e-3, atol=2e-5)


def test_rows_of_weight_0_have_no_gradient():
    targets, rows, _ = problem(4)
    (gradient, _), _ = both(losses_of(4), 4)
    assert_array_equal(gradient.any(axis=2), targets.weight[rows] > 0)
