from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import f1_score, label_ranking_average_precision_score

from clml.datasets._bayes_risk import (
    all_label_sets,
    best_micro_f1,
    best_orders,
    expected_lrap,
    hamming_risks,
    micro_f1_parts,
    order_scores,
    pair_expectations,
)
from clml.losses import loss_values


def random_joint(n_rows, n_labels, seed):
    """Joint probabilities without any structure, some of them 0."""
    rng = np.random.default_rng(seed)
    joint = rng.exponential(size=(n_rows, 2**n_labels))
    joint *= rng.uniform(size=joint.shape) < 0.5
    joint[:, 0] += 0.1
    return joint / joint.sum(axis=1, keepdims=True)


def slow_lrap(joint, scores, metric):
    """Expected LRAP of one row: every label set in turn."""
    sets = all_label_sets(len(scores))
    values = [metric(labels[None], scores[None]) for labels in sets]
    return float(joint @ values)


def test_companions_and_a_single_label():
    # Labels 0, 1, 2 come together with probability 0.5, label 3 alone with 0.4, none
    # with 0.1. The marginals say 0, 1, 2 first. But 3 first costs the companions
    # little, (1/2 + 2/3 + 3/4) / 3 instead of 1, and saves the single one 3/4.
    joint = np.zeros((1, 16))
    joint[0, [0b0111, 0b1000, 0]] = 0.5, 0.4, 0.1
    pairs = pair_expectations(joint)
    assert_allclose(pairs[0, 0], [0.5 / 3, 0.5 / 3, 0.5 / 3, 0])
    assert_allclose(pairs[0, 3], [0, 0, 0, 0.4])
    order = best_orders(pairs)
    assert order[0, 0] == 3
    value = expected_lrap(pairs, joint[:, 0], order_scores(order))
    assert_allclose(value, 0.1 + 0.4 + 0.5 * (1 / 2 + 2 / 3 + 3 / 4) / 3)
    by_marginals = np.array([[0.5, 0.49, 0.48, 0.4]])
    assert_allclose(expected_lrap(pairs, joint[:, 0], by_marginals), 0.1 + 0.5 + 0.1)


def test_label_sets_are_binary_digits():
    sets = all_label_sets(5)
    assert_array_equal(sets @ (1 << np.arange(5)), np.arange(32))


@pytest.mark.parametrize("n_labels", [1, 2, 3, 4, 5])
def test_best_order_against_every_order(n_labels):
    joint = random_joint(6, n_labels, seed=n_labels)
    pairs, empty = pair_expectations(joint), joint[:, 0].copy()
    orders = best_orders(pairs)
    assert_array_equal(np.sort(orders, axis=1), [range(n_labels)] * 6)
    every = [
        expected_lrap(pairs, empty, order_scores(np.array([order] * 6)))
        for order in permutations(range(n_labels))
    ]
    found = expected_lrap(pairs, empty, order_scores(orders))
    assert_allclose(found, np.max(every, axis=0), rtol=1e-12)


def ours(labels, scores):
    return 1 - loss_values(labels, scores, ("lrap",))[0]


@pytest.mark.parametrize("metric", [label_ranking_average_precision_score, ours])
@pytest.mark.parametrize("n_labels", [2, 3, 5])
def test_expected_lrap_against_every_label_set(n_labels, metric):
    joint = random_joint(4, n_labels, seed=n_labels)
    # Few different scores: most rows have ties.
    scores = np.random.default_rng(0).integers(3, size=(4, n_labels)).astype(float)
    found = expected_lrap(pair_expectations(joint), joint[:, 0].copy(), scores)
    expected = [slow_lrap(*row, metric) for row in zip(joint, scores, strict=True)]
    assert_allclose(found, expected, rtol=1e-12)


def test_one_label_has_nothing_to_rank():
    joint = np.array([[0.3, 0.7]])
    pairs = pair_expectations(joint)
    assert_allclose(expected_lrap(pairs, joint[:, 0].copy(), np.zeros((1, 1))), 1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", [(1, 5), (2, 4), (3, 3)], ids=str)
def test_best_micro_f1_against_every_prediction(shape, seed):
    # Small marginals too: the threshold must follow the optimum far below 1/2.
    p = np.random.default_rng(seed).uniform(size=shape) ** (1 + seed)
    best = max(
        2 * p.ravel()[list(map(bool, decided))].sum() / (sum(decided) + p.sum())
        for decided in product((0, 1), repeat=p.size)
    )
    assert_allclose(best_micro_f1(p), best, rtol=1e-12)
    hits, size = micro_f1_parts(p, p > best_micro_f1(p) / 2)
    assert_allclose(hits.sum() / size.sum(), best, rtol=1e-12)


@pytest.mark.parametrize(
    ("p", "expected"),
    [([[0.0, 0.0]], 0.0), ([[1.0, 0.0]], 1.0), ([[0.25]], 0.4), ([[1.0, 1.0]], 1.0)],
    ids=["nothing relevant", "certain", "one label", "all relevant"],
)
def test_best_micro_f1_corner_cases(p, expected):
    assert_allclose(best_micro_f1(np.array(p)), expected)


@given(
    p=hnp.arrays(float, (3, 4), elements=st.floats(0, 1)),
    decided=hnp.arrays(bool, (3, 4)),
)
def test_no_decisions_beat_the_best(p, decided):
    hits, size = micro_f1_parts(p, decided)
    ratio = hits.sum() / size.sum() if size.sum() else 0.0
    assert 0 <= ratio <= best_micro_f1(p) + 1e-12 <= 1 + 2e-12
    assert (hamming_risks(p, p > 0.5) <= hamming_risks(p, decided) + 1e-12).all()


def test_certain_marginals_give_the_plain_losses():
    rng = np.random.default_rng(0)
    Y, decided = rng.integers(2, size=(2, 30, 4))
    p = Y.astype(float)
    hits, size = micro_f1_parts(p, decided == 1)
    assert_allclose(hits.sum() / size.sum(), f1_score(Y, decided, average="micro"))
    assert_allclose(hamming_risks(p, decided == 1).mean(), (Y != decided).mean())
