"""Prices of all members at once equal those of each."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from clml.engine import _member_prices
from clml.engine._member_prices import known_on_device, member_prices
from clml.losses import (
    Loss,
    LossSet,
    RowTargets,
    Totals,
    get_loss,
    get_losses,
    list_losses,
    measure_gradient,
)

ADDITIVE = [name for name in list_losses() if get_loss(name).additive]


class MissRate(Loss):
    name = "miss_rate"
    statistics = ("hits", "relevant")

    def close(self, sums, weight, n_labels):
        missed = sums["relevant"] - sums["hits"]
        return missed / np.maximum(sums["relevant"], 1e-12)


class Strict(type(get_loss("hamming"))):
    """A built-in loss whose formula somebody changed."""

    name = "strict"

    def close(self, sums, weight, n_labels):
        return super().close(sums, weight, n_labels) ** 0.5


def sums_of(loss_set, quality, seed=0):
    """Return sums of a row of weight 1, for scores that are as good as said."""
    rng = np.random.default_rng(seed)
    Y = rng.integers(0, 2, size=(30, loss_set.n_labels))
    Y[:, -1] = 0  # a label that nobody has
    noise = rng.normal(size=(len(quality), *Y.shape))
    scores = np.array(quality)[:, None, None] * (2 * Y - 1) + noise
    totals = loss_set.new_totals(len(quality))
    loss_set.accumulate(totals, scores, RowTargets.from_indicator(Y))
    return totals.columns / len(Y), totals.labels / len(Y)


def assert_same_prices(loss_set, columns, labels):
    found = member_prices(loss_set, torch.tensor(columns), torch.tensor(labels))
    for m in range(len(columns)):
        one = Totals(columns[m : m + 1], labels[m : m + 1], {})
        known = measure_gradient(loss_set, one, 1.0)
        assert_allclose(found.columns[m].numpy(), known.columns, rtol=1e-6, atol=1e-9)
        if labels.size:
            known = known.labels
            assert_allclose(found.labels[m].numpy(), known, rtol=1e-6, atol=1e-9)
        else:
            assert found.labels is None


@pytest.mark.parametrize("names", [*((n,) for n in ADDITIVE), tuple(ADDITIVE)], ids=str)
def test_equals_those_of_each(names):
    loss_set = LossSet(get_losses(names), 6)
    assert all(known_on_device(loss) for loss in loss_set.losses)
    # Without a mistake, and with nothing else, formulas are cut off.
    assert_same_prices(loss_set, *sums_of(loss_set, [0.0, 1.0, 100.0, -100.0]))


def test_sums_of_nothing_and_undefined_ones():
    loss_set = LossSet(get_losses(ADDITIVE), 6)
    empty = loss_set.new_totals(2)
    assert_same_prices(loss_set, empty.columns, empty.labels)
    columns, labels = sums_of(loss_set, [0.5, 0.5])
    columns[1], labels[1] = np.nan, np.nan
    found = member_prices(loss_set, torch.tensor(columns), torch.tensor(labels))
    assert found.columns[0].any()
    assert not found.columns[1].any()
    assert not found.labels[1].any()


@pytest.mark.parametrize("own", [MissRate(), Strict()])
def test_closing_formulas_of_a_user(own):
    """They are NumPy's, and the sums go there."""
    assert not known_on_device(own)
    loss_set = LossSet(get_losses(("hamming", own, "macro_f1")), 4)
    assert_same_prices(loss_set, *sums_of(loss_set, [0.3, 1.0]))
    loss_set = LossSet(get_losses((own,)), 4)
    assert_same_prices(loss_set, *sums_of(loss_set, [0.3, 1.0]))


def test_built_in_formulas_stay_on_the_device(monkeypatch):
    monkeypatch.setattr(_member_prices, "_prices_of_host", None)
    loss_set = LossSet(get_losses(("hamming", "lrap", "micro_f1")), 4)
    assert_same_prices(loss_set, *sums_of(loss_set, [0.3]))
