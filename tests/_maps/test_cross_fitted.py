"""Losses of maps on rows that they were learnt without."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm, t

from clml._maps.cross_fitted import CrossFitted, cross_fitted
from clml._maps.row_rules import shifted_rows
from clml._maps.score_engine import ScoreEngine
from clml._maps.score_map import MapSpace, apply_map
from clml.lebesgue import nondominated
from clml.losses import RowTargets, loss_values

LOSSES = ("hamming", "lrap", "micro_f1")


def make_engine(n=70, k=3, losses=LOSSES, weight=None, seed=0):
    generator = np.random.default_rng(seed)
    truth = generator.normal(size=(n, k))
    scores = (truth + generator.normal(size=truth.shape))[:, None]
    targets = RowTargets.from_indicator(truth > 0.3, weight)
    space = MapSpace("bias", k, scale=np.ones(1), offset=np.zeros(1))
    return ScoreEngine(space, scores, targets, losses)


def learn(engine):
    """Biases that make the share of decisions that of the labels, and none at all."""
    targets = engine.targets
    scores = engine.scores(engine.space.identity()[None])[0]
    share = np.average(targets.dense, axis=0, weights=targets.weight)
    cuts = [np.quantile(z, 1 - p) for z, p in zip(scores.T, share, strict=True)]
    return engine.space.maps(np.stack([-np.array(cuts), np.zeros(len(cuts))]))


def twin(engine, seed):
    """Return the logits (m, n, K) that judge, row by row, and the fold of each.

    And the losses (folds, m, o) of the maps of each fold, on all rows.
    """
    n = engine.n_rows
    scores = engine.scores(engine.space.identity()[None])[0]
    logits = np.empty((2, *scores.shape))
    fold_of, of_all = np.empty(n, dtype=int), []
    order = np.random.default_rng(seed).permutation(n)
    for fold in range(5):
        held_out = order[fold * n // 5 : (fold + 1) * n // 5]
        maps = learn(engine.take(np.setdiff1d(np.arange(n), held_out)))
        of_all.append(engine.losses(maps))
        for row in held_out:
            for m, theta in enumerate(maps):
                logits[m, row] = apply_map(theta, scores[row][None, None])
            fold_of[row] = fold
    return logits, fold_of, np.array(of_all)


@pytest.mark.parametrize("weighted", [False, True])
def test_against_a_slow_twin(weighted):
    weight = np.random.default_rng(1).uniform(0.5, 2, 70) if weighted else None
    engine = make_engine(weight=weight)
    found = cross_fitted(engine, learn, seed=3)
    assert_array_equal(found.maps, learn(engine))
    logits, fold_of, of_all = twin(engine, 3)
    Y = engine.targets.dense
    assert_allclose(found.losses, loss_values(Y, logits, LOSSES, weight))
    # The jackknife, from its definition: eight groups of every fold.
    without = []
    for fold in range(5):
        for group in np.array_split(np.flatnonzero(fold_of == fold), 8):
            rest = np.delete(np.arange(70), group)
            own = None if weight is None else weight[rest]
            without.append(loss_values(Y[rest], logits[:, rest], LOSSES, own))
    of_own = engine.losses(found.maps)

    def error(values, of_folds, of_own, widened=1.0):
        spread, changed = values - values.mean(axis=0), of_folds - of_own
        of_rows = 39 / 40 * (spread**2).sum(axis=0)
        return np.sqrt(of_rows + widened**2 * 4 / 5 * (changed**2).sum(axis=0))

    values = np.array(without)
    # Two errors of five numbers are as many as 2.87 of Student's distribution.
    widened = t.ppf(norm.cdf(2), df=4) / 2
    assert_allclose(found.standard_error, error(values, of_all, of_own, widened))
    beside = [some - some[..., :1, :] for some in (values, of_all, of_own)]
    assert_allclose(found.difference_error, error(*beside), atol=1e-15)


RULES = (None, "top_1")


def test_maps_with_rules_are_judged_without_their_rows():
    engine = make_engine(losses=("subset_zero_one", "lrap"))
    found = cross_fitted(engine, learn, seed=3, rules=RULES)
    plain = cross_fitted(engine, learn, seed=3)
    assert found.rules == RULES and plain.rules == ()
    assert_array_equal(found.maps, plain.maps)
    for name in ("losses", "standard_error"):
        assert_array_equal(getattr(found, name)[0], getattr(plain, name)[0])
    logits, _, _ = twin(engine, 3)
    shifted = np.stack([shifted_rows(*one) for one in zip(RULES, logits, strict=True)])
    expected = loss_values(engine.targets.dense, shifted, engine.loss_set.names)
    assert_allclose(found.losses, expected)
    assert (found.standard_error > 0).all()
    assert found.difference_error[1, 0] > 0
    # The ranks are those of the map: nothing is known of them that was not before.
    assert_allclose(found.losses[1, 1], plain.losses[1, 1])
    front, _ = found.front(5, keep_first=True)
    kept = [
        np.flatnonzero((found.losses == one).all(axis=1))[0] for one in front.losses
    ]
    assert front.rules == tuple(RULES[i] for i in kept)


def test_functions_see_rows_that_a_rule_decided():
    def wrong_rows(Y, scores):
        return ((scores > 0) != Y).any(axis=1).mean()

    plain = cross_fitted(
        make_engine(losses=("subset_zero_one",)), learn, seed=0, rules=RULES
    )
    own = cross_fitted(make_engine(losses=(wrong_rows,)), learn, seed=0, rules=RULES)
    assert_allclose(own.losses, plain.losses)
    one_row = cross_fitted(make_engine(n=1), learn, seed=0, rules=RULES)
    assert one_row.rules == RULES


def test_other_scores_may_judge():
    engine, other = make_engine(), make_engine(seed=1)
    judge = engine.with_scores(other.scores(other.space.identity()[None])[0][:, None])
    found = cross_fitted(engine, learn, seed=0, judge=judge)
    plain = cross_fitted(engine, learn, seed=0)
    assert_array_equal(found.maps, plain.maps)
    # The other scores belong to other labels: nothing is right but by chance.
    assert (found.losses > 1.3 * plain.losses).all()


def test_the_same_losses_as_functions():
    def wrong(Y, scores):
        return ((scores > 0) != Y).mean()

    plain = cross_fitted(make_engine(losses=("hamming",)), learn, seed=0)
    own = cross_fitted(make_engine(losses=(wrong,)), learn, seed=0)
    assert_allclose(own.losses, plain.losses)
    # Ten groups instead of forty.
    assert_allclose(own.standard_error, plain.standard_error, rtol=0.7)


def test_threads_change_nothing():
    engine = make_engine()
    with ThreadPoolExecutor(3) as executor:
        threaded = cross_fitted(engine, learn, seed=0, executor=executor)
    alone = cross_fitted(engine, learn, seed=0)
    assert_array_equal(threaded.losses, alone.losses)
    assert_array_equal(threaded.standard_error, alone.standard_error)


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_hardly_any_rows(n):
    found = cross_fitted(make_engine(n=n), learn, seed=0)
    assert found.losses.shape == (2, 3)
    assert np.isfinite(found.losses).all()
    assert np.isnan(found.standard_error).all() == (n == 1)


def test_errors_cover_what_is_expected():
    """Of a map that is learnt, on rows of the same kind, by the thousand."""
    near = []
    fresh = make_engine(n=20_000, seed=10_000)
    for seed in range(60):
        found = cross_fitted(make_engine(n=80, seed=seed), learn, seed=0)
        off = found.losses - fresh.losses(found.maps)
        near.append(np.abs(off) <= 2 * found.standard_error)
    assert np.mean(near) > 0.88


def made_up(losses):
    losses = np.asarray(losses, dtype=float)
    maps = np.arange(len(losses), dtype=float)[:, None]
    return CrossFitted(maps, losses, 0.1 * losses, 0.2 * losses)


def test_a_front_is_sorted_and_has_no_dominated_maps():
    found = made_up([[0.3, 0.3], [0.2, 0.4], [0.4, 0.4], [0.4, 0.1], [0.2, 0.4]])
    front, first = found.front(10, keep_first=True)
    assert_array_equal(front.maps[:, 0], [1, 0, 3])
    assert first == 1
    assert_array_equal(front.standard_error, 0.1 * front.losses)
    assert_array_equal(front.difference_error, 0.2 * front.losses)


def test_the_first_stays_if_it_is_to():
    found = made_up([[0.3, 0.3], [0.2, 0.2]])
    assert found.front(5, keep_first=True)[1] == 1
    front, first = found.front(5, keep_first=False)
    assert (len(front.maps), first) == (1, None)


def test_undefined_losses_are_left_out():
    found = made_up([[0.3, np.nan], [0.2, 0.4], [np.nan, np.nan], [0.4, 0.1]])
    front, first = found.front(3, keep_first=True)
    assert_array_equal(front.maps[:, 0], [1, 3])
    assert first is None
    front, first = made_up([[np.nan, 0.1], [np.nan, 0.0]]).front(3, keep_first=False)
    assert (front.maps.tolist(), first) == ([[0.0]], 0)


def test_a_small_front_keeps_the_default_and_the_best_of_each_loss():
    # The second has the best geometric mean, which comes after these.
    losses = [[0.6, 0.6, 0.4], [0.2, 0.2, 0.2]]
    losses += [[0.1, 0.9, 0.9], [0.9, 0.1, 0.9], [0.9, 0.9, 0.1]]
    front, first = made_up(losses).front(4, keep_first=True)
    assert_array_equal(np.sort(front.maps[:, 0]), [0, 2, 3, 4])
    assert front.maps[first, 0] == 0


@given(st.integers(1, 12), st.integers(3, 8), st.integers(0, 2**31), st.booleans())
def test_fronts(m, most, seed, keep_first):
    losses = np.random.default_rng(seed).integers(1, 5, size=(m, 2)) / 5
    front, first = made_up(losses).front(most, keep_first=keep_first)
    assert 1 <= len(front.maps) <= most
    others = front.losses
    if keep_first:
        assert front.maps[first, 0] == 0
        others = np.delete(others, first, axis=0)
    assert nondominated(others).all() if len(others) else True
    assert_array_equal(front.losses.min(axis=0), losses.min(axis=0))
    assert (np.diff(front.losses[:, 0]) >= 0).all()
