"""Losses that no member is trained on: they judge, are mapped for, and pay."""

import time

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification

from clml import Ascent, CLMLClassifier
from clml._training import own_losses as _own_losses
from clml._training.holdout import HeldOutScorer
from clml._training.own_losses import FULL, are_slow, map_budget, training_losses
from clml.losses import (
    Loss,
    RowTargets,
    Statistic,
    get_losses,
    list_losses,
    loss_values,
    supports_gradient,
)
from clml.network import WideNetwork
from clml.persistence.checkpoint import Checkpoint

DEFAULT = ("hamming", "lrap", "micro_f1")


def cost(Y, scores):
    """Return what errors cost of what they could: a label missed counts five times."""
    missed, wrong = (Y == 1) & (scores <= 0), (Y == 0) & (scores > 0)
    return (5 * missed.sum() + wrong.sum()) / (5 * (Y == 1).sum() + (Y == 0).sum())


def f2_of_rows(Y, scores):
    found = scores > 0
    hits, size = (found & (Y == 1)).sum(axis=1), 4 * Y.sum(axis=1) + found.sum(axis=1)
    return 1 - np.where(size > 0, 5 * hits / np.maximum(size, 1), 1.0).mean()


def none_of_the_first_two(Y, scores):
    first = np.argsort(-scores, axis=1, kind="stable")[:, :2]
    return 1 - np.take_along_axis(Y, first, axis=1).any(axis=1).mean()


class ShareAbove(Loss):
    name = "share_above"
    statistics = (Statistic("above", lambda Y, s, t: (s > t).mean(axis=-1)),)

    def close(self, sums, weight, n_labels):
        return sums["above"] / weight


def quick(losses, **settings):
    defaults = {
        "network": WideNetwork((32,)),
        "n_members": 5,
        "max_epochs": 12,
        "search": Ascent(learning_rate=0.01),
        "random_state": 0,
    }
    return CLMLClassifier(losses, **(defaults | settings))


@pytest.fixture(scope="module")
def halves():
    """Rows to fit and others, with noise: some errors cannot be helped."""
    X, Y = make_multilabel_classification(
        n_samples=600, n_features=12, n_classes=5, n_labels=2, random_state=3
    )
    X = X + np.random.default_rng(0).normal(scale=4, size=X.shape)
    return X[:300], Y[:300], X[300:], Y[300:]


# Which they are


def test_all_named_losses_are_trained_on():
    names = list_losses(role="objective")
    assert supports_gradient(names)
    losses = get_losses(names)
    assert training_losses(losses) == losses


def test_others_are_trained_on_in_their_place():
    losses = get_losses((cost, "lrap", ShareAbove))
    names = [loss.name for loss in training_losses(losses)]
    assert names == ["lrap", "hamming", "micro_f1"]
    for own in (cost, ShareAbove):
        (stand_in,) = training_losses(get_losses((own,)))
        assert stand_in.name == "binary_cross_entropy"


@pytest.mark.parametrize(
    ("asked", "trained"),
    [
        (("macro_f1",), ("macro_f1", *DEFAULT)),
        (("micro_f1", "jaccard"), ("micro_f1", "jaccard", "hamming", "lrap")),
        (("lrap", "micro_f1", "hamming"), ("lrap", "micro_f1", "hamming")),
        (("coverage", "jaccard", "lrap"), ("coverage", "jaccard", "lrap")),
    ],
)
def test_one_or_two_losses_are_joined_by_the_default(asked, trained):
    found = training_losses(get_losses(asked))
    assert tuple(loss.name for loss in found) == trained


# That they pay


@pytest.fixture(scope="module")
def default(halves):
    X, Y, *_ = halves
    return quick(DEFAULT).fit(X, Y)


def test_asking_for_one_loss_pays_in_it(halves, default):
    X, Y, X_test, Y_test = halves
    names = ("hamming", "micro_f1", "macro_f1", "jaccard", "subset_zero_one")
    before = loss_values(Y_test, default.decision_function(X_test), names)
    models = [quick((name,)).fit(X, Y) for name in names]
    scores = [model.decision_function(X_test) for model in models]
    pairs = zip(names, scores, strict=True)
    after = np.array([loss_values(Y_test, z, (name,))[0] for name, z in pairs])
    assert np.log(after / before).mean() < 0
    assert (after / before < 1.05).all()


def test_a_loss_of_rankings_alone_still_decides(halves):
    X, Y, X_test, Y_test = halves
    clf = quick(("lrap",)).fit(X, Y)
    assert clf.front_.loss_names == ("lrap",)
    (found,) = loss_values(Y_test, clf.decision_function(X_test), ("micro_f1",))
    everything = 2 * Y_test.mean() / (1 + Y_test.mean())
    assert found < 1 - 0.8 * everything


@pytest.mark.parametrize("loss", [cost, f2_of_rows, none_of_the_first_two])
@pytest.mark.parametrize("others", [(), DEFAULT], ids=["alone", "beside others"])
def test_never_worse_in_that_loss_than_without(halves, default, loss, others):
    X, Y, X_test, Y_test = halves
    clf = quick((*others, loss)).fit(X, Y)
    chosen = clf.select(loss.__name__)
    before, after, best = (
        loss(Y_test, model.decision_function(X_test))
        for model in (default, clf, chosen)
    )
    # A loss that counts rows moves in steps of one.
    assert after <= 1.01 * before + 1 / len(Y_test)
    if loss is none_of_the_first_two:
        return  # scales and biases move few labels past each other
    assert best < 0.95 * before
    if not others:
        assert after < 0.95 * before


def test_networks_of_the_papers_kind(halves):
    X, Y, X_test, Y_test = halves
    settings = {"network": "paper", "shrinkage": 0.0}
    default, clf = (quick(x, **settings).fit(X, Y) for x in (DEFAULT, (cost,)))
    before, after = (cost(Y_test, m.decision_function(X_test)) for m in (default, clf))
    assert after < 0.95 * before


@pytest.mark.parametrize("grows", [True, False])
def test_the_epoch_is_judged_by_them(halves, monkeypatch, grows):
    """By a loss that grows with every call the first epoch is the best."""
    X, Y, *_ = halves
    calls, heard = [], []
    score = HeldOutScorer.score

    def noted(self, networks, executor):
        heard.append(networks)
        return score(self, networks, executor)

    def own(Y, scores):
        calls.append(None)
        nth = min(len(calls), 7)
        return 10.0 ** (nth - 7 if grows else -nth)

    monkeypatch.setattr(HeldOutScorer, "score", noted)
    clf = quick(("hamming", own), max_epochs=3, shrinkage=0.0).fit(X, Y)
    best = heard[0 if grows else 2]
    assert len(heard) == 3
    np.testing.assert_array_equal(clf.networks_[0], best[0])


def test_statistics_of_ones_own(halves):
    X, Y, X_test, _ = halves
    settings = {"incumbent": "micro_f1", "shrinkage": 0.5}
    clf = quick(("micro_f1", ShareAbove), **settings).fit(X, Y)
    few = clf.select("share_above").predict(X_test).mean()
    assert few < clf.predict(X_test).mean()


def test_two_classes():
    """One label has no ranking, and cross-entropy needs none."""
    X, Y = make_multilabel_classification(n_samples=120, random_state=0)
    y = np.array(["no", "yes"])[Y[:, 0]]
    clf = quick((cost,), shrinkage=0.5).fit(X, y)
    assert clf.predict(X).shape == (120,)
    assert clf.front_.loss_names == ("cost",)
    assert clf.front_.losses.shape == (1, 1)


def test_the_same_bits_with_threads_and_again(halves):
    X, Y, *_ = halves
    fitted = [
        quick(("lrap", cost), n_jobs=n_jobs, shrinkage=0.5).fit(X, Y)
        for n_jobs in (1, 1, 3)
    ]
    for other in fitted[1:]:
        np.testing.assert_array_equal(other.front_.losses, fitted[0].front_.losses)
        np.testing.assert_array_equal(other.theta_, fitted[0].theta_)


# How often functions are called, and whether they can be


@pytest.mark.parametrize("slow", [False, True])
def test_calls_are_bounded(halves, monkeypatch, slow):
    X, Y, *_ = halves
    calls = []

    def counted(Y, scores):
        calls.append(len(Y))
        return cost(Y, scores)

    monkeypatch.setattr(_own_losses, "_SLOW", 0.0 if slow else 1e9)
    clf = quick((counted,), max_epochs=3)
    if slow:
        with pytest.warns(
            UserWarning, match=r"'counted' takes .* s\. .* about 2,350 calls"
        ):
            clf.fit(X, Y)
    else:
        clf.fit(X, Y)
    budget = map_budget(get_losses((counted,)), slow)
    of_epochs = 2 * 3 + 1  # the last is that of the model before its map
    assert len(calls) <= budget.n_calls + of_epochs + 4
    assert len(calls) < (2_500 if slow else 14_000) < FULL.n_calls


def targets_of(n=20, weight=None):
    Y = np.random.default_rng(0).integers(0, 2, (n, 3))
    return RowTargets.from_indicator(Y, weight)


def test_slow_functions():
    seen = []

    def slow(Y, scores):
        seen.append(len(Y))
        time.sleep(0.03)
        return 0.5

    def slow_at_first(Y, scores):
        if len(seen) < 2:
            slow(Y, scores)
        return 0.5

    assert not are_slow(get_losses((slow_at_first,)), targets_of())
    seen.clear()
    with pytest.warns(UserWarning, match=r"A call of the loss 'slow' takes 0\.0\d+ s"):
        assert are_slow(get_losses((slow,)), targets_of())
    assert seen == [10, 20, 20]


def test_functions_are_tried_before_anything_is_trained(halves, monkeypatch):
    X, Y, *_ = halves
    monkeypatch.setattr("clml._training.members.AscendingMembers.step", None)

    def fails(Y, scores):
        raise ZeroDivisionError("no rows of that kind")

    with pytest.raises(ZeroDivisionError, match="no rows of that kind") as caught:
        quick(("hamming", fails)).fit(X, Y)
    (note,) = caught.value.__notes__
    assert note == (
        "The loss function 'fails' raised this, given Y and scores of shape (150, 5)."
    )
    with pytest.raises(TypeError, match="'text' must return a number, got str"):
        quick((named("text", "much"),)).fit(X, Y)
    with pytest.raises(ValueError, match="'cost' takes no sample_weight"):
        quick((cost,)).fit(X, Y, sample_weight=np.linspace(1, 2, len(Y)))


def named(name, value):
    def function(Y, scores):
        return value

    function.__name__ = name
    return function


def test_functions_only_half_of_the_rows_is_too_few_for(halves):
    X, Y, *_ = halves

    def picky(Y, scores):
        if len(Y) < 200:
            raise ValueError("too few rows")
        return cost(Y, scores)

    with pytest.raises(ValueError, match="too few rows"):
        quick((picky,)).fit(X, Y)
    # A strength that is given needs no halves, but they judge the front.
    with pytest.raises(ValueError, match="too few rows"):
        quick((picky,), shrinkage=0.5).fit(X, Y)


def test_weights_reach_functions(halves):
    X, Y, *_ = halves
    weight = np.where(np.arange(len(Y)) % 2, 3.0, 0.0)
    sums = set()

    def weighted(Y, scores, sample_weight=None):
        sums.add(sample_weight.sum())
        wrong = ((scores > 0) != Y).mean(axis=1)
        return np.average(wrong, weights=sample_weight)

    clf = quick(("lrap", weighted), shrinkage=0.5).fit(X, Y, sample_weight=weight)
    # Of all rows, of halves, and without one of ten groups; never of rows of weight 0.
    assert sums == {weight.sum() * share for share in (1, 0.5, 0.9)}
    expected = loss_values(Y, clf.decision_function(X), (weighted,), weight)
    assert 0 <= expected <= 1


def test_values_outside_of_their_range_are_told(halves):
    X, Y, *_ = halves
    with pytest.warns(UserWarning, match="'too_large' takes values from 5 to 5"):
        quick(("hamming", named("too_large", 5.0)), shrinkage=0.5).fit(X, Y)


# Runs that go on


class BrokenOffError(Exception):
    """Stands for whatever ends a process."""


def test_a_run_goes_on_with_the_calls_that_it_was_to_make(
    halves, monkeypatch, tmp_path
):
    """Another machine may be faster: that must not change the model."""
    X, Y, *_ = halves
    settings = {"max_epochs": 4, "checkpoint_every": 0}
    monkeypatch.setattr(_own_losses, "_SLOW", 0.0)
    with pytest.warns(UserWarning, match="instead of"):
        whole = quick(("lrap", cost), max_epochs=4).fit(X, Y)
    written = []
    offer = Checkpoint.offer

    def offered(self, *arguments, **keywords):
        offer(self, *arguments, **keywords)
        written.append(None)
        if len(written) == 2:
            raise BrokenOffError

    monkeypatch.setattr(Checkpoint, "offer", offered)
    clf = quick(("lrap", cost), checkpoint=tmp_path / "run", **settings)
    with pytest.warns(UserWarning, match="instead of"), pytest.raises(BrokenOffError):
        clf.fit(X, Y)
    monkeypatch.setattr(_own_losses, "_SLOW", 1e9)
    clf.fit(X, Y)
    assert clf.n_epochs_ == 4
    np.testing.assert_array_equal(clf.front_.losses, whole.front_.losses)
    np.testing.assert_array_equal(clf.theta_, whole.theta_)


def test_a_warm_start(halves):
    X, Y, *_ = halves
    clf = quick(("lrap", cost), max_epochs=2, shrinkage=0.5, warm_start=True)
    clf.fit(X, Y).fit(X, Y)
    assert clf.n_epochs_ == 4
    assert clf.history_["incumbent_validation"].shape == (4, 2)
