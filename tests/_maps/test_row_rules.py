"""Rules that decide whole rows, and models of fronts that have one."""

import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier

from clml import (
    CLMLClassifier,
    LebesgueStackingClassifier,
    LebesgueTunedClassifier,
)
from clml._maps.row_rules import (
    best_prefixes,
    expectation_nodes,
    fits_labels,
    is_row_rule,
    offered_rules,
    shifted_rows,
)
from clml.losses import RowTargets, Statistic, get_loss, get_losses
from clml.losses.definitions import SubsetZeroOne
from clml.persistence import load

LOSSES = ("subset_zero_one", "example_f1", "lrap")
RULES = ("at_least_one", "top_1", "top_2", "top_3", "best_prefix")


# --- what a rule makes of logits ---------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        # Halfway between the highest and the next, -1.5; a right row stays.
        ("at_least_one", [[-1.5, 0.5, -0.5], [1.0, -1.0, 0.5], [2.0, 1.0, 3.0]]),
        # Cuts at -1.5, 0.75 and 2.5.
        ("top_1", [[-1.5, 0.5, -0.5], [0.25, -1.75, -0.25], [-0.5, -1.5, 0.5]]),
        # At -2.5, 0 and 1.5: the middle row has two already.
        ("top_2", [[-0.5, 1.5, 0.5], [1.0, -1.0, 0.5], [0.5, -0.5, 1.5]]),
        # All labels: half a unit below the lowest, if it is not positive.
        ("top_3", [[0.5, 2.5, 1.5], [2.5, 0.5, 2.0], [2.0, 1.0, 3.0]]),
        (None, [[-3.0, -1.0, -2.0], [1.0, -1.0, 0.5], [2.0, 1.0, 3.0]]),
    ],
)
def test_rules_by_hand(rule, expected):
    logits = np.array([[-3.0, -1.0, -2.0], [1.0, -1.0, 0.5], [2.0, 1.0, 3.0]])
    given = logits.copy()
    assert_array_equal(shifted_rows(rule, logits), expected)
    assert_array_equal(logits, given)


def test_best_prefix_by_hand():
    """Of 0.8 and p the F1 expected of both is 0.8·p + (0.8·(1 − p) + 0.2·p)·2/3.

    Of the first alone it is 0.8·(1 − p) + 0.8·p·2/3: as much where p is 2/5.
    """
    p = np.array([0.39, 0.4, 0.41])
    assert_array_equal(best_prefixes(np.column_stack([[0.8] * 3, p])), [1, 1, 2])


def test_equal_logits_go_by_their_columns():
    logits = np.array([[0.0, 0.0, 0.0], [-1.0, 2.0, 2.0], [5.0, 5.0, -0.0]])
    assert_array_equal(
        shifted_rows("top_1", logits) > 0,
        [[True, False, False], [False, True, False], [True, False, False]],
    )
    both = shifted_rows("top_2", logits)
    assert_array_equal(both > 0, [[1, 1, 0], [0, 1, 1], [1, 1, 0]])
    # Nothing but what the cut parts is parted.
    assert (both[0, 0] == both[0, 1]) and (both[1, 1] == both[1, 2])


def slow_expectations(p):
    """Sum over all sets of labels: the twin of few labels."""
    values = np.zeros(len(p))
    for truth in product((0, 1), repeat=len(p)):
        chance = np.prod(np.where(truth, p, 1 - p))
        hits = np.cumsum(truth)
        values += chance * 2 * hits / (np.arange(1, len(p) + 1) + sum(truth))
    return values


def sums_of(p):
    """Return the distribution of how many of some labels are relevant."""
    found = np.ones(1)
    for one in p:
        found = np.convolve(found, [1 - one, one])
    return found


def expectations(p):
    """Sum over hits and misses: the twin of many labels."""
    values = []
    for j in range(1, len(p) + 1):
        hits, misses = np.meshgrid(np.arange(j + 1), np.arange(len(p) - j + 1))
        chance = sums_of(p[:j])[hits] * sums_of(p[j:])[misses]
        values.append((chance * 2 * hits / (j + hits + misses)).sum())
    return np.array(values)


def assert_is_best(p):
    values, (found,) = expectations(p), best_prefixes(p[None])
    # The first of the best, as far as digits tell.
    assert values[found - 1] >= (1 - 2e-9) * values.max()
    assert (values[: found - 1] < (1 - 1e-10) * values.max()).all()


@given(arrays(float, st.integers(1, 7), elements=st.floats(0, 1)))
def test_expectations_of_the_twins_agree(p):
    assert_allclose(slow_expectations(p), expectations(p), atol=1e-14)


@given(
    n=st.integers(1, 60), power=st.sampled_from([0, 1, 3, 20]), seed=st.integers(0, 999)
)
def test_best_prefix_against_the_slow_twin(n, power, seed):
    p = np.random.default_rng(seed).random(n) ** power
    assert_is_best(np.sort(p)[::-1])


@pytest.mark.parametrize("power", [1, 4, 15])
def test_best_prefix_of_many_labels(power):
    p = np.sort(np.random.default_rng(0).random(300) ** power)[::-1]
    assert_is_best(p)
    # What is integrated has the digits that make equal what is equal.
    nodes, weights = expectation_nodes(300)
    factors = 1 - p * (1 - nodes[:, None])
    sums = np.cumsum(p / factors, axis=1) * factors.prod(axis=1)[:, None]
    found = weights @ (nodes[:, None] ** np.arange(1, 301) * sums)
    assert_allclose(found, expectations(p), rtol=1e-9)


@pytest.mark.parametrize("p", [np.zeros(5), np.ones(5), np.full(5, 1e-300)], ids=str)
def test_best_prefix_at_the_bounds(p):
    # Labels that are sure are all predicted; such that never are cost nothing, and
    # the first stands for all. Equal and unlikely ones gain by one another.
    expected = 1 if not p.any() else 5
    assert best_prefixes(p[None]) == expected


def slow_number(rule, row):
    """Return how many labels a row has, from the definition."""
    if rule == "at_least_one":
        return max(1, sum(value > 0 for value in row))
    if rule == "best_prefix":
        values = expectations(np.sort(expit(row))[::-1])
        return int(np.flatnonzero(values >= (1 - 1e-9) * values.max())[0]) + 1
    return min(int(rule.removeprefix("top_")), len(row))


numbers = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-320, -1e-17, 0.1, 0.1 + 2e-17]),
    st.floats(-30, 30),
    st.floats(-1e100, 1e100),  # what a network reads is not larger, either
)


@given(
    logits=arrays(float, st.tuples(st.integers(0, 4), st.integers(1, 6)),
                  elements=numbers),
    rule=st.sampled_from(RULES),
)  # fmt: skip
def test_signs_are_the_rule_and_ranks_as_they_were(logits, rule):
    shifted = shifted_rows(rule, logits)
    assert shifted.shape == logits.shape
    for row, found in zip(logits, shifted, strict=True):
        chosen = found > 0
        order = sorted(range(len(row)), key=lambda k: -row[k])  # stable
        if rule != "best_prefix":  # whose ties near the last digit may go either way
            expected = order[: slow_number(rule, row)]
            assert_array_equal(np.flatnonzero(chosen), sorted(expected))
        assert_array_equal(order[: chosen.sum()], [k for k in order if chosen[k]])
        above, equal = row[:, None] > row, row[:, None] == row
        assert (found[:, None] > found)[above].all()
        parted = chosen[:, None] != chosen
        assert (found[:, None] == found)[equal & ~parted].all()


@given(
    logits=arrays(float, (3, 5), elements=st.floats(-20, 20)),
    rule=st.sampled_from(RULES),
)
def test_a_row_has_one_shift(logits, rule):
    moved = shifted_rows(rule, logits) - logits
    assert_allclose(moved, moved[:, :1].repeat(5, axis=1), atol=1e-13)


@pytest.mark.parametrize("rule", RULES)
def test_rows_do_not_know_of_each_other(rule, monkeypatch):
    logits = np.random.default_rng(0).normal(-1, 2, size=(40, 7)).round(1)
    found = shifted_rows(rule, logits)
    for i in range(40):
        assert_array_equal(shifted_rows(rule, logits[[i]]), found[[i]])
    assert_array_equal(shifted_rows(rule, np.asfortranarray(logits)), found)
    monkeypatch.setattr("clml._maps.row_rules._AT_ONCE", 20)
    assert_array_equal(shifted_rows(rule, logits), found)


@pytest.mark.parametrize("rule", RULES)
def test_nan_and_infinities(rule):
    inf = np.inf
    rows = [[np.nan, 1, -1], [inf, -inf, 0], [-inf, -inf, -inf], [inf, inf, inf]]
    found = shifted_rows(rule, np.array(rows, dtype=float))
    assert_array_equal(found[0], [np.nan, 1, -1])
    assert not np.isnan(found[1:]).any()
    assert (found[1:] > 0).any(axis=1).all()


def test_one_label_has_every_rule_the_same():
    for rule in RULES:
        assert (shifted_rows(rule, np.array([[-3.0], [0.0], [2.0]])) > 0).all()


def test_probabilities_are_of_logits_before_the_temperature():
    logits = np.random.default_rng(0).normal(-1, 2, size=(50, 6))
    plain = shifted_rows("best_prefix", logits) > 0
    assert_array_equal(shifted_rows("best_prefix", logits / 4, 4.0) > 0, plain)
    assert (shifted_rows("best_prefix", logits / 4) > 0).sum() != plain.sum()


def test_unknown_rules_are_refused():
    with pytest.raises(ValueError, match=r"A rule must be .* got 'top_0'"):
        shifted_rows("top_0", np.zeros((1, 2)))
    bad = (None, 1, "", "top_", "top_0", "top_01", "top_-1", "top_1 ", "Best_prefix")
    assert not any(is_row_rule(rule) for rule in (*bad, "top_1\n", "top_" + "9" * 99))
    assert all(map(is_row_rule, RULES))
    assert fits_labels("top_2", 3) and not fits_labels("top_3", 3)
    assert not fits_labels("best_prefix", 1)


# --- where they are tried ----------------------------------------------------------


class OwnRows(SubsetZeroOne):
    name = "own_rows"
    statistics = (Statistic("own", lambda Y, s, t: ((s > t) != Y).any(axis=-1)),)


def own_function(Y, scores):
    return ((scores > 0) != Y).any(axis=1).mean()


@pytest.mark.parametrize(
    ("losses", "offered"),
    [
        (("hamming", "lrap", "micro_f1", "macro_f1"), False),
        (("one_error", "coverage", "ranking_loss", "precision_at_2"), False),
        (("hamming", "subset_zero_one"), True),
        (("jaccard",), True),
        (("example_f1",), True),
        ((OwnRows(),), True),
        ((own_function,), True),
    ],
)
def test_rules_are_offered_to_losses_of_rows(losses, offered):
    targets = RowTargets.from_indicator(np.eye(4, dtype=int))
    assert bool(offered_rules(get_losses(losses), targets)) == offered


@pytest.mark.parametrize(
    ("Y", "weight", "expected"),
    [
        ([[1, 1, 0, 0, 0]] * 3, None, ["top_1", "top_2", "top_3"]),
        ([[1, 0, 0, 0, 0]] * 3, None, ["top_1", "top_2"]),
        # One label less than all is the most.
        ([[1, 1, 1]] * 3, None, ["top_2"]),
        ([[0, 0, 0]] * 3, None, ["top_1"]),
        # 1.2 labels a row, and 2.8 by weight.
        ([[1, 1, 1, 0, 0], [1, 0, 0, 0, 0]], [9.0, 1.0], ["top_2", "top_3", "top_4"]),
        ([[1] * 30 + [0] * 30] * 2, None, []),
    ],
)
def test_numbers_that_are_tried(Y, weight, expected):
    targets = RowTargets.from_indicator(np.array(Y), weight)
    found = offered_rules(get_losses(("lrap", "jaccard")), targets)
    rules = [rule for rule, place in found if place is None]
    assert rules == ["at_least_one", *expected, "best_prefix"]
    # Beside what is cut for the loss itself.
    assert found[len(rules) :] == (("at_least_one", 1),)


def test_one_label_has_no_rules():
    targets = RowTargets.from_indicator(np.array([[1], [0]]))
    assert offered_rules((get_loss("jaccard"),), targets) == ()


# --- models of fronts --------------------------------------------------------------


@pytest.fixture(scope="module")
def rows():
    """Rows of exactly one label, of which few are likelier than all others."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(150, 6))
    label = (X + 1.5 * generator.normal(size=X.shape)).argmax(axis=1)
    return X, (np.arange(6) == label[:, None]).astype(int)


NEAR = KNeighborsClassifier(15)
KINDS = {
    "clml": CLMLClassifier(LOSSES, max_epochs=2, n_members=2, random_state=0),
    "tuned": LebesgueTunedClassifier(NEAR, LOSSES, random_state=0),
    "stacked": LebesgueStackingClassifier(
        [("near", NEAR), ("nearest", KNeighborsClassifier(5))], LOSSES, random_state=0
    ),
}


@pytest.fixture(scope="module")
def fitted(rows):
    return {name: clone(model).fit(*rows) for name, model in KINDS.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_exactly_one_label_is_found(kind, fitted, rows):
    X, _ = rows
    clf = fitted[kind]
    assert clf.rule_ is None  # the default has none
    chosen = clf.select("subset_zero_one")
    assert chosen.rule_ in ("top_1", "at_least_one")
    assert clf.rule_ is None
    if chosen.rule_ == "top_1":
        assert (chosen.predict(X).sum(axis=1) == 1).all()
    logits = chosen.decision_function(X)
    assert_array_equal(chosen.predict(X), logits > 0)
    assert_allclose(chosen.predict_proba(X), expit(logits))
    losses = clf.front_.losses[:, 0]
    assert losses[chosen.incumbent_] < losses[clf.front_.default]


@pytest.mark.parametrize("kind", KINDS)
def test_models_with_rules_are_kept(kind, fitted, rows, tmp_path):
    if kind != "clml":
        pytest.importorskip("skops.io", reason="learners are kept by skops")
    X, _ = rows
    chosen = fitted[kind].select("subset_zero_one")
    chosen.save(tmp_path / "model")
    for other in (load(tmp_path / "model"), pickle.loads(pickle.dumps(chosen))):
        assert other.rule_ == chosen.rule_
        assert other.front_.rules == chosen.front_.rules
        assert_array_equal(other.decision_function(X), chosen.decision_function(X))
        for i, rule in enumerate(chosen.front_.rules):
            assert other.select(i).rule_ == rule
    assert not hasattr(clone(chosen), "rule_")


def test_a_rule_may_predict_by_default(rows):
    X, Y = rows
    clf = clone(KINDS["clml"]).set_params(incumbent="subset_zero_one").fit(X, Y)
    assert clf.rule_ is not None
    assert clf.rule_ == clf.front_.rules[clf.incumbent_]
    threads = clone(clf).set_params(n_jobs=2).fit(X, Y)
    assert threads.front_.rules == clf.front_.rules
    assert_array_equal(threads.decision_function(X), clf.decision_function(X))
    assert_array_equal(clf.decision_function(X[3:5]), clf.decision_function(X)[3:5])


def test_other_losses_and_one_label_have_none(rows):
    X, Y = rows
    for losses, y in ((("hamming", "micro_f1"), Y), (LOSSES, Y[:, 0])):
        clf = clone(KINDS["tuned"]).set_params(losses=losses).fit(X, y)
        assert not any(clf.front_.rules)


def test_the_only_loss_may_have_one(rows):
    clf = clone(KINDS["tuned"]).set_params(losses=("subset_zero_one",)).fit(*rows)
    front = clf.front_
    assert front.rules[front.default] is None
    assert clf.select("subset_zero_one").rule_ is not None


def test_a_label_that_is_never_there(rows):
    X, Y = rows
    Y = Y.copy()
    Y[:, 2] = 0
    with pytest.warns(UserWarning, match="cannot be learnt"):
        clf = clone(KINDS["tuned"]).fit(X, Y)
    chosen = clf.select("subset_zero_one")
    assert not chosen.predict(X)[:, 2].any()


def test_rows_of_weight_0_do_not_count(rows):
    X, Y = rows
    weight = np.ones(len(Y))
    weight[100:] = 0
    other = Y.copy()
    other[100:] = 1  # which would make rows of two labels
    clf = KINDS["clml"]
    found = [clone(clf).fit(X, y, sample_weight=weight).front_ for y in (Y, other)]
    assert any(found[0].rules)
    assert found[0].rules == found[1].rules
    assert_array_equal(found[0].losses, found[1].losses)
