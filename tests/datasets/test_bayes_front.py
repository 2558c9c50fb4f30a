from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from clml.datasets import make_bayes_multilabel
from clml.datasets._bayes_front import (
    best_sums,
    joined,
    losses_of_sums,
    treatments_of_rows,
)
from clml.datasets._bayes_risk import (
    LOSS_NAMES,
    all_label_sets,
    best_orders,
    expected_lrap,
    order_scores,
    pair_expectations,
)
from clml.lebesgue import dominates, lebesgue_measure, nondominated


def make(n_labels, n_rows, seed=0, **settings):
    truth = make_bayes_multilabel(
        1, n_labels, n_features=4, random_state=seed, **settings
    ).truth
    return truth, truth.sample(n_rows, seed + 100)[0]


def every_sum(truth, x):
    """LRAP, hits and predicted (m, 3) of all orders and cuts of one row."""
    joint, p = truth.joint(x[None]), truth.marginals(x[None])[0]
    sets = all_label_sets(len(p))
    found = []
    for order in permutations(range(len(p))):
        ranks = np.argsort(order) + 1
        # The definition, label set by label set.
        precision = 0.0
        for labels, chance in zip(sets, joint[0], strict=True):
            relevant = np.flatnonzero(labels)
            if len(relevant) == 0:
                precision += chance
                continue
            shares = [(ranks[relevant] <= ranks[j]).sum() / ranks[j] for j in relevant]
            precision += chance * np.mean(shares)
        for cut in range(len(p) + 1):
            found.append((precision, p[list(order[:cut])].sum(), cut))
    return np.array(found)


def every_loss(truth, X):
    """Losses of all treatments of all rows together."""
    sums = every_sum(truth, X[0])
    for x in X[1:]:
        sums = (sums[:, None] + every_sum(truth, x)).reshape(-1, 3)
        sums = np.unique(sums.round(14), axis=0)
    relevant = truth.marginals(X).sum()
    lrap, hits, predicted = sums.T
    n, k = X.shape[0], truth.n_labels
    return np.stack(
        [
            (relevant - 2 * hits + predicted) / (n * k),
            1 - lrap / n,
            1 - 2 * hits / (predicted + relevant),
        ],
        axis=1,
    )


def treatments(truth, X):
    joint = truth.joint(X)
    empty = np.ascontiguousarray(joint[:, 0])
    return treatments_of_rows(pair_expectations(joint), empty, truth.marginals(X))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("n_labels", "n_rows"), [(2, 3), (3, 3), (4, 2)], ids=str)
def test_front_against_every_treatment(n_labels, n_rows, seed):
    truth, X = make(n_labels, n_rows, seed)
    every = every_loss(truth, X)
    front = truth.bayes_front(X, resolution=100)
    best = every[nondominated(every)]
    # Every point is attained, and nothing that is attained dominates it.
    for point in front.losses:
        assert np.abs(every - point).max(axis=1).min() < 1e-9
        assert not any(dominates(other + 1e-9, point) for other in best)
    assert front.lebesgue_measure <= lebesgue_measure(every) + 1e-12
    # What is the best for some weights is there. The weighted sum is linear in the sums
    # over rows; micro-F1 enters by the ratio of the point that is the best.
    size = n_labels * every[:, 0] / np.maximum(every[:, 2], 1e-12)
    n_supported = 0
    for weights in np.random.default_rng(seed).dirichlet(np.ones(3), size=30):
        for point in best:
            planes = every - [0, 0, point[2]]
            planes[:, 2] *= size
            worth = planes @ weights
            at_point = point @ (weights * [1, 1, 0])
            if at_point <= worth.min() + 1e-12:
                n_supported += 1
                nearest = np.abs(every[:, None] - front.losses).max(axis=2) < 1e-9
                assert worth[nearest.any(axis=1)].min() <= worth.min() + 1e-4
    assert n_supported >= 20


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_labels", [1, 2, 3, 4])
def test_best_treatment_of_a_row(n_labels, seed):
    truth, X = make(n_labels, 5, seed, dependence=0.7)
    found = treatments(truth, X)
    rng = np.random.default_rng(seed)
    some = np.stack(
        [rng.uniform(size=30), rng.uniform(size=30), rng.uniform(0, 0.5, 30)]
    )
    for ranking, deciding, t in some.T:
        expected = 0.0
        for x in X:
            every = every_sum(truth, x)
            worth = every @ (ranking, deciding, -deciding * t)
            expected += worth.max()
        sums = best_sums(*found, np.array([[ranking, deciding, t]]))[0]
        assert_allclose(sums @ (ranking, deciding, -deciding * t), expected, rtol=1e-12)


def test_parts_of_the_rows_make_the_same_treatments():
    truth, X = make(4, 12)
    whole = treatments(truth, X)
    parts = joined([treatments(truth, X[:5]), treatments(truth, X[5:])])
    for one, other in zip(whole, parts, strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("dependence", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("seed", [0, 4])
def test_front_holds_the_bayes_value_of_each_loss(seed, dependence):
    truth, X = make(6, 2000, seed, dependence=dependence)
    front = truth.bayes_front(X)
    bayes = truth.bayes_losses(X)
    assert front.loss_names == LOSS_NAMES
    assert_allclose(front.losses.min(axis=0), bayes, atol=1e-9)
    assert nondominated(front.losses).all()
    assert (np.diff(front.losses[:, 0]) >= 0).all()
    assert front.lebesgue_measure == lebesgue_measure(front.losses)
    # No more than if one model had all three, no less than the best single models.
    assert front.lebesgue_measure < lebesgue_measure([bayes])
    single = [
        truth.expected_losses(X, truth.bayes_scores(X, name)) for name in LOSS_NAMES
    ]
    assert front.lebesgue_measure > lebesgue_measure(single)
    finer = truth.bayes_front(X, resolution=72).lebesgue_measure
    assert front.lebesgue_measure <= finer <= front.lebesgue_measure + 5e-6


def test_independent_labels_are_best_in_the_order_of_their_marginals():
    truth, X = make(5, 500, dependence=0.0)
    p = truth.marginals(X)
    low = truth.bayes_front(X, ["micro_f1"]).losses[0, 0]
    thresholds = np.linspace((1 - low) / 2, 0.5, 24)
    expected = [truth.expected_losses(X, p - t) for t in thresholds]
    front = truth.bayes_front(X)
    assert_allclose(front.lebesgue_measure, lebesgue_measure(expected), rtol=1e-9)


@pytest.mark.parametrize(
    "losses",
    [("lrap",), ("micro_f1",), ("hamming", "lrap"), ("micro_f1", "lrap")],
    ids="-".join,
)
def test_some_of_the_losses(losses):
    truth, X = make(6, 1000, 4)
    front = truth.bayes_front(X, losses)
    columns = [LOSS_NAMES.index(name) for name in losses]
    assert front.loss_names == losses
    assert_allclose(front.losses.min(axis=0), truth.bayes_losses(X)[columns], atol=1e-9)
    # The front of all three, seen in these losses alone, has nothing better.
    seen = truth.bayes_front(X, resolution=48).losses[:, columns]
    assert lebesgue_measure(seen) <= front.lebesgue_measure + 2e-6
    assert len(front.losses) == 1 or len(losses) > 1


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), share=st.floats(0, 1), tilt=st.floats(-3, 1))
def test_no_scores_have_more_than_the_front(seed, share, tilt):
    # Scores near the best ones: others are far behind.
    truth, X = make(4, 50, 1)
    rng = np.random.default_rng(seed)
    scores = share * truth.bayes_scores(X, "lrap") + truth.log_odds(X)
    scores += 10**tilt * rng.normal(size=scores.shape)
    losses = truth.expected_losses(X, scores)
    front = truth.bayes_front(X)
    measure = lebesgue_measure(np.vstack([front.losses, losses]))
    # What no weights prefer may be ahead by a part of one row of the fifty.
    assert measure <= front.lebesgue_measure + 1e-4


def best_with_ties(pairs):
    """Largest expected LRAP, less the chance of no label, of rows with ties."""
    n_labels = pairs.shape[1]
    members = [[j for j in range(n_labels) if s >> j & 1] for s in range(1 << n_labels)]
    best = np.zeros((1 << n_labels, len(pairs)))
    for s in range(1, 1 << n_labels):
        precision = pairs[:, :, members[s]].mean(axis=2)
        group = s
        while group:  # all sets of labels that may share the last place of s
            found = best[s ^ group] + precision[:, members[group]].sum(axis=1)
            best[s] = np.maximum(best[s], found)
            group = (group - 1) & s
    return best[-1]


def test_companions_gain_by_a_tie():
    # Label 0 alone, or labels 1 and 2 together. Label 0 first is best; then each of
    # the two has the other beside it at rank 3, where it alone has 1/2 at rank 2.
    joint = np.zeros((1, 8))
    joint[0, [0b001, 0b110]] = 0.5
    pairs, empty = pair_expectations(joint), joint[:, 0].copy()
    strict = expected_lrap(pairs, empty, order_scores(best_orders(pairs)))
    assert_allclose(strict, 0.5 + 0.5 * (1 / 2 + 2 / 3) / 2)
    tied = expected_lrap(pairs, empty, np.array([[2.0, 1.0, 1.0]]))
    assert_allclose(tied, 0.5 + 0.5 * 2 / 3)
    assert_allclose(best_with_ties(pairs), tied)


@pytest.mark.parametrize("seed", range(5))
def test_what_ties_gain_is_as_documented(seed):
    truth = make_bayes_multilabel(1, random_state=seed).truth
    X = truth.sample(2000, 0)[0]
    joint = truth.joint(X)
    pairs, empty = pair_expectations(joint), joint[:, 0]
    tied = best_with_ties(pairs).mean() + empty.mean()
    gain = tied - (1 - truth.bayes_losses(X)[1])
    assert 0 < gain < 0.0035
    assert seed != 4 or gain > 0.0025


def test_rows_without_any_chance_of_a_label():
    sums = np.array([[2.0, 0.0, 0.0], [2.0, 0.0, 1.0]])
    expected = [[0, 0, 1], [0.25, 0, 1]]
    assert_allclose(losses_of_sums(sums, np.zeros((2, 2))), expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"losses": ["hamming", "hamming"]}, "losses must be some of .* each once"),
        ({"losses": []}, "losses must be some of"),
        ({"losses": "coverage"}, "losses must be some of .* got 'coverage'"),
        ({"resolution": 1}, "resolution must be at least 2, got 1"),
    ],
    ids=str,
)
def test_bad_arguments(arguments, message):
    truth, X = make(2, 3)
    with pytest.raises(ValueError, match=message):
        truth.bayes_front(X, **arguments)
