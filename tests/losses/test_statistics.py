from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clml.losses import STATISTICS, Statistic, list_losses, loss_values
from clml.losses.statistics import LABEL_STATISTICS, SCALAR_STATISTICS, top_hits


def worst_order(labels, scores, value):
    """Largest value over every order of the labels that the scores allow."""
    orders = permutations(range(len(labels)))
    allowed = [
        order
        for order in orders
        if all(scores[a] >= scores[b] for a, b in pairwise(order))
    ]
    return max(value([labels[i] for i in order]) for order in allowed)


@st.composite
def rows(draw):
    k = draw(st.integers(1, 5))
    labels = draw(st.lists(st.integers(0, 1), min_size=k, max_size=k))
    scores = draw(st.lists(st.integers(-1, 1), min_size=k, max_size=k))
    return labels, scores


@settings(deadline=None, max_examples=150)
@given(row=rows())
def test_ties_are_broken_against(row):
    labels, scores = row
    k = len(labels)
    losses = ["one_error", *(f"precision_at_{top}" for top in range(1, k + 1))]
    expected = [worst_order(labels, scores, lambda best: 1 - best[0])]
    for top in range(1, k + 1):
        missed = worst_order(labels, scores, lambda best, t=top: t - sum(best[:t]))
        expected.append(missed / top)
    scores = np.array([scores], dtype=float)
    np.testing.assert_allclose(
        loss_values([labels], scores, losses=losses), expected, atol=1e-15
    )
    Y = np.array([labels], dtype=bool)
    one_error = STATISTICS["one_error"].define(Y, scores[None], 0.0)
    assert one_error == [[expected[0]]]
    for top in range(1, k + 1):
        hits = top_hits(top).define(Y, scores[None], 0.0)
        assert 1 - hits[0, 0] / top == pytest.approx(expected[top])


def test_one_error_is_a_miss_at_the_first_place():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (40, 6))
    scores = rng.integers(-2, 2, (40, 6)).astype(float)
    one_error, miss = loss_values(Y, scores, losses=("one_error", "precision_at_1"))
    assert one_error == pytest.approx(miss)
    assert 0 < one_error < 1


@pytest.mark.parametrize("statistic", [*STATISTICS.values(), top_hits(2)])
def test_definitions_treat_each_row_on_its_own(statistic):
    rng = np.random.default_rng(1)
    Y = rng.integers(0, 2, (7, 4)).astype(bool)
    scores = rng.integers(-2, 2, (3, 7, 4)).astype(float)
    whole = statistic.define(Y, scores, 0.0)
    assert whole.shape == (scores.shape if statistic.per_label else scores.shape[:2])
    order = rng.permutation(7)
    shuffled = statistic.define(Y[order], scores[:, order], 0.0)
    np.testing.assert_allclose(shuffled, whole[:, order])
    for i in range(7):
        alone = statistic.define(Y[i : i + 1], scores[:, i : i + 1], 0.0)
        np.testing.assert_allclose(alone, whole[:, i : i + 1])


def test_names_are_the_keys():
    assert [s.name for s in SCALAR_STATISTICS + LABEL_STATISTICS] == list(STATISTICS)
    assert not any(s.per_label for s in SCALAR_STATISTICS)
    assert all(s.per_label for s in LABEL_STATISTICS)
    assert top_hits(7).name == "top_hits_7"
    assert "top_hits_1" not in STATISTICS
    assert "precision_at_1" in list_losses()


def test_a_statistic_is_a_value():
    statistic = STATISTICS["wrong"]
    with pytest.raises(AttributeError):
        statistic.name = "right"
    assert statistic == Statistic("wrong", statistic.define)
