import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from clml.losses import LossSet, RowTargets, get_loss, get_losses, list_losses
from clml.losses import loss_values as loss_values_of

ADDITIVE = [name for name in list_losses() if get_loss(name).additive]


def by_kernel(loss_set, scores, targets):
    totals = loss_set.new_totals(len(scores))
    loss_set.accumulate(totals, scores, targets)
    return loss_set.statistics(totals, float(targets.weight.sum()))


def assert_same_statistics(found, expected, rtol=1e-12):
    assert found.sums.keys() == expected.sums.keys()
    assert found.weight == expected.weight
    for name, total in expected.sums.items():
        assert found.sums[name].shape == total.shape, name
        assert_allclose(found.sums[name], total, rtol, 1e-12, err_msg=name)


def losses_for(n_labels):
    """Every registered additive loss that so few labels allow, and some more k."""
    more = [f"precision_at_{k}" for k in range(1, n_labels + 1)]
    fixed = [n for n in ADDITIVE if not n.startswith("precision_at_")]
    return get_losses(fixed + more)


@st.composite
def tables(draw):
    """Targets with empty and full rows, a population of tied scores, a threshold."""
    p, n, k = (draw(st.integers(1, most)) for most in (3, 12, 8))
    labels = draw(arrays(np.uint8, (n, k), elements=st.integers(0, 1)))
    kinds = draw(st.lists(st.sampled_from("as is|empty|full".split("|")), max_size=n))
    for i, kind in enumerate(kinds):
        labels[i] = {"as is": labels[i], "empty": 0, "full": 1}[kind]
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    scores = draw(arrays(np.int8, (p, n, k), elements=st.integers(-3, 3)))
    weight = draw(st.none() | arrays(np.int8, n, elements=st.integers(0, 4)))
    targets = RowTargets.from_indicator(labels, None if weight is None else weight / 2)
    threshold = draw(st.sampled_from([0.0, 1.0, -2.5, 7.0]))
    return targets, scores.astype(dtype), threshold


@settings(deadline=None, max_examples=200)
@given(table=tables())
def test_kernels_equal_the_definitions(table):
    targets, scores, threshold = table
    loss_set = LossSet(losses_for(targets.n_labels), targets.n_labels, threshold)
    found = by_kernel(loss_set, scores, targets)
    assert_same_statistics(found, loss_set.accumulate_plain(scores, targets))


@pytest.mark.parametrize("name", ADDITIVE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_loss_alone(name, dtype):
    # What a loss needs is computed for it alone, not because another one asked.
    rng = np.random.default_rng(1)
    targets = RowTargets.from_indicator(rng.integers(0, 2, (30, 6)), rng.random(30))
    scores = rng.normal(size=(4, 30, 6)).round(1).astype(dtype)
    loss_set = LossSet(get_losses((name,)), 6)
    found = by_kernel(loss_set, scores, targets)
    plain = loss_set.accumulate_plain(scores, targets)
    assert_same_statistics(found, plain)
    assert all(np.asarray(total).any() for total in found.sums.values())
    assert_allclose(loss_set.close(found), loss_set.close(plain), 1e-12)


@pytest.mark.parametrize("n_labels", [33, 200])
def test_many_labels(n_labels):
    rng = np.random.default_rng(2)
    targets = RowTargets.from_indicator(rng.random((5, n_labels)) < 0.3)
    scores = rng.integers(-9, 9, (2, 5, n_labels)).astype(np.float32)
    loss_set = LossSet(
        get_losses([*ADDITIVE, "precision_at_2", f"precision_at_{n_labels}"]), n_labels
    )
    found = by_kernel(loss_set, scores, targets)
    assert_same_statistics(found, loss_set.accumulate_plain(scores, targets))


RANKED = ("hamming", "micro_f1", "macro_f1", "example_f1", "jaccard", "lrap")
RANKED += ("coverage", "ranking_loss", "one_error", "precision_at_1", "precision_at_2")


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_infinite_scores_are_only_very_large(data):
    n, k = data.draw(st.integers(1, 5)), data.draw(st.integers(2, 5))
    labels = data.draw(arrays(np.uint8, (n, k), elements=st.integers(0, 1)))
    large = data.draw(
        arrays(np.float64, (n, k), elements=st.sampled_from([-9.0, -1, 0, 1, 9]))
    )
    infinite = np.where(np.abs(large) == 9, np.copysign(np.inf, large), large)
    expected = loss_values_of(labels, large, losses=RANKED)
    assert_array_equal(loss_values_of(labels, infinite, losses=RANKED), expected)
    loss_set = LossSet(get_losses(RANKED), k)
    targets = RowTargets.from_indicator(labels)
    plain = loss_set.accumulate_plain(infinite[None], targets)
    assert_allclose(loss_set.close(plain)[0], expected, 1e-12, 1e-14)


@pytest.mark.parametrize(
    ("labels", "scores", "cross_entropy", "row_log_loss"),
    [
        # p = (1, 1/2): −ln(1)−ln(1/2) over 2 labels; −ln(1/1.5).
        ([1, 0], [np.inf, 0.0], np.log(2) / 2, np.log(1.5)),
        ([1, 0], [0.0, -np.inf], np.log(2) / 2, 0.0),
        ([1, 1], [np.inf, np.inf], 0.0, 2 * np.log(2)),
        ([0, 0], [-np.inf, 0.0], np.log(2) / 2, 0.0),
        # Certain and wrong.
        ([0, 1], [np.inf, 0.0], np.inf, np.log(3)),
        ([1, 0], [-np.inf, 0.0], np.inf, np.inf),
        # Finite, but beyond what ln(1 + e^z) − z keeps of its neighbours.
        ([1, 0], [1e17, 0.0], np.log(2) / 2, np.log(1.5)),
        ([1, 0], [0.0, -1e17], np.log(2) / 2, 0.0),
        ([1, 0], [3e38, 0.0], np.log(2) / 2, np.log(1.5)),
    ],
)
def test_cross_entropies_of_extreme_scores(labels, scores, cross_entropy, row_log_loss):
    losses = get_losses(("binary_cross_entropy", "row_log_loss"))
    loss_set = LossSet(losses, len(labels))
    targets = RowTargets.from_indicator([labels])
    scores = np.array([[scores]])
    expected = [[cross_entropy, row_log_loss]]
    plain = loss_set.accumulate_plain(scores, targets)
    assert_allclose(loss_set.close(plain), expected, 1e-12, 1e-15, err_msg="plain")
    found = by_kernel(loss_set, scores, targets)
    assert_allclose(loss_set.close(found), expected, 1e-12, 1e-15, err_msg="kernel")


@settings(deadline=None, max_examples=60)
@given(table=tables(), data=st.data())
def test_a_nan_score_spoils_its_candidate_alone(table, data):
    targets, scores, threshold = table
    loss_set = LossSet(losses_for(targets.n_labels), targets.n_labels, threshold)
    before = by_kernel(loss_set, scores, targets)
    where = tuple(data.draw(st.integers(0, size - 1)) for size in scores.shape)
    spoiled = scores.copy()
    spoiled[where] = np.nan
    after = by_kernel(loss_set, spoiled, targets)
    # The twin divides by the rank of a NaN, which is 0.
    with np.errstate(invalid="ignore"):
        plain = loss_set.accumulate_plain(spoiled, targets)
    others = np.arange(len(scores)) != where[0]
    if targets.weight[where[1]] == 0:  # as if the row were absent
        for name, total in after.sums.items():
            assert_array_equal(total, before.sums[name], err_msg=name)
        return
    for name, total in after.sums.items():
        assert np.isnan(total[where[0]]).all(), name
        assert np.isnan(plain.sums[name][where[0]]).all(), name
        assert_array_equal(total[others], before.sums[name][others], err_msg=name)


def test_blocks_of_rows_add_up():
    rng = np.random.default_rng(3)
    targets = RowTargets.from_indicator(rng.integers(0, 2, (20, 5)), rng.random(20))
    scores = rng.normal(size=(3, 20, 5))
    loss_set = LossSet(losses_for(5), 5)
    totals = loss_set.new_totals(3)
    for start, stop in ((0, 1), (1, 8), (8, 20)):
        block = np.ascontiguousarray(scores[:, start:stop])
        loss_set.accumulate(totals, block, targets, start)
    found = loss_set.statistics(totals, float(targets.weight.sum()))
    # Row after row, whatever the blocks: not a bit differs.
    whole = by_kernel(loss_set, scores, targets)
    for name, total in whole.sums.items():
        assert_array_equal(found.sums[name], total, err_msg=name)


def test_no_ranks_of_the_population_are_kept():
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, (100, 20))
    scores = rng.normal(size=(50, 100, 20)).astype(np.float32)
    losses = [*ADDITIVE, "precision_at_2"]
    loss_values_of(labels, scores, losses=losses)  # compiled
    tracemalloc.start()
    loss_values_of(labels, scores, losses=losses)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < scores.nbytes / 2
