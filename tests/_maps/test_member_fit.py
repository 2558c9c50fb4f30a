"""A fit with several members, from the data to what predicts."""

import copy
import pickle
import time

import numpy as np
import pytest
import scipy.sparse as sp
from nested_settings import nested
from numpy.testing import assert_allclose, assert_array_equal
from short_maps import shorten_maps
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification

import clml._training.recipe
import clml.engine._numpy
from clml import CMA, CLMLClassifier
from clml._learners.bare_models import bare_models
from clml._maps import member_fit as _member_fit
from clml._maps.calibration import fit_temperatures
from clml._maps.map_search import EvolvedMap
from clml._maps.member_fit import mapped_networks, plain_outputs
from clml._training.ascent import after_epoch
from clml._training.init import n_before_last
from clml._training.members import AscendingMembers
from clml.lebesgue import nondominated
from clml.losses import (
    Loss,
    RowTargets,
    Statistic,
    get_loss,
    list_losses,
    loss_values,
)
from clml.network import Layout, forward

LOSSES = ("hamming", "lrap", "micro_f1")
KINDS = ("ascent", "cma", "rank_gradient")

# Networks that were hardly trained: where no model is clearly better than the default.
pytestmark = pytest.mark.filterwarnings(
    "ignore:No model of the front is clearly better"
)

each_search = pytest.mark.parametrize("search", KINDS)
each_population = pytest.mark.parametrize("search", ["cma", "rank_gradient"])
each_size = pytest.mark.parametrize("n_members", [1, 4])
constant_labels = pytest.mark.filterwarnings("ignore:.*labels are constant")


@pytest.fixture(autouse=True)
def short_search_for_maps(monkeypatch):
    shorten_maps(monkeypatch, 5)


def quick(search="ascent", n_members=4, **settings):
    given = {"search": search, "n_members": n_members, "random_state": 0}
    given |= {"embedding_dim": 4, "max_epochs": 4}
    if search in ("cma", "rank_gradient"):
        given["population_size"] = 6
    if has_maps(search, n_members):
        given["shrinkage"] = 1.0
    return CLMLClassifier(**nested(given | settings))


def assert_same_model(a, b):
    for name in ("theta_", "archive_losses_"):
        assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert a.temperature_ == b.temperature_
    for name in ("losses", "theta", "temperature", "standard_error", "default"):
        assert_array_equal(getattr(a.front_, name), getattr(b.front_, name))
    for name in a.history_.keys() - {"seconds"}:
        assert_array_equal(a.history_[name], b.history_[name], err_msg=name)


def has_maps(search, n_members):
    """Whether the front holds maps of outputs, not weights of networks."""
    return search in ("auto", "ascent") or n_members > 1


# What fit leaves


@each_search
@each_size
def test_shapes(small_data, search, n_members):
    X, Y = small_data
    clf = quick(search, n_members).fit(X, Y)
    n = clf.layout_.size
    assert clf.theta_.shape == ((n,) if n_members == 1 else (n_members, n))
    assert clf.theta_.dtype == np.float32
    front = clf.front_
    assert front.loss_names == LOSSES
    # The default stays, whatever the others.
    others = np.delete(front.losses, [] if front.default is None else front.default, 0)
    assert nondominated(others).all()
    assert np.isfinite(front.losses).all()
    assert clf.n_epochs_ == 4
    assert not clf.interrupted_
    if has_maps(search, n_members):
        assert clf.networks_.shape == (n_members, n)
        assert clf.networks_.dtype == np.float32
        assert front.theta.shape == (len(front), 2 * 4)
        assert clf.shrinkage_ == 1.0
        assert np.isfinite(clf.shift_)
        assert clf.archive_losses_.shape == (4, 3)
    else:
        assert not hasattr(clf, "networks_")
        assert front.theta.shape == (len(front), n)
        assert clf.archive_losses_.shape == (4 * 6, 3)


@each_search
@each_size
def test_history(small_data, search, n_members):
    history = quick(search, n_members).fit(*small_data).history_
    rows = ("train", "validation")
    per_loss = {f"{who}_{where}" for who in ("incumbent", "mean") for where in rows}
    per_loss |= {"undefined"}
    tracked = {
        f"incumbent_{name}_{where}"
        for name in ("binary_cross_entropy", "row_log_loss")
        for where in rows
    }
    scalars = {"sigma", "measure", "archive_measure", "seconds"}
    assert history.keys() == per_loss | tracked | scalars
    for name, values in history.items():
        assert values.shape == ((4, 3) if name in per_loss else (4,)), name
        assert np.isfinite(values).all(), name
    assert (np.diff(history["archive_measure"]) >= 0).all()
    if search == "ascent":
        assert history["sigma"][0] == 0.01
        assert (np.diff(history["sigma"]) < 0).all()


@each_search
@each_size
def test_methods_agree(small_data, search, n_members):
    X, Y = small_data
    clf = quick(search, n_members).fit(X, Y)
    scores = clf.decision_function(X)
    assert scores.shape == Y.shape
    assert_array_equal(clf.predict(X), scores > 0)
    assert_allclose(clf.predict_proba(X), 1 / (1 + np.exp(-scores)), 1e-6)
    networks = np.atleast_2d(clf.theta_).astype(float)
    logits = forward(networks, X, clf.layout_, clf.scaling_).mean(axis=0)
    assert_allclose(scores * clf.temperature_, logits, 1e-9, 1e-12)


def test_rows_are_predicted_a_part_at_a_time(small_data, monkeypatch):
    X, Y = small_data
    clf = quick().fit(X, Y)
    expected = clf.decision_function(X)
    monkeypatch.setattr(clml.network._predict, "_ROWS_AT_A_TIME", 7)
    assert_allclose(clf.decision_function(X), expected, 1e-12)
    assert clf.predict(X[:1]).shape == (1, 4)


@each_search
@each_size
def test_front_holds_losses_of_the_validation_rows(small_data, search, n_members):
    X, Y = small_data
    clf = quick(search, n_members)
    clf.fit(X[:80], Y[:80], X_val=X[80:], y_val=Y[80:])
    front = clf.front_
    for member, losses in enumerate(front.losses):
        scores = clf.select(member).decision_function(X[80:])
        expected = loss_values(Y[80:], scores)
        if search == "ascent":  # maps that were learnt without a row judge it
            off = np.abs(losses - expected)
            assert (off <= 3 * front.standard_error[member] + 1e-6).all()
        else:
            # Logits of one decision more or less near 0 may be rounded across it.
            assert_allclose(losses, expected, atol=1e-6)
        # The temperature is that of this very candidate: none is left to fit.
        targets = RowTargets.from_indicator(Y[80:])
        assert_allclose(fit_temperatures(scores[None], targets), 1, rtol=0.02)


@each_search
@each_size
@pytest.mark.parametrize("which", [*LOSSES, "knee", "geometric_mean", "final", "mean"])
def test_select(small_data, search, n_members, which, chosen_from):
    X, _ = small_data
    clf = chosen_from(search, n_members)
    final, mean = (clf._alternatives[name][0] for name in ("final", "mean"))
    # An ascent of maps has one end; an evolution has a mean and a last candidate.
    assert (final != mean).any() == (search != "ascent")
    before = clf.decision_function(X)
    chosen = clf.select(which)
    assert chosen is not clf
    assert chosen.front_ is clf.front_
    if which in ("final", "mean"):
        candidate, temperature = clf._alternatives[which]
    else:
        member = clf.front_.select(which)
        assert chosen.incumbent_ == member
        candidate = clf.front_.theta[member]
        temperature = clf.front_.temperature[member]
        assert_array_equal(clf.select(int(member)).theta_, chosen.theta_)
    assert chosen.temperature_ == temperature
    if has_maps(search, n_members):
        networks = forward(clf.networks_.astype(float), X, clf.layout_, clf.scaling_)
        scale, bias = np.split(candidate.astype(float), 2)
        logits = scale * networks.mean(axis=0) + bias
        found = chosen.decision_function(X) * temperature
        assert_allclose(found, logits, 1e-4, 1e-5)
    else:
        assert_array_equal(chosen.theta_, candidate)
    assert_array_equal(clf.decision_function(X), before)


@pytest.fixture(scope="module")
def chosen_from(small_data):
    """Return fitted models by search and number of members, each fitted once."""
    known = {}

    def model(search, n_members):
        if (search, n_members) not in known:
            clf = quick(search, n_members)
            known[search, n_members] = clf.fit(*small_data)
        return known[search, n_members]

    return model


@each_search
@each_size
def test_select_by_weights(search, n_members, chosen_from):
    clf = chosen_from(search, n_members)
    weights = {"hamming": 3.0, "micro_f1": 1.0}
    chosen = clf.select(weights=weights)
    assert chosen.incumbent_ == clf.front_.select(weights=weights)


@pytest.mark.parametrize("incumbent", ["final", "mean", "knee", "lrap"])
def test_incumbent_chooses_at_fit(small_data, incumbent):
    clf = quick(incumbent=incumbent).fit(*small_data)
    assert_array_equal(clf.theta_, clf.select(incumbent).theta_)


def test_calibration_changes_no_decision(small_data):
    X, Y = small_data
    scaled, plain = (quick(calibrate=c, max_epochs=9).fit(X, Y) for c in (True, False))
    assert plain.temperature_ == 1.0 != scaled.temperature_
    assert_array_equal(scaled.theta_, plain.theta_)
    assert_array_equal(scaled.predict(X), plain.predict(X))


# The same again


@each_search
@each_size
@pytest.mark.parametrize("sparse", [False, True])
def test_threads_and_memory_change_no_bit(
    small_data, search, n_members, sparse, monkeypatch
):
    monkeypatch.setattr(clml.engine._numpy, "_SMALL_WORK", 0)  # use the threads
    X, Y = small_data
    X = sp.csr_matrix(np.where(X > 4, X, 0)) if sparse else X
    one = quick(search, n_members, max_epochs=2).fit(X, Y)
    for settings in ({}, {"n_jobs": 2}, {"n_jobs": 3, "memory_mb": 1e-3}):
        other = quick(search, n_members, max_epochs=2, **settings)
        assert_same_model(one, other.fit(X, Y))
    other = quick(search, n_members, max_epochs=2, random_state=1).fit(X, Y)
    assert (one.theta_ != other.theta_).any()


@each_search
@each_size
def test_fit_starts_anew(small_data, search, n_members):
    clf = quick(search, n_members).fit(*small_data)
    again = pickle.loads(pickle.dumps(clf))
    assert_same_model(again, clf)
    assert_same_model(again.fit(*small_data), clf)
    assert_same_model(clone(clf).fit(*small_data), clf)


def test_attributes_of_members_go_with_them(small_data):
    clf = quick().fit(*small_data)
    clf.set_params(search=CMA(population_size=6), n_members=1, shrinkage="auto")
    clf.fit(*small_data)
    assert not hasattr(clf, "networks_")
    assert clf.population_size_ == 6
    assert clf.select("hamming").theta_.ndim == 1
    clf.set_params(n_members=4).fit(*small_data)
    assert not hasattr(clf, "population_size_")


# Rows


@each_search
@each_size
def test_rows_of_weight_zero_are_as_if_absent(small_data, search, n_members):
    X, Y = small_data
    weight = np.tile([0.0, 1.0, 2.0], 40)
    used = weight > 0
    assert_same_model(
        quick(search, n_members).fit(X, Y, sample_weight=weight),
        quick(search, n_members).fit(X[used], Y[used], sample_weight=weight[used]),
    )


@each_search
@each_size
def test_weights_matter(small_data, search, n_members):
    X, Y = small_data
    weighted = quick(search, n_members).fit(X, Y, np.linspace(0.1, 8.0, len(X)))
    plain = quick(search, n_members).fit(X, Y)
    assert (weighted.theta_ != plain.theta_).any()
    assert np.isfinite(weighted.front_.losses).all()


@each_search
@each_size
def test_validation_rows_judge(small_data, search, n_members):
    X, Y = small_data
    clf = quick(search, n_members).fit(X[:80], Y[:80], X_val=X[80:], y_val=Y[80:])
    other = quick(search, n_members)
    other.fit(X[:80], Y[:80], X_val=X[80:], y_val=1 - Y[80:])
    a, b = (model.history_ for model in (clf, other))
    assert_array_equal(a["incumbent_train"], b["incumbent_train"])
    assert (a["incumbent_validation"] != b["incumbent_validation"]).any()


@each_search
def test_without_rows_that_judge_the_mean_predicts(small_data, search):
    X, Y = small_data
    clf = quick(search, 1, validation_fraction=0).fit(X, Y)
    assert clf.incumbent_ == "mean"
    assert np.isnan(clf.front_.standard_error).all()
    if search == "cma":
        for member, losses in enumerate(clf.front_.losses):
            scores = clf.select(member).decision_function(X)
            assert_allclose(losses, loss_values(Y, scores), atol=1e-6)


@each_search
@each_size
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
@constant_labels
def test_few_rows(small_data, search, n_members, n):
    X, Y = small_data
    all_rows = {"validation_fraction": 0} if n_members == 1 else {}
    clf = quick(search, n_members, max_epochs=2, **all_rows)
    clf.fit(X[:n], Y[:n])
    assert np.isfinite(clf.decision_function(X)).all()
    assert np.isfinite(clf.front_.losses).all()


@each_search
@constant_labels
def test_the_choice_of_a_strength_on_few_rows(small_data, search):
    X, Y = small_data
    for n in (1, 2, 5):
        clf = quick(search, shrinkage="auto", max_epochs=2).fit(X[:n], Y[:n])
        assert clf.predict(X).shape == Y.shape


@each_search
@each_size
def test_sparse_equals_dense(small_data, search, n_members):
    X, Y = small_data
    X = np.where(X > 4, X, 0)
    models = []
    for form in (np.asarray, sp.csr_matrix, sp.csr_array):
        # One epoch, no map: whole runs part ways where rounding decides.
        clf = quick(search, n_members, max_epochs=1, calibrate=False)
        if has_maps(search, n_members):
            clf.set_params(shrinkage=0.0)
        models.append(clf.fit(form(X), Y).decision_function(form(X)))
    for scores in models[1:]:
        assert_allclose(scores, models[0], rtol=0.02, atol=0.02)


def test_features_beyond_float32_are_refused(small_data):
    X, Y = small_data
    with pytest.raises(ValueError, match=r"must stay finite .*float32"):
        quick(standardize=False).fit(X * 1e40, Y)


@each_search
@each_size
@constant_labels
def test_targets_with_nothing_to_learn(small_data, search, n_members):
    X, Y = small_data
    for labels in (np.zeros_like(Y), np.ones_like(Y), Y * [0, 1, 1, 1]):
        clf = quick(search, n_members, max_epochs=2).fit(X, labels)
        assert np.isfinite(clf.decision_function(X)).all()


@each_search
@each_size
def test_one_label(small_data, search, n_members):
    X, Y = small_data
    y = np.where(Y[:, 0] == 1, "yes", "no")
    clf = quick(search, n_members).fit(X, y)
    assert clf.predict(X).shape == clf.decision_function(X).shape == (120,)
    assert clf.predict_proba(X).shape == (120, 2)
    assert_array_equal(clf.predict(X), clf.classes_[(clf.decision_function(X) > 0) * 1])
    column = quick(search, n_members).fit(X, Y[:, :1])
    assert_array_equal(column.theta_, clf.theta_)
    assert column.predict(X).shape == (120, 1)
    assert (column.front_.losses[:, 1] == 0).all()


# Losses

OBJECTIVES = list_losses(role="objective")
ADDITIVE = [name for name in OBJECTIVES if get_loss(name).additive]


@pytest.mark.parametrize("n_losses", [2, 3, 4, 5])
@pytest.mark.parametrize("first", range(0, len(ADDITIVE), 4))
def test_losses_of_the_registry(small_data, n_losses, first):
    X, Y = small_data
    Y = np.hstack([Y, Y[:, :2]])  # as many as the precision at 5 needs
    losses = tuple(np.roll(ADDITIVE, -first)[:n_losses].tolist())
    clf = quick(losses=losses, max_epochs=3).fit(X, Y)
    assert clf.front_.losses.shape[1] == n_losses
    assert np.isfinite(clf.front_.losses).all()
    assert clf.select(losses[-1]).predict(X).shape == Y.shape


def miss_rate(Y, scores):
    return 1 - ((scores > 0) & (Y == 1)).sum() / Y.sum()


class OwnStatistic(Loss):
    name = "own_statistic"
    statistics = (Statistic("above", lambda Y, s, t: (s > t).mean(axis=-1)),)

    def close(self, sums, weight, n_labels):
        return sums["above"] / weight


@each_size
@pytest.mark.parametrize("loss", [miss_rate, OwnStatistic])
def test_losses_without_gradients_judge_and_map(small_data, loss, n_members):
    """Members are trained as if they were not there; the front knows them."""
    losses = ("hamming", loss)
    clf = quick("auto", n_members, losses=losses).fit(*small_data)
    assert_same_model(clf, quick("ascent", n_members, losses=losses).fit(*small_data))
    without = quick("ascent", n_members, losses=("hamming",)).fit(*small_data)
    for name in ("incumbent_train", "incumbent_validation", "mean_validation"):
        assert_array_equal(clf.history_[name][:, :1], without.history_[name])
        assert np.isfinite(clf.history_[name]).all()
    assert_array_equal(
        clf.history_["mean_train"][:, :1], without.history_["mean_train"]
    )
    assert np.isnan(clf.history_["mean_train"][:, 1]).all()
    assert_array_equal(clf.history_["undefined"], 0)
    name = get_loss(loss).name
    assert clf.front_.loss_names == ("hamming", name)
    best = clf.select(name)
    smallest = clf.front_.losses[:, 1].argmin()
    assert best.incumbent_ in (smallest, clf.front_.default)
    chosen = quick("auto", n_members, losses=losses, incumbent=name).fit(*small_data)
    assert_array_equal(chosen.theta_, best.theta_)


def test_auto_ascends_where_it_can(small_data):
    assert_same_model(quick("auto").fit(*small_data), quick().fit(*small_data))


@pytest.mark.parametrize("search", ["ascent", "cma"])
def test_a_loss_that_is_undefined_at_times(small_data, search):
    calls = []

    def sometimes_undefined(Y, scores):
        calls.append(None)
        return np.nan if len(calls) % 3 == 0 else miss_rate(Y, scores)

    clf = quick(search, losses=("hamming", sometimes_undefined))
    with pytest.warns(UserWarning, match="'sometimes_undefined' was NaN or infinite"):
        clf.fit(*small_data)
    assert np.isfinite(clf.front_.losses).all()
    assert clf.history_["undefined"].sum(axis=0)[1] > 0


@pytest.mark.parametrize("search", ["ascent", "cma"])
def test_losses_that_are_never_defined_are_an_error(small_data, search):
    def undefined(Y, scores):
        return np.nan

    with pytest.raises(ValueError, match=r"first epoch .*Undefined: \['undefined'\]"):
        quick(search, losses=("hamming", undefined)).fit(*small_data)


# Starts, and what is trained


@each_search
@each_size
@pytest.mark.parametrize("losses", [LOSSES, ("hamming", miss_rate)], ids=["row", "any"])
def test_a_surrogate_start(small_data, search, n_members, losses):
    X, Y = small_data
    settings = {"losses": losses, "max_epochs": 6}
    clf = quick(search, n_members, init="surrogate", **settings).fit(X, Y)
    plain = quick(search, n_members, **settings).fit(X, Y)
    assert (clf.theta_ != plain.theta_).any()
    assert np.isfinite(clf.front_.losses).all()


def test_a_surrogate_start_knows_something(small_data):
    X, Y = small_data
    first = [
        quick("rank_gradient", 4, init=init, max_epochs=1).fit(X, Y).history_
        for init in ("surrogate", "random")
    ]
    known, guessed = (h["incumbent_binary_cross_entropy_validation"] for h in first)
    assert known < guessed


@each_population
@each_size
def test_only_the_output_layer_is_evolved(small_data, search, n_members):
    X, Y = small_data
    models = [
        quick(search, n_members, evolve="last", max_epochs=e).fit(X, Y) for e in (1, 5)
    ]
    networks = [np.atleast_2d(getattr(m, "networks_", m.theta_)) for m in models]
    before = n_before_last(models[0].layout_)
    assert_array_equal(networks[0][:, :before], networks[1][:, :before])
    assert np.ptp(models[1].history_["incumbent_train"], axis=0).any()
    if n_members > 1:  # members start apart
        assert (networks[0][0, :before] != networks[0][1, :before]).any()


@each_population
def test_the_output_layer_after_a_surrogate(small_data, search):
    X, Y = small_data
    settings = {"evolve": "last", "max_epochs": 10}
    one, other = (
        quick(search, init=init, **settings).fit(X, Y).networks_
        for init in ("surrogate", "random")
    )
    assert (one[:, :10] != other[:, :10]).any()


@pytest.mark.parametrize(
    "settings",
    [
        {"dropout": 0.3},
        {"n_layers": 2},
        {"batch_size": 1},
        {"batch_size": 10_000},
        {"learning_rate": 0.1},
        {"smoothing": 2.0},
        {"shrinkage": 0.0},
        {"shrinkage": "auto"},
        {"weight_decay": 0.1},
        {"ties": None, "search": "cma"},
        {"standardize": False},
        {"max_front": 4},
        {"population_size": None, "search": "rank_gradient"},
        {"learning_rate": 0.5, "search": "rank_gradient"},
        {"epoch_rows": 0.1, "search": "rank_gradient"},
        {"epoch_rows": 0.001, "search": "cma"},
        {"covariance": "separable", "search": "cma"},
        {"lebesgue": "monte_carlo", "n_samples": 50, "search": "cma"},
    ],
    ids=str,
)
def test_settings_matter_and_repeat(small_data, settings):
    settings = {"max_epochs": 2, **settings}
    a, b = (quick(**settings).fit(*small_data) for _ in range(2))
    assert_same_model(a, b)
    assert np.isfinite(a.front_.losses).all()
    if "max_front" in settings:
        assert len(a.front_) <= 4


def test_settings_of_the_ascent_change_it(small_data):
    plain = quick().fit(*small_data)
    for settings in (
        {"dropout": 0.3},
        {"batch_size": 5},
        {"learning_rate": 0.1},
        {"smoothing": 2.0},
        {"weight_decay": 0.1},
    ):
        other = quick(**settings).fit(*small_data)
        assert (other.networks_ != plain.networks_).any(), settings


# How a run ends and goes on


@each_search
@each_size
def test_patience(small_data, search, n_members):
    clf = quick(search, n_members, max_epochs=300, patience=2).fit(*small_data)
    measure = clf.history_["archive_measure"]
    assert len(measure) < 300
    assert measure[-1] == measure[-3]
    assert (measure[2:-1] > measure[:-3]).all()


@each_search
@each_size
def test_max_seconds(small_data, search, n_members):
    began = time.perf_counter()
    clf = quick(search, n_members, max_epochs=100_000, max_seconds=0.05)
    clf.fit(*small_data)
    assert clf.n_epochs_ < 100_000
    assert time.perf_counter() - began < 5


@each_search
def test_verbose_prints_a_line_an_epoch(small_data, search, capsys):
    quick(search, verbose=1).fit(*small_data)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["epoch", str(i)] for i in range(1, 5)
    ]


@each_search
@each_size
def test_warm_start_goes_on(small_data, search, n_members):
    clf = quick(search, n_members, warm_start=True).fit(*small_data)
    first = clf.history_
    before = clf.theta_.copy()
    clf = pickle.loads(pickle.dumps(clf))
    clf.set_params(max_epochs=3).fit(*small_data)
    assert clf.n_epochs_ == 7
    assert (clf.theta_ != before).any()
    for name, values in clf.history_.items():
        assert len(values) == 7, name
        assert_array_equal(values[:4], first[name], err_msg=name)
    assert (np.diff(clf.history_["archive_measure"]) >= 0).all()


@pytest.mark.parametrize("evolve", ["all", "last"])
def test_evolved_members_go_on_as_if_never_stopped(small_data, evolve):
    """The search itself; which epoch predicts is judged anew."""
    clf = quick("cma", warm_start=True, evolve=evolve).fit(*small_data)
    clf.set_params(max_epochs=3).fit(*small_data)
    whole = quick("cma", max_epochs=7, evolve=evolve).fit(*small_data)
    for name in clf.history_.keys() - {"seconds"}:
        assert_array_equal(clf.history_[name], whole.history_[name], err_msg=name)


def test_a_surrogate_start_is_not_repeated(small_data, monkeypatch):
    plans = []

    def noted(climbers, rows, targets, loss_set, plan, begun, run_all):
        plans.append(plan)
        return AscendingMembers(climbers, rows, targets, loss_set, plan, begun, run_all)

    monkeypatch.setattr(clml._training.builder, "AscendingMembers", noted)
    clf = quick(warm_start=True, init="surrogate", max_epochs=10).fit(*small_data)
    clf.fit(*small_data)
    assert [plan.surrogate_epochs for plan in plans] == [3, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_members": 3}, "n_members=4, got n_members=3"),
        ({"search": "cma"}, r"search=Ascent\(\), got search=CMA\(\)"),
        ({"search__init": "surrogate"}, r"got search=Ascent\(init='surrogate'\)"),
        ({"losses": ("hamming", "lrap")}, "got losses="),
        ({"network__embedding_dim": 5}, r"got network=PaperNetwork\(embedding_dim=5"),
    ],
    ids=range(5),
)
def test_warm_start_refuses_another_search(small_data, change, message):
    clf = quick(warm_start=True, max_epochs=1).fit(*small_data)
    with pytest.raises(ValueError, match=message):
        clf.set_params(**change).fit(*small_data)


def test_a_warm_start_may_go_on_with_other_steps(small_data):
    """What an ascent reads at each step is no matter of how it began."""
    clf = quick(warm_start=True, max_epochs=1).fit(*small_data)
    clf.set_params(search__learning_rate=0.05, network__dropout=0.2).fit(*small_data)
    same = quick(warm_start=True, max_epochs=1).fit(*small_data).fit(*small_data)
    assert clf.n_epochs_ == 2
    assert clf.history_["sigma"][1] == 0.05
    assert (clf.networks_ != same.networks_).any()


@each_population
def test_a_warm_start_of_a_population_goes_on_as_it_began(small_data, search):
    clf = quick(search, warm_start=True, max_epochs=1).fit(*small_data)
    with pytest.raises(ValueError, match="warm_start continues a search with search="):
        clf.set_params(search__epoch_rows=0.5).fit(*small_data)


def test_a_warm_start_keeps_its_members(small_data, monkeypatch):
    """Their number by default depends on the rows, which may be others."""
    monkeypatch.setattr(clml._training.recipe, "MANY_ROWS", 100)
    X, Y = small_data
    clf = quick(n_members=None, warm_start=True, max_epochs=1).fit(X[:60], Y[:60])
    assert len(clf.networks_) == 16
    with pytest.warns(UserWarning, match="goes on with other rows"):
        assert len(clf.fit(X, Y).networks_) == 16
    assert clf.n_epochs_ == 2
    assert len(quick(n_members=None, max_epochs=1).fit(X, Y).networks_) == 8


def test_copies_do_not_share_a_run(small_data):
    clf = quick(warm_start=True).fit(*small_data)
    assert copy.copy(clf).fit(*small_data).n_epochs_ == 4
    assert clf.select("mean").fit(*small_data).n_epochs_ == 4
    assert clf.fit(*small_data).n_epochs_ == 8


class InterruptAt:
    """Raises like a user would, at the n-th call of a function."""

    def __init__(self, function, n):
        self.function, self.n, self.calls = function, n, 0

    def __call__(self, *arguments, **named):
        self.calls += 1
        if self.calls == self.n:
            raise KeyboardInterrupt
        return self.function(*arguments, **named)


# Where each kind is in the middle of an epoch, and calls an epoch.
MIDDLE = {
    "ascent": ("clml._training.member_epochs.after_epoch", 4),
    "cma": ("clml._training.member_epochs.defined_losses", 4),
    "rank_gradient": ("clml._training.member_epochs.defined_losses", 4),
}


def interrupting(monkeypatch, search, at):
    path, _ = MIDDLE[search]
    if search == "ascent":
        wrapped = InterruptAt(after_epoch, at)
        monkeypatch.setattr(path, lambda *a: wrapped(*a))
    else:
        monkeypatch.setattr(
            path, InterruptAt(clml._training.member_epochs.defined_losses, at)
        )


@each_search
@pytest.mark.parametrize(("at", "n_epochs"), [(1, 0), (3, 0), (11, 2)])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_keeps_the_model(
    small_data, search, at, n_epochs, n_jobs, monkeypatch
):
    X, Y = small_data
    clf = quick(search, n_jobs=n_jobs, max_epochs=10)
    with monkeypatch.context() as patch:
        interrupting(patch, search, at)
        with pytest.raises(KeyboardInterrupt):
            clf.fit(X, Y)
    assert clf.interrupted_
    assert clf.n_epochs_ == n_epochs
    assert np.isfinite(clf.decision_function(X)).all()
    assert np.isfinite(clf.front_.losses).all()
    assert clf.select("lrap").predict(X).shape == Y.shape
    with monkeypatch.context() as patch:
        interrupting(patch, search, at)
        kept = quick(search, max_epochs=10, keep_on_interrupt=True).fit(X, Y)
    assert kept.interrupted_
    if n_jobs == 1:
        assert_same_model(kept, clf)


def test_an_interrupted_run_goes_on(small_data, monkeypatch):
    X, Y = small_data
    clf = quick("cma", warm_start=True, keep_on_interrupt=True)
    with monkeypatch.context() as patch:
        interrupting(patch, "cma", 11)
        clf.fit(X, Y)
    assert clf.n_epochs_ == 2
    clf.fit(X, Y)
    assert clf.n_epochs_ == 6
    whole = quick("cma", max_epochs=6).fit(X, Y)
    judged = "incumbent_validation"
    assert_array_equal(clf.history_[judged], whole.history_[judged])


def test_a_second_interrupt_keeps_the_plain_outputs(small_data, monkeypatch):
    """While the maps are evolved, after the last epoch."""

    def interrupted(*arguments, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(_member_fit, "evolve_map", interrupted)
    X, Y = small_data
    clf = quick()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, Y)
    assert clf.interrupted_
    assert clf.n_epochs_ == 4
    assert_array_equal(clf.theta_, clf.networks_)
    assert (clf.shrinkage_, clf.shift_, clf.temperature_) == (0.0, 0.0, 1.0)


# It learns


@pytest.mark.parametrize("init", ["random", "surrogate"])
@pytest.mark.parametrize("n_members", [1, 4])
def test_what_can_be_separated_is_learnt(init, n_members):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    Y = (X[:, :3] > 0).astype(int)
    clf = quick(
        n_members=n_members,
        init=init,
        embedding_dim=16,
        max_epochs=100,
        learning_rate=0.02,
        shrinkage=0.0,
    )
    clf.fit(X[:150], Y[:150])
    found = loss_values(Y[:150], clf.decision_function(X[:150]))
    assert (found < 0.05).all()
    assert (loss_values(Y[150:], clf.decision_function(X[150:])) < 0.12).all()


def test_members_know_more_than_one():
    """Held-out rows of three noisy problems: each loss is smaller."""
    ratios = []
    for seed in range(3):
        X, Y = make_multilabel_classification(
            n_samples=500, n_features=12, n_classes=5, random_state=seed
        )
        losses = [
            loss_values(
                Y[150:],
                quick(n_members=n, embedding_dim=16, max_epochs=30, random_state=seed)
                .fit(X[:150], Y[:150])
                .decision_function(X[150:]),
            )
            for n in (8, 1)
        ]
        ratios.append(losses[0] / losses[1])
    assert (np.mean(ratios, axis=0) < 0.98).all()
    assert np.mean(ratios) < 0.9


# The pieces


def test_mapped_networks_by_hand():
    layout = Layout(n_features=2, n_labels=2, embedding_dim=3)
    rng = np.random.default_rng(0)
    networks = rng.normal(size=(3, layout.size)).astype(np.float32)
    X = rng.normal(size=(4, 2))
    theta = np.array([2.0, 0.5, -1.0, 4.0])  # scales, then biases
    expected = forward(networks.astype(float), X, layout) * [2, 0.5] + [-1, 4]
    mapped = mapped_networks(networks, layout, theta)
    assert mapped.dtype == np.float32
    assert_allclose(forward(mapped.astype(float), X, layout), expected, 1e-5, 1e-6)
    alone = mapped_networks(networks[:1], layout, theta)
    assert_array_equal(alone, mapped[0])


def test_plain_outputs_are_the_identity():
    class Run:
        class judge:
            n_labels = 2

        @staticmethod
        def losses_of(logits):
            return np.array([0.25, 0.5])

        @staticmethod
        def unswayed(together):
            return np.zeros((3, 2))

    found = plain_outputs(Run, None)
    assert isinstance(found, EvolvedMap)
    assert_array_equal(found.front.maps, [[1, 1, 0, 0]])
    assert_array_equal(found.mean_map, [1, 1, 0, 0])
    assert_array_equal(found.front.losses, [[0.25, 0.5]])
    assert found.default == 0


def test_a_warm_start_warns_of_rows_that_judge_but_were_trained_on(small_data):
    X, Y = small_data
    other = np.random.default_rng(0).permutation(len(Y))
    clf = quick(warm_start=True).fit(X, Y)
    clf.fit(X, Y)  # the same rows: nothing to say
    clf.fit(X, Y, X_val=X, y_val=Y)  # the user's own to judge
    with pytest.warns(UserWarning, match="some of those that judge now were trained"):
        clf.fit(X[other], Y[other])


def test_the_unit_of_weights_does_not_matter(small_data):
    X, Y = small_data
    weight = np.random.default_rng(0).uniform(0.5, 2, size=len(Y))
    one, other = (
        quick().fit(X, Y, sample_weight=unit * weight) for unit in (1.0, 2.0**-40)
    )
    np.testing.assert_allclose(
        one.decision_function(X), other.decision_function(X), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("search", ["ascent", "cma"])
def test_an_interrupt_while_judging_costs_no_epoch(search, small_data, monkeypatch):
    X, Y = small_data
    settings = {"search": search, "warm_start": True, "n_members": 2}
    whole = quick(**settings, max_epochs=3).fit(X, Y)
    clf = quick(**settings, max_epochs=3)
    score = InterruptAt(clml._training.members.HeldOutScorer.score, 2)
    with monkeypatch.context() as patch:
        patch.setattr(
            clml._training.members.HeldOutScorer, "score", lambda *a: score(*a)
        )
        with pytest.raises(KeyboardInterrupt):
            clf.fit(X, Y)
    assert clf.n_epochs_ == 1
    clf.set_params(max_epochs=2).fit(X, Y)
    assert clf.n_epochs_ == whole.n_epochs_ == 3
    if search == "cma":  # the rate of an ascent begins anew
        np.testing.assert_array_equal(
            clf.history_["incumbent_validation"], whole.history_["incumbent_validation"]
        )


def test_functions_of_populations_have_one_network_by_default(small_data):
    X, Y = small_data

    def misses(Y, scores):
        return float((Y != (scores > 0)).mean())

    settings = {"losses": ("lrap", misses), "max_epochs": 1, "random_state": 0}
    evolved = CLMLClassifier(search="cma", **settings).fit(X, Y)
    assert evolved.theta_.ndim == 1
    assert not hasattr(evolved, "networks_")
    narrow = CLMLClassifier(network="paper", **settings).fit(X, Y)
    assert len(narrow.networks_) == 16


@pytest.mark.parametrize("n_members", [None, 2])
def test_archived_references_are_for_one_evolved_network(n_members, small_data):
    search = CMA(reference="archive")
    clf = CLMLClassifier(search=search, max_epochs=1, n_members=n_members)
    with pytest.raises(ValueError, match="reference='archive' is for one network"):
        clf.fit(*small_data)


@pytest.mark.parametrize("network", ["paper", "wide"])
@pytest.mark.parametrize("incumbent", ["mean", "lrap"])
def test_bare_models_predict_the_same(network, incumbent, small_data):
    X, Y = small_data
    clf = CLMLClassifier(
        network=network,
        n_members=2,
        max_epochs=2,
        incumbent=incumbent,
        random_state=0,
    )
    whole = clone(clf).fit(X, Y)
    with bare_models():
        bare = clone(clf).fit(X, Y)
    np.testing.assert_array_equal(bare.predict_proba(X), whole.predict_proba(X))
    assert len(whole.front_) > 1
    assert (len(bare.front_) > 1) == (incumbent == "lrap")
