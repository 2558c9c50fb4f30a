import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clml.losses import (
    LossSet,
    RowTargets,
    Statistics,
    get_loss,
    get_losses,
    list_losses,
    loss_values,
)

ADDITIVE = tuple(name for name in list_losses() if get_loss(name).additive)


def make(n, n_labels=6, population=3, seed=0):
    rng = np.random.default_rng(seed)
    Y = rng.integers(0, 2, (n, n_labels))
    scores = rng.integers(-3, 4, (population, n, n_labels)).astype(float)
    return Y, scores, rng.random(n)


def statistics_of(loss_set, Y, scores, weight):
    targets = RowTargets.from_indicator(Y, weight)
    totals = loss_set.new_totals(len(scores))
    loss_set.accumulate(totals, np.ascontiguousarray(scores), targets)
    return loss_set.statistics(totals, float(targets.weight.sum()))


@settings(deadline=None, max_examples=50)
@given(
    n=st.integers(2, 30),
    share=st.floats(0, 1),
    seed=st.integers(0, 99),
    weighted=st.booleans(),
)
def test_statistics_of_halves_add_up(n, share, seed, weighted):
    Y, scores, weight = make(n, seed=seed)
    weight = weight if weighted else np.ones(n)
    cut = round(share * n)
    loss_set = LossSet(get_losses(ADDITIVE), 6)
    whole = statistics_of(loss_set, Y, scores, weight)
    halves = [
        statistics_of(loss_set, Y[part], scores[:, part], weight[part])
        for part in (slice(0, cut), slice(cut, n))
    ]
    together = halves[0] + halves[1]
    assert together.weight == pytest.approx(whole.weight)
    assert together.sums.keys() == whole.sums.keys()
    for name, total in whole.sums.items():
        np.testing.assert_allclose(together.sums[name], total, 1e-12, err_msg=name)
    np.testing.assert_allclose(
        loss_set.close(together),
        loss_values(Y, scores, losses=ADDITIVE, sample_weight=weight),
        rtol=1e-11,
        atol=1e-12,
    )


def test_adding_leaves_both_halves_alone():
    a = Statistics(1.0, {"wrong": np.array([1.0, 2.0])})
    b = Statistics(2.0, {"wrong": np.array([10.0, 20.0])})
    total = a + b
    assert total.weight == 3.0
    np.testing.assert_array_equal(total.sums["wrong"], [11, 22])
    np.testing.assert_array_equal(a.sums["wrong"], [1, 2])
    np.testing.assert_array_equal(b.sums["wrong"], [10, 20])


@pytest.mark.parametrize("which", [0, 1])
def test_losses_that_are_no_sums_do_not_add(which):
    parts = [Statistics(1.0, {}), Statistics(1.0, {})]
    parts[which].matrix_losses["macro_auc"] = np.zeros(2)
    with pytest.raises(ValueError, match=r"cannot add: \['macro_auc'\]"):
        parts[0] + parts[1]


def test_order_of_the_columns_is_that_of_the_losses():
    Y, scores, _ = make(12)
    names = ("macro_auc", "hamming", "precision_at_3", "precision_at_2", "macro_f1")
    loss_set = LossSet(get_losses(names), 6)
    assert loss_set.names == names
    assert [loss.name for loss in loss_set.matrix_losses] == ["macro_auc"]
    together = loss_values(Y, scores, losses=names)
    alone = [loss_values(Y, scores, losses=(name,))[:, 0] for name in names]
    np.testing.assert_array_equal(together, np.stack(alone, axis=1))
    backwards = loss_values(Y, scores, losses=names[::-1])
    np.testing.assert_array_equal(backwards, together[:, ::-1])


def test_only_what_the_losses_need_is_named():
    loss_set = LossSet(get_losses(("micro_f1", "precision_at_2")), 6)
    Y, scores, weight = make(4)
    found = statistics_of(loss_set, Y, scores, weight)
    assert set(found.sums) == {"hits", "predicted", "relevant", "top_hits_2"}
    assert found.matrix_losses == {}


def test_an_empty_population():
    Y, scores, _ = make(4)
    assert loss_values(Y, scores[:0], losses=ADDITIVE).shape == (0, len(ADDITIVE))
    assert loss_values(Y, scores[:0], losses=("macro_auc",)).shape == (0, 1)


def test_check_happens_before_any_row_is_seen():
    with pytest.raises(ValueError, match=r"'precision_at_3' needs at least 3 labels"):
        LossSet(get_losses(("precision_at_3",)), 2)
